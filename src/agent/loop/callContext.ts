/** What a tool knows of a call that runs here, and what it may do for it. */
import * as Effect from "effect/Effect"
import type { AnsweredCall } from "../../model/Answer.js"
import { logDebug, logWarning } from "../../protocol/logging.js"
import type { Message } from "../../protocol/Message.js"
import type { DataPart, ToolContext } from "../../tool/ToolContext.js"
import type { Run } from "./run.js"

/** What a call was laid aside with, and what it was resumed with. */
export interface Resumed {
  readonly resumeData: unknown
  readonly suspendData: unknown
}

/** A call that is executed. */
interface Served {
  readonly call: AnsweredCall
  /** The prompt that the model answered with it. */
  readonly messages: ReadonlyArray<Message>
  /** Whether it has ended: nobody hears what it writes. */
  readonly isOver: () => boolean
  readonly tell: (output: unknown) => void
}

/** The context of a call. */
export const contextOf = <R>(
  { agentId, emit, inbox, requestContext, resourceId, runId, thread }: Run<R>,
  { call, isOver, messages, tell }: Served,
  signal: () => AbortSignal,
  suspend: (data: unknown) => void,
  resumed: Resumed | undefined
): ToolContext => {
  const { toolCallId, toolName } = call.chunk.payload
  const room = Effect.async<void>(resume => {
    if (inbox.hasRoom(() => resume(Effect.void))) resume(Effect.void)
  })
  const whileRunning = (write: () => void): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (isOver()) {
        return logDebug(`Tool "${toolName}" wrote after its call ${toolCallId} had ended: dropped.`)
      }
      write()
      return inbox.isFull ? room : Effect.void
    })
  return {
    agentId,
    runId,
    toolCallId,
    toolName,
    threadId: thread?.id,
    resourceId,
    requestContext,
    get abortSignal() {
      return signal()
    },
    messages,
    taskId: undefined,
    resumeData: resumed?.resumeData,
    suspendData: resumed?.suspendData,
    suspend: data => Effect.async<never>(() => suspend(data)),
    write: output => whileRunning(() => tell(output)),
    writeData: (part: DataPart) => {
      const isData = typeof part?.type === "string" && part.type.startsWith("data-")
      if (isData) return whileRunning(() => emit({ ...part, runId, from: "USER" }))
      return logWarning(`Tool "${toolName}" wrote a part whose type does not begin with "data-": dropped.`)
    }
  }
}
