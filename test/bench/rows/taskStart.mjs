import { turnOfLoop } from "../kit/contest.mjs"
import { number, times } from "../kit/format.mjs"
import { random, shuffle } from "../kit/random.mjs"
import { interval, median, paired, quantile } from "../kit/statistics.mjs"
import { closeTasks, openTasks, runTasks } from "../kit/tasks.mjs"
import { againstItself, atLeast } from "../kit/verdict.mjs"
import { eddy } from "../systems/eddyTasks.mjs"
import { mastra } from "../systems/mastraTasks.mjs"

const shots = 100
const warmUp = 10
const control = ["mastra", "mastra again"]
const systems = { eddy, mastra, "mastra again": mastra }

/** From the call of dispatch until the tool is called, which is when the task is stored as running. */
const shot = async manager => {
  let started
  const tool = async ({ n }) => {
    started = performance.now()
    return { sum: n + 1 }
  }
  const start = performance.now()
  await runTasks(manager, 1, tool)
  const wall = started - start
  // what a task still does behind its end must not fall into the next one's time
  for (let turn = 0; turn < 3; turn++) await turnOfLoop()
  return wall
}

/** One task after the other, on a manager that does nothing else. */
const volley = async system => {
  const manager = await openTasks(system, { concurrency: 10 })
  const walls = []
  for (let at = -10; at < shots; at++) {
    const wall = await shot(manager)
    if (at >= 0) walls.push(wall)
  }
  await closeTasks(manager)
  return walls
}

export const run = async ({ repetitions = 15 }) => {
  const draw = random(23)
  const samples = Object.fromEntries(Object.keys(systems).map(label => [label, { wall: [], late: [] }]))
  for (let at = -warmUp; at < repetitions; at++) {
    for (const label of shuffle(Object.keys(systems), draw)) {
      const walls = await volley(systems[label])
      if (at < 0) continue
      samples[label].wall.push(median(walls))
      samples[label].late.push(quantile(walls, 0.99))
    }
  }
  const over = (label, key) => paired(samples[label][key], samples.eddy[key])
  return {
    tables: [
      {
        title: `from dispatch to the call of the tool, ${repetitions} times ${shots} tasks, one after the other`,
        head: ["", "median us", "p99 us", "over eddy, median", "over eddy, p99"],
        lines: Object.entries(samples).map(([label, { late, wall }]) => [
          label,
          number(median(wall) * 1000),
          number(median(late) * 1000),
          label === "eddy" ? "" : times(interval(over(label, "wall"))),
          label === "eddy" ? "" : times(interval(over(label, "late")))
        ])
      }
    ],
    targets: [
      atLeast("mastra / eddy, median", over("mastra", "wall"), 5),
      atLeast("mastra / eddy, p99", over("mastra", "late"), 5)
    ],
    controls: [againstItself(samples, control)],
    samples
  }
}
