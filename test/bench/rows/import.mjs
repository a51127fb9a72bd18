import { ask } from "../kit/child.mjs"
import { rounds } from "../kit/contest.mjs"
import { number, times } from "../kit/format.mjs"
import { random, shuffle } from "../kit/random.mjs"
import { interval, median, paired } from "../kit/statistics.mjs"
import { againstItself, atMost } from "../kit/verdict.mjs"
import { dist } from "../systems/eddy.mjs"

const control = ["mastra", "mastra again"]
const mastra = ["@mastra/core/agent", "mastra"]
const imports = {
  eddy: [new URL("promise.js", dist).href, "eddy"],
  mastra,
  "mastra again": mastra,
  ai: ["ai", "ai"],
  "effect alone": ["effect", ""]
}

export const run = async ({ repetitions = 11 }) => {
  const labels = Object.keys(imports)
  const draw = random(17)
  const probe = label =>
    ask(new URL("../probe/import.mjs", import.meta.url), imports[label], { seconds: 30, quiet: true })
  const samples = Object.fromEntries(labels.map(label => [label, { wall: [], first: [] }]))
  const round = async keep => {
    for (const label of shuffle(labels, draw)) {
      const { imported, first, failed } = await probe(label)
      if (failed) throw new Error(`${label}: ${failed}`)
      if (!keep) continue
      samples[label].wall.push(imported)
      samples[label].first.push(first)
    }
  }
  // the first one fills the disk cache, for everyone alike
  await round(false)
  await rounds({ repetitions, samples, control }, () => round(true))
  const ofMastra = (label, key) => times(interval(paired(samples[label][key], samples.mastra[key])))
  return {
    tables: [
      {
        title: `${samples.eddy.wall.length} fresh processes each`,
        head: ["", "import ms", "of mastra", "first stream ms", "of mastra"],
        lines: labels.map(label => [
          label,
          number(median(samples[label].wall)),
          ofMastra(label, "wall"),
          imports[label][1] ? number(median(samples[label].first)) : "",
          imports[label][1] ? ofMastra(label, "first") : ""
        ])
      }
    ],
    targets: [atMost("import of eddy / of mastra", paired(samples.eddy.wall, samples.mastra.wall), 0.4)],
    controls: [againstItself(samples, control)],
    samples
  }
}
