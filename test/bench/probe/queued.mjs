// A fresh process: the heap of a task that waits for a slot, its row in the memory store included, and how long a dispatch takes
// while so many wait.
import { answer } from "../kit/child.mjs"
import { turnOfLoop } from "../kit/contest.mjs"
import { median, quantile } from "../kit/statistics.mjs"
import { atOnce, closeTasks, openTasks, runTasks } from "../kit/tasks.mjs"
import { eddy } from "../systems/eddyTasks.mjs"

const waiting = Number(process.argv[2])
const concurrency = 10
const shots = 500

const heap = async () => {
  for (let at = 0; at < 4; at++) {
    for (let turn = 0; turn < 20; turn++) await turnOfLoop()
    globalThis.gc()
  }
  return process.memoryUsage().heapUsed
}

answer(async () => {
  // what is compiled is not counted to the tasks
  for (let at = 0; at < 3; at++) {
    const manager = await openTasks(eddy, { concurrency })
    await runTasks(manager, 1000, atOnce)
    await closeTasks(manager)
  }
  const manager = await openTasks(eddy, { concurrency, readers: 1 })
  let open
  const gate = new Promise(resolve => {
    open = resolve
  })
  const behindGate = async ({ n }) => {
    await gate
    return { sum: n + 1 }
  }
  await manager.dispatch(concurrency, behindGate)
  const before = await heap()
  await manager.dispatch(waiting, behindGate)
  const perTask = ((await heap()) - before) / waiting

  const walls = []
  for (let at = 0; at < shots; at++) {
    const start = performance.now()
    await manager.dispatch(1, behindGate)
    walls.push(performance.now() - start)
  }
  const [{ completed }] = manager.audience.heard
  if (completed !== 1) throw new Error(`${completed} tasks are done, and should wait`)
  open()
  return { perTask, middle: median(walls), late: quantile(walls, 0.99) }
})
