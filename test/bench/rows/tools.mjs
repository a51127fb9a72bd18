import { toolContender } from "../kit/contender.mjs"
import { contest } from "../kit/contest.mjs"
import { number, times } from "../kit/format.mjs"
import { toolScript } from "../kit/script.mjs"
import { interval, median, paired } from "../kit/statistics.mjs"
import { againstItself, atLeast, atMost } from "../kit/verdict.mjs"
import { weigh } from "../kit/weight.mjs"
import { ai, eddy, mastra } from "../systems/all.mjs"

const warmUp = toolScript(20)
const control = ["mastra", "mastra again"]

const compare = async repetitions => {
  const script = toolScript(50)
  const runs = 2
  const of = system => toolContender(system, script, { warmUp, runs })
  const contenders = { eddy: of(eddy), mastra: of(mastra), "mastra again": of(mastra), ai: of(ai) }
  const samples = await contest({ contenders, control, repetitions })
  const over = label => paired(samples[label].wall, samples.eddy.wall)
  const lines = Object.entries(samples).map(([label, { wall, cpu }]) => [
    label,
    number(median(wall) / runs / 50),
    number(median(cpu) / runs / 50),
    label === "eddy" ? "" : times(interval(over(label))),
    label === "eddy" ? "" : times(interval(paired(cpu, samples.eddy.cpu)))
  ])
  return {
    samples,
    table: {
      title: "50 steps",
      head: ["", "ms/step wall", "cpu", "over eddy, wall", "over eddy, cpu"],
      lines
    },
    targets: [
      atLeast("mastra / eddy, 50 steps", over("mastra"), 15, 40),
      atLeast("ai / eddy, 50 steps", over("ai"), 3, 8)
    ]
  }
}

// A long run against as many steps in runs of 50. Mastra's 800 take 18 s, so its long run is one of 200.
const lengths = [
  [eddy, 800],
  [ai, 800],
  [mastra, 200]
]

const growth = async ([system, steps], repetitions) => {
  const contenders = {
    long: toolContender(system, toolScript(steps), { warmUp }),
    short: toolContender(system, toolScript(50), { warmUp, runs: steps / 50 })
  }
  const samples = await contest({ contenders, repetitions, seed: 12 })
  const ratios = paired(samples.long.wall, samples.short.wall)
  const perStep = ({ wall }) => number(median(wall) / steps)
  const line = [
    system.name,
    number(steps),
    perStep(samples.short),
    perStep(samples.long),
    times(interval(ratios))
  ]
  return { samples, ratios, line }
}

const grow = async repetitions => {
  const [ours, ...peers] = lengths
  const grown = [await growth(ours, repetitions)]
  // the peers' growth is information, and costs seconds a sample
  for (const peer of peers) grown.push(await growth(peer, Math.min(repetitions, 5)))
  const lines = grown.map(({ line }) => line)
  return {
    samples: Object.fromEntries(grown.map(({ samples }, at) => [lengths[at][0].name, samples])),
    table: {
      title: "growth",
      head: ["", "long run", "ms/step of 50", "ms/step of long", "long over 50"],
      lines
    },
    targets: [atMost("eddy, a step of 800 / a step of 50", grown[0].ratios, 1.5)]
  }
}

const weighAll = async () => {
  const lines = []
  const perStep = {}
  for (const [system, long] of lengths) {
    for (const steps of [50, long]) {
      const { finish, rest } = await weigh(system, toolScript(steps))
      perStep[`${system.name} ${steps}`] = rest / steps
      lines.push([
        `${system.name}, ${steps} steps`,
        number(rest / steps),
        number(finish),
        number(rest + finish)
      ])
    }
  }
  const head = ["", "bytes/step without finish", "bytes of finish", "bytes in all"]
  return {
    samples: perStep,
    table: { title: "serialised size of the stream", head, lines },
    targets: [
      atMost("eddy, bytes of a step of 800 / of 50", [perStep["eddy 800"] / perStep["eddy 50"]], 1.1, 1)
    ]
  }
}

export const run = async ({ repetitions = 15 }) => {
  const parts = [await compare(repetitions), await grow(repetitions), await weighAll()]
  return {
    tables: parts.map(part => part.table),
    targets: parts.flatMap(part => part.targets),
    controls: [againstItself(parts[0].samples, control)],
    samples: Object.fromEntries(parts.map(part => [part.table.title, part.samples]))
  }
}
