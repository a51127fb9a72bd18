import { batch, replayContender, textContender } from "../kit/contender.mjs"
import { contest } from "../kit/contest.mjs"
import { number, times } from "../kit/format.mjs"
import { iterateFull, iterateInherited, readFull } from "../kit/read.mjs"
import { textScript } from "../kit/script.mjs"
import { interval, median, paired } from "../kit/statistics.mjs"
import { againstItself, atMost } from "../kit/verdict.mjs"
import { eddy } from "../systems/all.mjs"

const control = ["getReader", "getReader again"]

const table = (title, samples, chunks) => ({
  title,
  head: ["", "us/chunk wall", "cpu", "of getReader, wall", "cpu"],
  lines: Object.entries(samples).map(([label, { wall, cpu }]) => [
    label,
    number((median(wall) / chunks) * 1000),
    number((median(cpu) / chunks) * 1000),
    times(interval(paired(wall, samples.getReader.wall))),
    times(interval(paired(cpu, samples.getReader.cpu)))
  ])
})

const compare = (contender, repetitions) =>
  contest({
    contenders: {
      "for await": contender(iterateFull),
      "for await, inherited": contender(iterateInherited),
      getReader: contender(readFull),
      "getReader again": contender(readFull)
    },
    control,
    repetitions
  })

export const run = async ({ repetitions = 15 }) => {
  const report = { tables: [], targets: [], controls: [], samples: {} }
  for (const [size, runs] of [
    [10000, 3],
    [50000, 1]
  ]) {
    const script = textScript(size)
    const samples = await compare(read => batch(runs, textContender(eddy, script, read)), repetitions)
    const name = `${number(size)} deltas`
    report.samples[name] = samples
    report.tables.push(table(`${name}, the whole run`, samples, size * runs))
    report.targets.push(
      atMost(`for await / getReader, ${name}`, paired(samples["for await"].wall, samples.getReader.wall), 0.6)
    )
    report.controls.push(againstItself(samples, control, `${name}: getReader`))
  }
  // Information: both ways wait for the same model and the same fold; this is what they do not share.
  const script = textScript(50000)
  const replay = await compare(read => replayContender(eddy, script, read), repetitions)
  report.samples.replay = replay
  report.tables.push(table("50 000 deltas, the reading alone: a finished run, read again", replay, 50000))
  return report
}
