import { textContender } from "../kit/contender.mjs"
import { contest } from "../kit/contest.mjs"
import { number } from "../kit/format.mjs"
import { textScript } from "../kit/script.mjs"
import { interval, median } from "../kit/statistics.mjs"
import { atMost } from "../kit/verdict.mjs"
import { eddy, raw } from "../systems/all.mjs"

const sizes = [10000, 50000, 200000, 1000000]

/** k in time ~ size^k, for each repetition, between two sizes. */
const exponents = (samples, name, from, to) =>
  samples[`${name} ${to}`].wall.map(
    (wall, at) => Math.log(wall / samples[`${name} ${from}`].wall[at]) / Math.log(to / from)
  )

const lines = (samples, name) =>
  sizes.map((size, at) => {
    const { wall, cpu } = samples[`${name} ${size}`]
    const {
      median: exponent,
      low,
      high
    } = at === 0 ? {} : interval(exponents(samples, name, sizes[at - 1], size))
    return [
      `${name}, ${number(size)}`,
      number((median(wall) / size) * 1000),
      number((median(cpu) / size) * 1000),
      number(median(wall)),
      at === 0 ? "" : `${exponent.toFixed(2)} (${low.toFixed(2)}-${high.toFixed(2)})`
    ]
  })

export const run = async ({ repetitions = 11 }) => {
  const contenders = {}
  for (const size of sizes) {
    const script = textScript(size)
    for (const system of [eddy, raw]) contenders[`${system.name} ${size}`] = textContender(system, script)
  }
  const samples = await contest({ contenders, repetitions })
  return {
    tables: [
      {
        title: "fullStream",
        head: ["", "us/chunk wall", "cpu", "ms in all", "exponent"],
        lines: [...lines(samples, "eddy"), ...lines(samples, "raw")]
      }
    ],
    targets: [
      atMost(
        "exponent of eddy, 200 000 to 1 000 000",
        exponents(samples, "eddy", 200000, 1000000),
        1.1,
        1,
        ""
      )
    ],
    controls: [],
    samples
  }
}
