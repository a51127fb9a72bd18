/** What a run came to, as the JSON that clients of `generate` read. */
import * as Effect from "effect/Effect"
import type { FullOutput } from "../output/FullOutput.js"
import type { PendingCall } from "../output/PendingCall.js"
import * as RunFold from "../output/RunFold.js"
import { partId } from "../protocol/Conversation.js"
import { stringify } from "../protocol/safeJson.js"
import { Refusal } from "./refusal.js"
import type { LogReader } from "./replayLog.js"
import type { Reading } from "./runs.js"

const payloads = <P>(chunks: ReadonlyArray<{ readonly payload: P }>): ReadonlyArray<P> =>
  chunks.map(({ payload }) => payload)

/** The first call that waits. */
const suspendPayload = ([first]: ReadonlyArray<PendingCall> = []) => {
  if (first === undefined) return {}
  const { kind: _, resumeSchema, ...payload } = first
  return {
    suspendPayload: {
      ...payload,
      ...(resumeSchema === undefined ? {} : { resumeSchema: stringify(resumeSchema) })
    }
  }
}

/** The whole of a run. Calls and results are chunks, as in a stream. */
const toBody = (full: FullOutput) => {
  const { messageId, status, steps, ...rest } = full
  // With the ids that they have in the thread: who sends them back with results of its own tools says nothing twice.
  const messages = full.response.messages.map((message, index) => ({
    id: partId(messageId, index),
    ...message
  }))
  return {
    ...rest,
    response: { ...full.response, messages },
    ...(full.reasoning === undefined ? {} : { reasoningText: full.reasoning }),
    steps: steps.map(step => ({
      ...step,
      toolCalls: payloads(step.toolCalls),
      toolResults: payloads(step.toolResults)
    })),
    request: {},
    messageId,
    status,
    messages,
    ...suspendPayload(full.pendingCalls)
  }
}

/** Waits until there is something to read. */
export const news = (reader: LogReader): Effect.Effect<void> =>
  Effect.async<void>(resume => {
    if (reader.hasNews) return resume(Effect.void)
    const forget = reader.wait(() => resume(Effect.void))
    return Effect.sync(forget)
  })

/**
 * Reads the first run of a reading to its end. A run that failed is a refusal, and so is one without the value that its client
 * asks for.
 */
export const collect = Effect.fnUntraced(function* ({ reader, run }: Reading, isValueNeeded = false) {
  let fold = RunFold.make(run.id)
  for (;;) {
    for (const { chunk } of reader.take(64)) {
      if (chunk.type === "start") fold = RunFold.make(chunk.runId)
      fold.push(chunk)
      if (chunk.type === "finish") return yield* finished(fold.snapshot(), isValueNeeded)
    }
    if (reader.isTooLate || (reader.isDone && reader.end?._tag === "Told")) {
      return yield* new Refusal({ status: 424, message: "The run ended before it had finished." })
    }
    if (reader.isDone) {
      const message = reader.end?._tag === "Broken" ? reader.end.message : "The run failed."
      return yield* new Refusal({ status: 424, message })
    }
    yield* news(reader)
  }
})

/** Where the value is missing: the text may be in the middle of a sentence, or of JSON. */
const noValue = ({ message }: Error): Refusal =>
  new Refusal({
    status: 424,
    message: "The answer has no valid value.",
    issues: [{ field: "structuredOutput", message }]
  })

const finished = (full: FullOutput, isValueNeeded: boolean) => {
  switch (full.status) {
    case "failed":
      // No 5xx, which clients repeat: the tools of this run have done what they did. A run of a busy thread has done nothing.
      return new Refusal({
        status: full.error?.name === "ThreadBusy" ? 409 : 424,
        message: full.error?.message ?? "The run failed."
      })
    case "aborted":
      return new Refusal({ status: 409, message: "The run was stopped." })
    case "success":
      if (isValueNeeded && full.objectError !== undefined) return noValue(full.objectError)
      return Effect.succeed(toBody(full))
    default:
      return Effect.succeed(toBody(full))
  }
}
