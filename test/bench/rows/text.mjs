import { batch, textContender } from "../kit/contender.mjs"
import { contest } from "../kit/contest.mjs"
import { number, times } from "../kit/format.mjs"
import { readBoth, readFull, readText } from "../kit/read.mjs"
import { textScript } from "../kit/script.mjs"
import { interval, median, paired } from "../kit/statistics.mjs"
import { againstItself, atLeast, atMost } from "../kit/verdict.mjs"
import { ai, eddy, mastra, raw } from "../systems/all.mjs"

const control = ["mastra", "mastra again"]
const sizes = [
  { size: 1000, runs: 5, overMastra: [3, 6], overAi: [5, 10] },
  { size: 10000, runs: 1, overMastra: [4, 6], overAi: [6, 10] },
  { size: 50000, runs: 1, overMastra: [4, 6], overAi: [6, 10] }
]

const line = (samples, label, chunks) => [
  label,
  number((median(samples[label].wall) / chunks) * 1000),
  number((median(samples[label].cpu) / chunks) * 1000),
  label === "eddy" ? "" : times(interval(paired(samples[label].wall, samples.eddy.wall))),
  label === "eddy" ? "" : times(interval(paired(samples[label].cpu, samples.eddy.cpu)))
]

const head = ["", "us/chunk wall", "cpu", "over eddy, wall", "over eddy, cpu"]

const contenders = (script, read, runs, withRaw) => ({
  eddy: batch(runs, textContender(eddy, script, read)),
  mastra: batch(runs, textContender(mastra, script, read)),
  "mastra again": batch(runs, textContender(mastra, script, read)),
  ai: batch(runs, textContender(ai, script, read)),
  ...(withRaw && { raw: batch(runs, textContender(raw, script, read)) })
})

export const run = async ({ repetitions = 15 }) => {
  const report = { tables: [], targets: [], controls: [], samples: {} }
  const compare = async (name, script, { size, read, runs = 1, withRaw }) => {
    const samples = await contest({
      contenders: contenders(script, read, runs, withRaw),
      control,
      repetitions
    })
    report.samples[name] = samples
    report.tables.push({
      title: name,
      head,
      lines: Object.keys(samples).map(label => line(samples, label, size * runs))
    })
    report.controls.push(againstItself(samples, control, `${name}: mastra`))
    return samples
  }
  for (const { size, runs, overMastra, overAi } of sizes) {
    const name = `fullStream, ${number(size)} deltas`
    const samples = await compare(name, textScript(size), { size, read: readFull, runs, withRaw: true })
    const wall = label => samples[label].wall
    report.targets.push(
      atLeast(`mastra / eddy, ${name}`, paired(wall("mastra"), wall("eddy")), ...overMastra),
      atLeast(`ai / eddy, ${name}`, paired(wall("ai"), wall("eddy")), ...overAi),
      atMost(`eddy / raw, ${name}`, paired(wall("eddy"), wall("raw")), 8, 5)
    )
  }
  const size = 10000
  await compare("only text, 10 000 deltas", textScript(size), { size, read: readText })
  await compare("fullStream and text, 10 000 deltas", textScript(size), { size, read: readBoth })
  return report
}
