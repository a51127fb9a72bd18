import { random } from "./random.mjs"

export const median = values => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

export const quantile = (values, at) => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(at * sorted.length))]
}

/** The median with its bootstrap 95 % interval (2 000 resamples, seeded). */
export const interval = values => {
  const draw = random(values.length)
  const medians = Array.from({ length: 2000 }, () =>
    median(values.map(() => values[Math.floor(draw() * values.length)]))
  )
  return { median: median(values), low: quantile(medians, 0.025), high: quantile(medians, 0.975) }
}

/** One ratio for each repetition: both runs of a pair met the same machine, so most of its noise cancels. */
export const paired = (over, under) => over.map((value, at) => value / under[at])
