/** The clocks of a run and of its steps. */
import * as Effect from "effect/Effect"
import { RunTimedOut } from "../../protocol/Errors.js"
import { fork, type Run } from "./run.js"

const startTimer = <R>(run: Run<R>, limit: RunTimedOut["limit"], milliseconds: number) => {
  const expire = (): void => {
    const what = limit === "run" ? "The run" : "A step of the run"
    const message = `${what} took longer than the ${milliseconds} ms that \`timeouts.${limit}\` allows.`
    run.control.expire(new RunTimedOut({ limit, milliseconds, message }))
  }
  return fork(run, Effect.map(Effect.sleep(milliseconds), expire))
}

/** Starts the clock of the run, when it has a limit. */
export const startRunTimer = <R>(run: Run<R>): void => {
  const limit = run.settings.limits.run
  if (limit !== undefined) startTimer(run, "run", limit)
}

/** Starts the clock of the next step, when steps have a limit; that of the step before stops. */
export const startStepTimer = <R>(run: Run<R>): void => {
  run.stopStepTimer()
  const limit = run.settings.limits.step
  if (limit === undefined) return
  const stop = startTimer(run, "step", limit)
  run.stopStepTimer = () => stop(undefined)
}
