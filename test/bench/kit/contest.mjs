// All contenders once per repetition, in a new order each time, in one warm process.
import { random, shuffle } from "./random.mjs"
import { median, paired } from "./statistics.mjs"

export const turnOfLoop = () => new Promise(setImmediate)

const settle = async () => {
  for (let turn = 0; turn < 5; turn++) await turnOfLoop()
}

/** Wall and main-thread processor time, in milliseconds. */
export const timed = async work => {
  const before = process.threadCpuUsage()
  const start = performance.now()
  await work()
  const wall = performance.now() - start
  const { user, system } = process.threadCpuUsage(before)
  return { wall, cpu: (user + system) / 1000 }
}

const within = ({ wall: first }, second, tolerance) =>
  Math.abs(median(paired(first, second.wall)) - 1) <= tolerance

const measure = async contender => {
  // Nobody pays for another's garbage; a short run after the collection makes the path warm again.
  globalThis.gc?.()
  await contender.again()
  await settle()
  return timed(contender.run)
}

/**
 * `contenders`: { label: { warm, again, run } }. `control` names two that are the same system: while they
 * disagree by more than 5 % the machine is too restless, and everyone gets more repetitions, up to three times
 * as many. Nothing is discarded. Only the control decides that, never a result.
 */
export const contest = async ({ contenders, control, repetitions, seed = 11, seconds = 120 }) => {
  const labels = Object.keys(contenders)
  const draw = random(seed)
  const deadline = performance.now() + seconds * 1000
  const samples = Object.fromEntries(labels.map(label => [label, { wall: [], cpu: [] }]))
  for (const label of shuffle(labels, draw)) await contenders[label].warm()

  const restless = () => control && !within(samples[control[0]], samples[control[1]], 0.05)
  for (let done = 0; done < repetitions || (done < repetitions * 3 && restless()); done++) {
    if (done >= repetitions && performance.now() > deadline) break
    for (const label of shuffle(labels, draw)) {
      const { wall, cpu } = await measure(contenders[label])
      samples[label].wall.push(wall)
      samples[label].cpu.push(cpu)
    }
  }
  return samples
}
