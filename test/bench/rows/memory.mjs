import { ask } from "../kit/child.mjs"
import { number } from "../kit/format.mjs"
import { median } from "../kit/statistics.mjs"
import { atMost } from "../kit/verdict.mjs"

const size = 50000
const names = ["eddy", "mastra", "ai", "strings"]

export const run = async ({ repetitions = 5 }) => {
  const samples = Object.fromEntries(names.map(name => [name, []]))
  const file = new URL("../probe/memory.mjs", import.meta.url)
  for (let at = 0; at < Math.min(repetitions, 5); at++) {
    for (const name of names) {
      const found = await ask(file, [name, size], { flags: ["--expose-gc"], seconds: 30, quiet: true })
      if (found.failed) throw new Error(`${name}: ${found.failed}`)
      samples[name].push(found)
    }
  }
  const middle = (name, key) => number(median(samples[name].map(found => found[key])))
  const lines = names.map(name =>
    name === "strings"
      ? ["the provider's strings alone", middle(name, "perDelta"), "", ""]
      : [name, middle(name, "perDelta"), middle(name, "left"), middle(name, "residentRise")]
  )
  return {
    tables: [
      {
        title: `${number(size)} deltas, each a string nobody else holds (its bytes are counted)`,
        head: ["", "bytes/delta held", "after letting go", "resident rise MB"],
        lines
      }
    ],
    targets: [
      atMost(
        "eddy, bytes held per text delta",
        samples.eddy.map(found => found.perDelta),
        90,
        65,
        " bytes"
      )
    ],
    controls: [],
    samples
  }
}
