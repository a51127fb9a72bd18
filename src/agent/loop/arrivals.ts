/** What has arrived for the conversation of a run since its last step: outcomes of background tasks. */
import * as Effect from "effect/Effect"
import { lazily } from "../../protocol/lazily.js"
import type { Message } from "../../protocol/Message.js"
import type { Run } from "./run.js"

/** Loaded by the first run whose conversation holds a task. */
const arrivedOutcomes = lazily(() => import("../tasks/arrivedOutcomes.js"))

/** Whether a part of these messages is of a task that another run has dispatched. */
const holdTasks = <R>({ tasks }: Run<R>, messages: ReadonlyArray<Message>): boolean =>
  messages.some(
    message =>
      message.role === "tool" &&
      message.content.some(
        ({ providerOptions, toolCallId }) =>
          providerOptions?.["eddy"]?.["backgroundTask"] !== undefined && tasks?.calls.has(toolCallId) !== true
      )
  )

/**
 * Takes what has arrived: outcomes of the run's own tasks at once, those of other runs' tasks from the thread, where every process
 * puts them. `undefined`: nothing has to be read.
 */
export const takeArrivals = <R>(run: Run<R>): Effect.Effect<void> | undefined => {
  const { added, input, thread } = run
  run.tasks?.tell(added)
  if (thread === undefined || !(holdTasks(run, input) || holdTasks(run, added))) return undefined
  return Effect.flatMap(arrivedOutcomes, ({ takeOutcomes }) => takeOutcomes(run, thread))
}
