import { turnOfLoop } from "../kit/contest.mjs"
import { number, times } from "../kit/format.mjs"
import { random, shuffle } from "../kit/random.mjs"
import { drain, readFirst } from "../kit/read.mjs"
import { textScript } from "../kit/script.mjs"
import { interval, median, paired, quantile } from "../kit/statistics.mjs"
import { againstItself, atLeast } from "../kit/verdict.mjs"
import { ai, eddy, mastra, raw } from "../systems/all.mjs"

const control = ["mastra", "mastra again"]

const shot = async stream => {
  const start = performance.now()
  const reader = await readFirst(await stream())
  const wall = performance.now() - start
  await drain(reader)
  // what a run still does behind its stream must not fall into the next one's time
  for (let turn = 0; turn < 3; turn++) await turnOfLoop()
  return wall
}

export const run = async ({ repetitions, shots = repetitions ? repetitions * 15 : 300 }) => {
  const script = textScript(5)
  const systems = { eddy, mastra, "mastra again": mastra, ai, raw }
  const streams = Object.entries(systems).map(([label, system]) => [label, system.open(script).stream])
  const samples = Object.fromEntries(streams.map(([label]) => [label, { wall: [] }]))
  const draw = random(13)
  for (let at = -60; at < shots; at++) {
    for (const [label, stream] of shuffle(streams, draw)) {
      const wall = await shot(stream)
      if (at >= 0) samples[label].wall.push(wall)
    }
  }
  const over = label => paired(samples[label].wall, samples.eddy.wall)
  return {
    tables: [
      {
        title: `${shots} shots`,
        head: ["", "median ms", "least", "p95", "over eddy"],
        lines: Object.entries(samples).map(([label, { wall }]) => [
          label,
          number(median(wall)),
          number(Math.min(...wall)),
          number(quantile(wall, 0.95)),
          label === "eddy" ? "" : times(interval(over(label)))
        ])
      }
    ],
    targets: [
      atLeast("mastra / eddy, first text-delta", over("mastra"), 3, 6),
      atLeast("ai / eddy, first text-delta", over("ai"), 1.3, 2.5)
    ],
    controls: [againstItself(samples, control)],
    samples
  }
}
