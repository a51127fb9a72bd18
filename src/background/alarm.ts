/** Timers of a manager. There are some for each task, most of which never ring: they are to cost next to nothing. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import type { Fork } from "./fibers.js"

/** Rings after so many milliseconds, unless it is stopped before by what is returned. */
export type SetAlarm = (milliseconds: number, ring: () => void) => () => void

/** The clock of the platform, whose timers need no fiber. */
const platformClock = Object.getPrototypeOf(Clock.make())

/** Whether a clock is the platform's, and no test's. */
export const isPlatform = (clock: Clock.Clock): boolean => Object.getPrototypeOf(clock) === platformClock

/** Alarms by this clock. */
export const make = (clock: Clock.Clock, fork: Fork): SetAlarm => {
  if (isPlatform(clock)) {
    return (milliseconds, ring) => {
      const timer = setTimeout(ring, milliseconds)
      return () => clearTimeout(timer)
    }
  }
  return (milliseconds, ring) => {
    const fiber = fork(Effect.map(clock.sleep(Duration.millis(milliseconds)), ring))
    return () => fiber.unsafeInterruptAsFork(FiberId.none)
  }
}
