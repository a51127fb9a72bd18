/** Outcomes of other runs' tasks that have come into the thread of a run since its last step. */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { taskOf } from "../../background/taskChunks.js"
import { logWarning } from "../../protocol/logging.js"
import type { Message, ToolResultPart } from "../../protocol/Message.js"
import type { Run } from "../loop/run.js"
import type { RunThread } from "../runThread.js"
import { isSettledPart } from "./outcomes.js"
import { settledMessage } from "./settled.js"

/** Parts that stand for tasks of other runs without an outcome, by the ids of the tasks. */
const openParts = <R>({ added, input, tasks }: Run<R>): ReadonlyMap<string, ToolResultPart> => {
  const open = new Map<string, ToolResultPart>()
  for (const message of [...input, ...added]) {
    if (message.role !== "tool") continue
    for (const part of message.content) {
      const task = taskOf(part)
      if (task === undefined || isSettledPart(part) || tasks?.calls.has(part.toolCallId) === true) continue
      open.set(task.taskId, part)
    }
  }
  return open
}

/** The messages with these outcomes in the place of what stood for their tasks. */
const withOutcomes = (
  messages: ReadonlyArray<Message>,
  outcomes: ReadonlyMap<string, ToolResultPart>
): Array<Message> =>
  messages.map(message => {
    if (message.role !== "tool") return message
    const content = message.content.map(part => outcomes.get(taskOf(part)?.taskId ?? "") ?? part)
    return content.some((part, index) => part !== message.content[index]) ? { ...message, content } : message
  })

/** Puts outcomes into the conversation, and tells the model of them once. */
const take = <R>(run: Run<R>, outcomes: ReadonlyMap<string, ToolResultPart>): void => {
  if (outcomes.size === 0) return
  run.input = withOutcomes(run.input, outcomes)
  run.added.splice(0, run.added.length, ...withOutcomes(run.added, outcomes))
  const tasks = Array.from(outcomes, ([id, part]) => ({ ...part, id, status: taskOf(part)?.status }))
  run.note = { message: settledMessage(tasks), after: run.added.length }
}

/** The outcomes that the thread has of these tasks. A store that fails is logged: the outcomes are there for the next run. */
const arrived = ({ id, store }: RunThread, open: ReadonlyMap<string, ToolResultPart>) =>
  Effect.gen(function* () {
    const outcomes = new Map<string, ToolResultPart>()
    for (const [taskId, { toolCallId }] of open) {
      const isOutcome = (part: ToolResultPart) => taskOf(part)?.taskId === taskId && isSettledPart(part)
      const found = yield* store.outcome(id, toolCallId, isOutcome)
      if (Option.isSome(found)) outcomes.set(taskId, found.value)
    }
    return outcomes
  }).pipe(
    Effect.catchAll(error =>
      Effect.as(
        logWarning(`Outcomes that have arrived in thread ${id} could not be read: ${error.message}`, error),
        new Map<string, ToolResultPart>()
      )
    )
  )

/** Puts outcomes of other runs' tasks, which have come into the thread since, into the conversation of the run. */
export const takeOutcomes = <R>(run: Run<R>, thread: RunThread): Effect.Effect<void> =>
  Effect.map(arrived(thread, openParts(run)), outcomes => take(run, outcomes))
