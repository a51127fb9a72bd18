import { ask } from "../kit/child.mjs"
import { contest } from "../kit/contest.mjs"
import { number } from "../kit/format.mjs"
import { interval, median, paired } from "../kit/statistics.mjs"
import { taskContender } from "../kit/tasks.mjs"
import { atMost } from "../kit/verdict.mjs"
import { eddy } from "../systems/eddyTasks.mjs"

const counts = [1000, 10000, 20000]
const concurrency = 10

/** k in time ~ count^k, for each repetition, between two counts. */
const exponents = (samples, from, to) =>
  samples[to].wall.map((wall, at) => Math.log(wall / samples[from].wall[at]) / Math.log(to / from))

const probe = async waiting => {
  const file = new URL("../probe/queued.mjs", import.meta.url)
  const found = await ask(file, [waiting], { flags: ["--expose-gc"], seconds: 60, quiet: true })
  if (found.failed) throw new Error(found.failed)
  return found
}

/** Fresh processes with so many tasks that wait behind some that do not end. */
const wait = async repetitions => {
  const samples = Object.fromEntries([0, ...counts].map(count => [count, []]))
  for (let at = 0; at < repetitions; at++) {
    for (const waiting of Object.keys(samples)) samples[waiting].push(await probe(Number(waiting)))
  }
  return samples
}

export const run = async ({ repetitions = 11 }) => {
  const contenders = Object.fromEntries(
    counts.map(count => [count, taskContender(eddy, { count, concurrency })])
  )
  const samples = await contest({ contenders, repetitions })
  const waiting = await wait(Math.min(repetitions, 5))
  const all = (count, key) => waiting[count].map(found => found[key])
  const exponentOf = (from, to) => {
    if (from === undefined) return ""
    const { high, low, median: middle } = interval(exponents(samples, from, to))
    return `${middle.toFixed(2)} (${low.toFixed(2)}-${high.toFixed(2)})`
  }
  return {
    tables: [
      {
        title: `dispatched at once, ${concurrency} at a time, in memory, until the last is told`,
        head: ["", "us/task wall", "cpu", "ms in all", "exponent"],
        lines: counts.map((count, at) => [
          `eddy, ${number(count)}`,
          number((median(samples[count].wall) / count) * 1000),
          number((median(samples[count].cpu) / count) * 1000),
          number(median(samples[count].wall)),
          exponentOf(counts[at - 1], count)
        ])
      },
      {
        title: `fresh processes, ${concurrency} tasks that do not end, and so many that wait behind them`,
        head: ["", "bytes of heap each", "one dispatch more, median us", "p99 us"],
        lines: Object.keys(waiting).map(count => [
          count === "0" ? "eddy, none" : `eddy, ${number(Number(count))}`,
          count === "0" ? "" : number(median(all(count, "perTask"))),
          number(median(all(count, "middle")) * 1000),
          number(median(all(count, "late")) * 1000)
        ])
      }
    ],
    targets: [
      atMost("exponent of eddy, 1 000 to 20 000", exponents(samples, 1000, 20000), 1.1, 1, ""),
      atMost(
        "a dispatch while 10 000 wait / while none does",
        paired(all(10000, "middle"), all(0, "middle")),
        1.5
      )
    ],
    controls: [],
    samples: { ...samples, waiting }
  }
}
