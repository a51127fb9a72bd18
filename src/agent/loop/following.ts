/** Runs that follow an abort signal. */
import type { RunControl } from "./run.js"

/** Runs by the signal that they follow. */
const followers = new WeakMap<AbortSignal, Set<RunControl>>()

/** Tells every run that follows the signal. One function for all of them, so that a signal has it as a listener once. */
function tellFollowers(this: AbortSignal): void {
  for (const control of followers.get(this) ?? []) control.abort(this.reason)
}

/**
 * Aborts when the signal does, until `release` is called. A signal that many runs share has one listener, and none when
 * the last of them has ended.
 */
export const follow = (signal: AbortSignal | undefined, control: RunControl): (() => void) => {
  if (signal === undefined) return () => undefined
  if (signal.aborted) {
    control.abort(signal.reason)
    return () => undefined
  }
  const controls = followers.get(signal) ?? new Set()
  followers.set(signal, controls.add(control))
  signal.addEventListener("abort", tellFollowers, { once: true })
  return () => {
    controls.delete(control)
    if (controls.size === 0) signal.removeEventListener("abort", tellFollowers)
  }
}
