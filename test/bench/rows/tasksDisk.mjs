import { number } from "../kit/format.mjs"
import { freshTasks, taskHead, taskLines } from "../kit/freshTasks.mjs"
import { paired } from "../kit/statistics.mjs"
import { againstItself, atLeast } from "../kit/verdict.mjs"

const control = ["mastra", "mastra again"]
const pair = { eddy: "eddy", mastra: "mastra" }

/** `most`: the peer takes long, so that a batch of 1 000 is repeated less often, and without a control. */
const batches = [
  { count: 100, concurrency: 10, tool: "at once", most: 9 },
  { count: 100, concurrency: 100, tool: "at once", most: 9 },
  { count: 100, concurrency: 10, tool: "slow", most: 9 },
  { count: 100, concurrency: 100, tool: "slow", most: 9 },
  { count: 1000, concurrency: 10, tool: "at once", most: 3 },
  { count: 1000, concurrency: 100, tool: "at once", most: 3 },
  { count: 1000, concurrency: 10, tool: "slow", most: 1 },
  { count: 1000, concurrency: 100, tool: "slow", most: 1 }
]

const toolOf = { "at once": "a tool that returns at once", slow: "a tool of 1 ms" }

export const run = async ({ repetitions = 9 }) => {
  const report = { tables: [], targets: [], controls: [], samples: {} }
  for (const { most, ...work } of batches) {
    const { concurrency, count, tool } = work
    const title = `${number(count)} tasks, ${toolOf[tool]}, ${concurrency} at a time`
    const isControlled = count === 100
    const samples = await freshTasks({
      ...work,
      disk: true,
      names: isControlled ? { ...pair, "mastra again": "mastra" } : pair,
      control: isControlled ? control : undefined,
      repetitions: Math.min(repetitions, most)
    })
    report.samples[title] = samples
    report.tables.push({ title, head: taskHead, lines: taskLines(samples, count) })
    report.targets.push(
      atLeast(`mastra / eddy, ${title}`, paired(samples.mastra.wall, samples.eddy.wall), 12)
    )
    if (isControlled) report.controls.push(againstItself(samples, control, `${title}: mastra`))
  }
  return report
}
