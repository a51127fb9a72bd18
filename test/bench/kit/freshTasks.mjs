// Batches of tasks, each in a fresh process, and with `disk` in a database of its own that is deleted afterwards.
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { ask } from "./child.mjs"
import { rounds } from "./contest.mjs"
import { number, times } from "./format.mjs"
import { random, shuffle } from "./random.mjs"
import { interval, median, paired } from "./statistics.mjs"

const file = new URL("../probe/tasks.mjs", import.meta.url)

/** Seconds for one batch. One that is stopped counts as if it had been done then, which flatters whoever was late. */
const limit = 60

const probe = async (name, { concurrency, count, disk, tool }) => {
  const folder = disk ? await mkdtemp(join(tmpdir(), "eddy-bench-")) : undefined
  const args = [name, count, concurrency, tool, limit, ...(folder ? [join(folder, "tasks.db")] : [])]
  try {
    const sample = await ask(file, args, { seconds: limit + 30, quiet: true })
    if (sample.failed) throw new Error(`${name}: ${sample.failed}`)
    return sample
  } finally {
    if (folder) await rm(folder, { recursive: true, force: true })
  }
}

/** `names`: { label: name of the system }. */
export const freshTasks = async ({ control, names, repetitions, seed = 19, ...work }) => {
  const draw = random(seed)
  const labels = Object.keys(names)
  const samples = Object.fromEntries(labels.map(label => [label, { wall: [], cpu: [], done: [] }]))
  await rounds({ repetitions, samples, control, seconds: 60 }, async () => {
    for (const label of shuffle(labels, draw)) {
      const { cpu, done = work.count, wall } = await probe(names[label], work)
      samples[label].wall.push(wall)
      samples[label].cpu.push(cpu)
      samples[label].done.push(done)
    }
  })
  return samples
}

/** Whether some batch of a system was late. */
const isLate = ({ done }, count) => done?.some(number => number < count)

export const taskHead = ["", "tasks/s", "ms wall", "cpu", "over eddy, wall", "over eddy, cpu"]

export const taskLines = (samples, count) =>
  Object.entries(samples).map(([label, sample]) => {
    const late = isLate(sample, count)
    const over = key => {
      if (label === "eddy") return ""
      return `${late ? "> " : ""}${times(interval(paired(sample[key], samples.eddy[key])))}`
    }
    return [
      late ? `${label} (${Math.min(...sample.done)} of ${number(count)} done)` : label,
      number(median(sample.wall.map((wall, at) => (sample.done?.[at] ?? count) / (wall / 1000)))),
      late ? `> ${number(median(sample.wall))}` : number(median(sample.wall)),
      number(median(sample.cpu)),
      over("wall"),
      over("cpu")
    ]
  })
