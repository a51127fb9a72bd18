import { ask } from "../kit/child.mjs"
import { number } from "../kit/format.mjs"
import { median } from "../kit/statistics.mjs"
import { atMost } from "../kit/verdict.mjs"

const deltas = 100000
const length = 1000
const names = ["eddyUnkept", "eddy", "mastra", "ai", "raw"]
const labels = {
  eddyUnkept: "eddy, replay: false",
  eddy: "eddy, which keeps the run",
  raw: "the model alone"
}

export const run = async ({ repetitions = 3 }) => {
  const samples = Object.fromEntries(names.map(name => [name, []]))
  for (let at = 0; at < Math.min(repetitions, 3); at++) {
    // the others are information, and take their time
    for (const name of at === 0 ? names : names.slice(0, 1)) {
      const found = await ask(new URL("../probe/peak.mjs", import.meta.url), [name, deltas, length], {
        flags: ["--expose-gc"],
        seconds: 120,
        quiet: true
      })
      if (found.failed) throw new Error(`${name}: ${found.failed}`)
      samples[name].push(found)
    }
  }
  const all = (name, key) => samples[name].map(found => found[key])
  return {
    tables: [
      {
        title: `${number((deltas * length) / 1e6)} MB of text in ${number(deltas)} deltas, read once, slowly; the heap after collections`,
        head: ["", "peak rise MB", "parts ahead"],
        lines: names.map(name => [
          labels[name] ?? name,
          number(median(all(name, "rise"))),
          number(Math.max(...all(name, "ahead")))
        ])
      }
    ],
    targets: [
      atMost("eddy with replay: false, peak rise", all("eddyUnkept", "rise"), 32, undefined, " MB"),
      atMost("eddy with replay: false, parts ahead", all("eddyUnkept", "ahead"), 128, undefined, "")
    ],
    controls: [],
    samples
  }
}
