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
  const ready = await contender.prepare?.()
  await settle()
  const sample = await timed(() => contender.run(ready))
  await contender.after?.(ready)
  return sample
}

/**
 * Calls `round` as often as asked. While the two samples named by `control`, the same system twice, disagree by
 * more than 5 % the machine is too restless: then on, up to three times as often or until the time is over.
 * Nothing is discarded, and only the control decides this, never a result.
 */
export const rounds = async ({ repetitions, samples, control, seconds = 45 }, round) => {
  const deadline = performance.now() + seconds * 1000
  const restless = () =>
    control && performance.now() < deadline && !within(samples[control[0]], samples[control[1]], 0.05)
  for (let done = 0; done < repetitions || (done < repetitions * 3 && restless()); done++) await round()
}

/** `contenders`: { label: { warm, again, prepare, run, after } }; what `prepare` and `after` do is off the clock. */
export const contest = async ({ contenders, control, repetitions, seed = 11 }) => {
  const labels = Object.keys(contenders)
  const draw = random(seed)
  const samples = Object.fromEntries(labels.map(label => [label, { wall: [], cpu: [] }]))
  for (const label of shuffle(labels, draw)) await contenders[label].warm()

  await rounds({ repetitions, samples, control }, async () => {
    for (const label of shuffle(labels, draw)) {
      const { wall, cpu } = await measure(contenders[label])
      samples[label].wall.push(wall)
      samples[label].cpu.push(cpu)
    }
  })
  return samples
}
