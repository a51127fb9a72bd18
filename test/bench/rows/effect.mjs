import { textContender } from "../kit/contender.mjs"
import { contest } from "../kit/contest.mjs"
import { number, times } from "../kit/format.mjs"
import { readFull } from "../kit/read.mjs"
import { textScript } from "../kit/script.mjs"
import { interval, median, paired } from "../kit/statistics.mjs"
import { againstItself, atLeast } from "../kit/verdict.mjs"
import { eddy, mastra, streamEffect } from "../systems/all.mjs"

const control = ["mastra", "mastra again"]

/** The Effect face has no output object: opening it is all of `stream`, and reading it gives the tally. */
const effectFace = {
  name: "eddy, Effect",
  open: script => {
    const read = streamEffect(script)
    return { model: {}, stream: async () => read }
  }
}
const readEffect = read => read()

export const run = async ({ repetitions = 15 }) => {
  const report = { tables: [], targets: [], controls: [], samples: {} }
  for (const size of [10000, 50000]) {
    const script = textScript(size)
    const contenders = {
      "eddy, Effect": textContender(effectFace, script, readEffect),
      "eddy, fullStream": textContender(eddy, script, readFull),
      mastra: textContender(mastra, script, readFull),
      "mastra again": textContender(mastra, script, readFull)
    }
    const samples = await contest({ contenders, control, repetitions })
    const name = `${number(size)} deltas`
    const own = samples["eddy, Effect"]
    report.samples[name] = samples
    report.tables.push({
      title: name,
      head: ["", "us/chunk wall", "cpu", "over the Effect face, wall", "cpu"],
      lines: Object.keys(samples).map(label => [
        label,
        number((median(samples[label].wall) / size) * 1000),
        number((median(samples[label].cpu) / size) * 1000),
        times(interval(paired(samples[label].wall, own.wall))),
        times(interval(paired(samples[label].cpu, own.cpu)))
      ])
    })
    report.targets.push(
      atLeast(`mastra / eddy through Effect, ${name}`, paired(samples.mastra.wall, own.wall), 3)
    )
    report.controls.push(againstItself(samples, control, `${name}: mastra`))
  }
  return report
}
