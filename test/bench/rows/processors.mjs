import { textContender } from "../kit/contender.mjs"
import { contest } from "../kit/contest.mjs"
import { number, times } from "../kit/format.mjs"
import { readFull } from "../kit/read.mjs"
import { textScript } from "../kit/script.mjs"
import { interval, median, paired } from "../kit/statistics.mjs"
import { againstItself, atMost } from "../kit/verdict.mjs"
import { eddy, eddyProcessed } from "../systems/all.mjs"

const control = ["eddy", "eddy again"]
const size = 10000

const contenders = script => ({
  eddy: textContender(eddy, script, readFull),
  "eddy again": textContender(eddy, script, readFull),
  "three processors": textContender(eddyProcessed, script, readFull)
})

export const run = async ({ repetitions = 15 }) => {
  const samples = await contest({ contenders: contenders(textScript(size)), control, repetitions })
  const over = label => paired(samples[label].wall, samples.eddy.wall)
  const lines = Object.entries(samples).map(([label, { wall, cpu }]) => [
    label,
    number((median(wall) / size) * 1000),
    number((median(cpu) / size) * 1000),
    label === "eddy" ? "" : times(interval(over(label)))
  ])
  return {
    tables: [
      { title: `${number(size)} deltas`, head: ["", "us/chunk wall", "cpu", "over none, wall"], lines }
    ],
    targets: [atMost("three processors / none", over("three processors"), 2, 1.5)],
    controls: [againstItself(samples, control)],
    samples: { deltas: samples }
  }
}
