// Targets and controls. A target is met only if the whole 95 % interval of the paired ratio is on its good side.
import { interval, paired } from "./statistics.mjs"

const judge = (label, values, sense, target, aim, unit = "x") => {
  const { median, low, high } = interval(values)
  const met = sense === "at least" ? low >= target : high <= target
  return { label, sense, target, aim, unit, median, low, high, met }
}

export const atLeast = (label, values, target, aim, unit) =>
  judge(label, values, "at least", target, aim, unit)
export const atMost = (label, values, target, aim, unit) => judge(label, values, "at most", target, aim, unit)

/** One system against itself: within 5 % it is a machine to trust, within 10 % it is noted, beyond the row is void. */
const control = (label, first, second) => {
  const { median, low, high } = interval(paired(first.wall, second.wall))
  const off = Math.abs(median - 1)
  return {
    label,
    median,
    low,
    high,
    repetitions: first.wall.length,
    state: off <= 0.05 ? "ok" : off <= 0.1 ? "noisy" : "void"
  }
}

export const againstItself = (samples, [first, second], label = first) =>
  control(`${label} against itself`, samples[first], samples[second])
