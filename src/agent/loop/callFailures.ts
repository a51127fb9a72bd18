/** Why calls are not executed, or are stopped: what the model is told. */
import { ToolCallCutOff, ToolNotFound, ToolTimedOut } from "../../protocol/Errors.js"

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
