/** Whether a run, and the stream that it is a turn of, has come to rest: what its tasks have come to was answered. */
import type { Run } from "../loop/run.js"
import { settledIn } from "./outcomes.js"
import type { RunTasks } from "./runTasks.js"

/**
 * Whether a task waits for a slot, runs or is suspended; of a turn of an until-idle stream also whether one has settled that
 * another turn will answer.
 */
export const isUnsettled = <R>({ input }: Run<R>, { answered, calls }: RunTasks<R>): boolean => {
  const own = [...calls.values()]
  if (own.some(({ dispatched }) => dispatched.outcome() === undefined)) return true
  if (answered === undefined) return false
  const open = [...answered.unanswered]
  if (open.length === 0) return false
  // What other turns have begun stood in the conversation before the model was asked, when it is answered in this one.
  const told = settledIn(input)
  return open.some(({ taskId }) => !told.has(taskId))
}
