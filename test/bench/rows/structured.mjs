import { z } from "zod"
import { contest } from "../kit/contest.mjs"
import { number, times } from "../kit/format.mjs"
import { objectScript } from "../kit/script.mjs"
import { interval, median, paired } from "../kit/statistics.mjs"
import { atLeast, atMost } from "../kit/verdict.mjs"
import { ai, eddy, mastra } from "../systems/all.mjs"

const item = z.object({
  id: z.number(),
  name: z.string(),
  price: z.number(),
  tags: z.array(z.string()),
  note: z.string()
})
const schema = z.object({ title: z.string(), items: z.array(item) })

/** Every partial value is read; the last one is the whole. */
const contender = (system, script, warmUp) => {
  const once = of => {
    const { objectsOf, stream } = system.openObjects(of, schema)
    return async () => {
      const out = await stream()
      let last
      let count = 0
      for await (const partial of objectsOf(out)) {
        last = partial
        count++
      }
      if (JSON.stringify(last) !== JSON.stringify(of.object)) throw new Error(`${system.name}: another value`)
      const deltas = of.turn().size
      if (count < deltas * 0.8 || count > deltas + 1)
        throw new Error(`${system.name}: ${count} partial values`)
    }
  }
  const short = once(warmUp)
  const warm = async () => {
    for (let time = 0; time < 10; time++) await short()
  }
  return { warm, again: short, run: once(script) }
}

const line = (samples, label) => [
  label,
  number(median(samples[label].wall)),
  number(median(samples[label].cpu)),
  label === "eddy" ? "" : times(interval(paired(samples[label].wall, samples.eddy.wall))),
  label === "eddy" ? "" : times(interval(paired(samples[label].cpu, samples.eddy.cpu)))
]

const head = ["", "ms wall", "cpu", "over eddy, wall", "over eddy, cpu"]

/** The peers take seconds for the longer one: it is run less often. */
const sizes = [
  { size: 10_000, share: 1, overMastra: [12, 24], overAi: [8, 18] },
  { size: 100_000, share: 5, overMastra: [50, 100], overAi: [30, 70] }
]

export const run = async ({ repetitions = 15 }) => {
  const report = { tables: [], targets: [], controls: [], samples: {} }
  const warmUp = objectScript(2_000)
  for (const { size, share, overMastra, overAi } of sizes) {
    const name = `objectStream, JSON of ${number(size / 1000)} KB`
    const script = objectScript(size)
    const samples = await contest({
      contenders: {
        eddy: contender(eddy, script, warmUp),
        mastra: contender(mastra, script, warmUp),
        ai: contender(ai, script, warmUp)
      },
      repetitions: Math.max(1, Math.ceil(repetitions / share))
    })
    report.samples[name] = samples
    report.tables.push({ title: name, head, lines: Object.keys(samples).map(label => line(samples, label)) })
    const wall = label => samples[label].wall
    report.targets.push(
      atLeast(`mastra / eddy, ${name}`, paired(wall("mastra"), wall("eddy")), ...overMastra),
      atLeast(`ai / eddy, ${name}`, paired(wall("ai"), wall("eddy")), ...overAi)
    )
  }
  const name = "objectStream of eddy, growth"
  const samples = await contest({
    contenders: {
      eddy: contender(eddy, objectScript(100_000), warmUp),
      "eddy, 200 KB": contender(eddy, objectScript(200_000), warmUp)
    },
    repetitions
  })
  report.samples[name] = samples
  report.tables.push({ title: name, head, lines: Object.keys(samples).map(label => line(samples, label)) })
  report.targets.push(
    atMost("200 KB / 100 KB", paired(samples["eddy, 200 KB"].wall, samples.eddy.wall), 2.3, 2)
  )
  return report
}
