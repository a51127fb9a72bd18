import { batch } from "../kit/contender.mjs"
import { contest } from "../kit/contest.mjs"
import { number, times } from "../kit/format.mjs"
import { verify } from "../kit/read.mjs"
import { delegateScript, textScript } from "../kit/script.mjs"
import { interval, median, paired } from "../kit/statistics.mjs"
import { againstItself, atMost } from "../kit/verdict.mjs"
import { eddy, mastra } from "../systems/all.mjs"

const size = 10000
const depths = [0, 1, 2, 4]
const runs = 3
const control = ["eddy 0", "eddy 0 again"]

/** Reads the agent on top, and counts what the one at the bottom says: `depth` chunks around each delta. */
const readDeep = async (out, system, depth) => {
  const seen = { deltas: 0, length: 0 }
  const reader = out.fullStream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return seen
    let chunk = value
    let level = 0
    for (let inner = system.nestedIn(chunk); inner; inner = system.nestedIn(chunk)) {
      chunk = inner
      level++
    }
    if (level !== depth || chunk.type !== "text-delta") continue
    seen.deltas++
    seen.length += system.textOf(chunk).length
  }
}

const nested = (system, depth) => {
  const once = count => {
    const script = textScript(count)
    const { stream } = system.openNested([...Array.from({ length: depth }, () => delegateScript()), script])
    return async () =>
      verify(await readDeep(await stream(), system, depth), script, `${system.name} ${depth}`)
  }
  const warm = once(2000)
  return batch(runs, {
    warm: async () => {
      for (let at = 0; at < 10; at++) await warm()
    },
    again: once(300),
    run: once(size)
  })
}

export const run = async ({ repetitions = 15 }) => {
  const contenders = Object.fromEntries(depths.map(depth => [`eddy ${depth}`, nested(eddy, depth)]))
  contenders["eddy 0 again"] = nested(eddy, 0)
  for (const depth of [0, 1]) contenders[`mastra ${depth}`] = nested(mastra, depth)
  const samples = await contest({ contenders, control, repetitions })
  const wall = (depth, name = "eddy") => samples[`${name} ${depth}`].wall
  // what a straight line through the first two says
  const linear = wall(2).map((time, at) => 2 * time - wall(0)[at])
  const line = (name, depth) => [
    `${name}, ${depth === 0 ? "by itself" : `${depth} deep`}`,
    number((median(wall(depth, name)) / size / runs) * 1000),
    number((median(samples[`${name} ${depth}`].cpu) / size / runs) * 1000),
    depth === 0 ? "" : times(interval(paired(wall(depth, name), wall(0, name))))
  ]
  return {
    tables: [
      {
        title: `${number(size)} deltas told by the agent at the bottom, read at the top`,
        head: ["", "us/delta wall", "cpu", "over a single agent"],
        lines: [...depths.map(depth => line("eddy", depth)), line("mastra", 0), line("mastra", 1)]
      }
    ],
    targets: [
      atMost("eddy, two deep / a single agent", paired(wall(2), wall(0)), 3),
      atMost("eddy, four deep / what it would be by a straight line", paired(wall(4), linear), 1.25)
    ],
    controls: [againstItself(samples, control)],
    samples
  }
}
