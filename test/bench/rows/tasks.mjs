import { contest } from "../kit/contest.mjs"
import { number } from "../kit/format.mjs"
import { freshTasks, taskHead, taskLines } from "../kit/freshTasks.mjs"
import { paired } from "../kit/statistics.mjs"
import { taskContender } from "../kit/tasks.mjs"
import { againstItself, atLeast } from "../kit/verdict.mjs"
import { eddy } from "../systems/eddyTasks.mjs"
import { mastra } from "../systems/mastraTasks.mjs"

const count = 1000
const concurrencies = [10, 100]
const control = ["mastra", "mastra again"]
const fresh = { eddy: "eddy", mastra: "mastra", "mastra again": "mastra" }

/** How many finished tasks a manager has in its store that has been at work for a while. */
const kept = 5000

export const run = async ({ repetitions = 11 }) => {
  const report = { tables: [], targets: [], controls: [], samples: {} }
  const add = (title, samples, target) => {
    report.samples[title] = samples
    report.tables.push({ title, head: taskHead, lines: taskLines(samples, count) })
    report.targets.push(
      atLeast(`mastra / eddy, ${title}`, paired(samples.mastra.wall, samples.eddy.wall), target)
    )
    report.controls.push(againstItself(samples, control, `${title}: mastra`))
  }
  for (const concurrency of concurrencies) {
    const samples = await freshTasks({
      names: fresh,
      control,
      repetitions: Math.min(repetitions, 7),
      count,
      concurrency,
      tool: "at once"
    })
    add(`fresh processes, ${concurrency} at a time`, samples, 3)
  }
  for (const concurrency of concurrencies) {
    const contenders = {
      eddy: taskContender(eddy, { count, concurrency }),
      mastra: taskContender(mastra, { count, concurrency }),
      "mastra again": taskContender(mastra, { count, concurrency })
    }
    const samples = await contest({ contenders, control, repetitions })
    add(`warm, a new manager each time, ${concurrency} at a time`, samples, 10)
  }
  const [concurrency] = concurrencies
  const contenders = {
    eddy: taskContender(eddy, { count, concurrency, kept }),
    mastra: taskContender(mastra, { count, concurrency, kept }),
    "mastra again": taskContender(mastra, { count, concurrency, kept })
  }
  const samples = await contest({ contenders, control, repetitions: Math.min(repetitions, 5) })
  add(`warm, a manager whose store has ${number(kept)} finished tasks, ${concurrency} at a time`, samples, 10)
  return report
}
