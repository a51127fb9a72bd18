/** Invariant 11: what a run leaves behind, counted. */
import { turn } from "../agent/kit.js"
import type { Faults } from "./checks.js"
import type { Told } from "./told.js"

/** Timers, and what waits for the next turn. Those that the test runner has are its own: it took the functions before. */
const pending = new Set<unknown>()

type Timer = "setTimeout" | "setInterval" | "setImmediate"

const watch = (set: Timer, clear: "clearTimeout" | "clearInterval" | "clearImmediate"): void => {
  const real: (callback: (...rest: ReadonlyArray<unknown>) => void, ...rest: Array<never>) => unknown =
    globalThis[set]
  const forget: (timer: never) => void = globalThis[clear]
  const watched = (callback: (...rest: ReadonlyArray<unknown>) => void, ...rest: Array<never>): unknown => {
    const timer = real(
      (...given) => {
        if (set !== "setInterval") pending.delete(timer)
        callback(...given)
      },
      ...rest
    )
    pending.add(timer)
    return timer
  }
  // `promisify` looks for its own form of them.
  Object.defineProperties(watched, Object.getOwnPropertyDescriptors(real))
  Object.assign(globalThis, {
    [set]: watched,
    [clear]: (timer: never) => {
      pending.delete(timer)
      forget(timer)
    }
  })
}

watch("setTimeout", "clearTimeout")
watch("setInterval", "clearInterval")
watch("setImmediate", "clearImmediate")

const timers = (): number => pending.size

/** How many there are when nothing is going on: the fewest of some turns, as what came before may still be ending. */
export const quietTimers = async (): Promise<number> => {
  let fewest = Number.POSITIVE_INFINITY
  for (let count = 0; count < 10; count++) {
    await turn()
    fewest = Math.min(fewest, timers())
  }
  return fewest
}

/** Turns of the event loop that whatever has been stopped may take to be gone. */
const grace = 200

const waitUntil = async (isSo: () => boolean): Promise<boolean> => {
  for (let count = 0; count < grace && !isSo(); count++) await turn()
  return isSo()
}

/** What is left of a run that is over. */
export const left = async ({ fibers, world }: Told, before: number): Promise<Faults> => {
  const count = async (what: string, now: () => number): Promise<Faults> =>
    (await waitUntil(() => now() <= 0)) ? [] : [`${now()} ${what}`]
  return [
    ...(fibers === 0 ? [] : [`${fibers} fibers`]),
    ...(await count("listeners of the signal", () => world.listening)),
    ...(await count("open sources", () => world.openSources.size)),
    ...(await count("sleepers of the clock", () => world.clock.sleeping)),
    ...(await count("timers", () => timers() - before))
  ]
}
