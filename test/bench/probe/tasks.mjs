// A fresh process: one batch of tasks, cold but for the one that opened the manager; no longer than it may take.
import { answer } from "../kit/child.mjs"
import { timed } from "../kit/contest.mjs"
import { atOnce, closeTasks, inAMillisecond, openTasks, runTasks } from "../kit/tasks.mjs"

const [name, count, concurrency, tool, limit, file] = process.argv.slice(2)

answer(async () => {
  const { [name]: system } = await import(`../systems/${name}Tasks.mjs`)
  const manager = await openTasks(system, { concurrency: Number(concurrency), file })
  const late = new Promise(resolve => setTimeout(resolve, Number(limit) * 1000, "late"))
  let end
  const sample = await timed(async () => {
    const run = runTasks(manager, Number(count), tool === "slow" ? inAMillisecond : atOnce)
    end = await Promise.race([run, late])
  })
  if (end === "late") return { ...sample, late: true, done: manager.audience.heard[0].completed }
  await closeTasks(manager)
  return sample
})
