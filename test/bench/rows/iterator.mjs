import { batch, textContender } from "../kit/contender.mjs"
import { contest } from "../kit/contest.mjs"
import { number, times } from "../kit/format.mjs"
import { iterateFull, readFull } from "../kit/read.mjs"
import { textScript } from "../kit/script.mjs"
import { interval, median, paired } from "../kit/statistics.mjs"
import { againstItself, atMost } from "../kit/verdict.mjs"
import { eddy } from "../systems/all.mjs"

const control = ["getReader", "getReader again"]

export const run = async ({ repetitions = 15 }) => {
  const report = { tables: [], targets: [], controls: [], samples: {} }
  for (const [size, runs] of [
    [10000, 3],
    [50000, 1]
  ]) {
    const script = textScript(size)
    const contenders = {
      "for await": batch(runs, textContender(eddy, script, iterateFull)),
      getReader: batch(runs, textContender(eddy, script, readFull)),
      "getReader again": batch(runs, textContender(eddy, script, readFull))
    }
    const samples = await contest({ contenders, control, repetitions })
    const name = `${number(size)} deltas`
    const ratios = paired(samples["for await"].wall, samples.getReader.wall)
    report.samples[name] = samples
    report.tables.push({
      title: name,
      head: ["", "us/chunk wall", "cpu", "of getReader"],
      lines: Object.keys(samples).map(label => [
        label,
        number((median(samples[label].wall) / size / runs) * 1000),
        number((median(samples[label].cpu) / size / runs) * 1000),
        times(interval(paired(samples[label].wall, samples.getReader.wall)))
      ])
    })
    report.targets.push(atMost(`for await / getReader, ${name}`, ratios, 0.6))
    report.controls.push(againstItself(samples, control, `${name}: getReader`))
  }
  return report
}
