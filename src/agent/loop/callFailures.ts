/** Why calls are not executed, or are stopped: what the model is told. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { AnsweredCall } from "../../model/Answer.js"
import { ToolCallCutOff, ToolNotFound, ToolTimedOut } from "../../protocol/Errors.js"
import { squash } from "../../protocol/foreignValue.js"
import { logError } from "../../protocol/logging.js"
import { messageOf } from "../../protocol/safeJson.js"
import { forkToEnd, type Run } from "./run.js"

/** Why the calls of an answer that was cut off are not executed. */
export const cutOffBecause =
  (reason: "length" | "content-filter") =>
  (toolName: string): ToolCallCutOff =>
    new ToolCallCutOff({
      toolName,
      message:
        reason === "length"
          ? `Tool "${toolName}" was not executed: the token limit cut the answer off, its arguments may be incomplete.`
          : `Tool "${toolName}" was not executed: a content filter cut the answer off.`
    })

/** It took too long. */
export const timedOut = (toolName: string, milliseconds: number): ToolTimedOut =>
  new ToolTimedOut({
    toolName,
    milliseconds,
    message: `Tool "${toolName}" was stopped: it took longer than its ${milliseconds} ms.`
  })

/** The model has made it up, or it is not active. */
export const notFound = (toolName: string, available: ReadonlyArray<string>): ToolNotFound =>
  new ToolNotFound({
    toolName,
    available,
    message:
      available.length === 0
        ? `There is no tool "${toolName}": no tools are available.`
        : `There is no tool "${toolName}". Available tools: ${available.join(", ")}.`
  })

/** Writes a tool that died to the log. What a tool fails with is for the model, and is not logged. */
export const logDefect = <R>(run: Run<R>, { chunk }: AnsweredCall, cause: Cause.Cause<unknown>): void => {
  if (!Cause.isDie(cause)) return
  const { agentId, runId } = run
  const { toolCallId, toolName } = chunk.payload
  const line = logError(
    `Tool "${toolName}" of agent "${agentId}" died in run ${runId}: ${messageOf(squash(cause))}`,
    cause
  )
  forkToEnd(run, Effect.annotateLogs(line, { toolCallId, toolName, runId, agentId }))
}
