/** Chunks that open, close and judge a run and its steps. */
import * as Schema from "effect/Schema"
import {
  chunk,
  envelope,
  Milliseconds,
  OpenKey,
  openRecord,
  optional,
  providerMetadata
} from "./chunkShape.js"
import { ToolCallPayload } from "./chunkTool.js"
import { FinishReason } from "./FinishReason.js"
import * as Json from "./Json.js"
import { Message, UIMessage } from "./Message.js"
import { Usage } from "./Usage.js"

/** What a provider warns of: a setting it ignores, a feature it emulates. */
export const Warning = openRecord({ type: Schema.String })

export type Warning = typeof Warning.Type

/** What a provider says about one response. */
export const ResponseInfo = Schema.Struct({
  id: optional(Schema.String),
  timestamp: optional(Schema.Date),
  modelId: optional(Schema.String),
  headers: optional(Schema.Record({ key: OpenKey, value: Schema.String }))
})

export type ResponseInfo = typeof ResponseInfo.Type

/** What was asked of the model: which one, with which tools; the provider's own `body` when the caller asked for it. */
export const RequestInfo = openRecord({
  provider: optional(Schema.String),
  modelId: optional(Schema.String),
  body: optional(Json.SafeUnknown)
})

export type RequestInfo = typeof RequestInfo.Type

const stepResult = Schema.Struct({
  reason: FinishReason,
  rawReason: optional(Schema.String),
  isContinued: Schema.Boolean,
  warnings: optional(Schema.Array(Warning)),
  stoppedBy: optional(Schema.Literal("max-steps", "stop-when", "client-tool"))
})

const metadata = openRecord({ provider: optional(Schema.String), modelId: optional(Schema.String) })

const Start = chunk(
  "start",
  openRecord({ agentId: optional(Schema.String), messageId: optional(Schema.String) })
)

const StepStart = chunk("step-start", {
  messageId: optional(Schema.String),
  request: RequestInfo,
  warnings: optional(Schema.Array(Warning))
})

const StepFinish = chunk("step-finish", {
  id: optional(Schema.String),
  messageId: optional(Schema.String),
  stepResult,
  output: Schema.Struct({
    text: Json.Text,
    toolCalls: Schema.Array(ToolCallPayload),
    usage: Usage,
    /** Whether `text` is only the beginning: see `replay: false`. */
    isTruncated: optional(Schema.Boolean)
  }),
  metadata,
  totalUsage: optional(Usage),
  response: optional(ResponseInfo),
  ...providerMetadata
})

const Finish = chunk("finish", {
  stepResult,
  output: openRecord({ usage: Usage, text: Json.Text, isTruncated: optional(Schema.Boolean) }),
  metadata,
  messages: Schema.Struct({
    all: Schema.Array(Message),
    user: Schema.Array(Message),
    nonUser: Schema.Array(Message)
  }),
  response: Schema.Struct({
    ...ResponseInfo.fields,
    messages: Schema.Array(Message),
    uiMessages: Schema.Array(UIMessage)
  })
})

const ErrorChunk = chunk("error", { error: Json.ErrorValue })

const Abort = chunk("abort", openRecord({ reason: optional(Json.SafeUnknown) }))

/** A structured value: partial, or at last the validated one. The only chunk without a payload. */
const ObjectChunk = Schema.Struct({
  type: Schema.Literal("object"),
  ...envelope,
  object: Json.SafeUnknown
}).annotations({ identifier: "Chunk(object)" })

const Watch = chunk(
  "watch",
  openRecord({ workflowState: optional(Json.SafeRecord), eventTimestamp: optional(Schema.Finite) })
)

/** An evaluation of an answer by the objective of its thread. */
const Goal = chunk("goal", {
  objective: Json.Text,
  /** Evaluations of the objective so far, this one included: of all runs of the thread. */
  iteration: Schema.NonNegativeInt,
  maxRuns: Schema.NonNegativeInt,
  passed: Schema.Boolean,
  /** Of the objective after this evaluation: the run goes on as long as it is `active`. */
  status: Schema.Literal("active", "paused", "done"),
  /** What each of those said who judged: `scorerId`, `scorerName`, `score`, `passed`, `reason?`, `duration`. */
  results: Schema.Array(Json.SafeUnknown),
  /** What the model is told when it goes on, or why the objective is paused. */
  reason: optional(Json.Text),
  duration: Milliseconds,
  timedOut: Schema.Boolean,
  maxRunsReached: Schema.Boolean,
  /** Whether the feedback is kept out of the thread: an agent of eddy always does. */
  suppressFeedback: Schema.Boolean
})

const Tripwire = chunk("tripwire", {
  reason: Json.Text,
  retry: optional(Schema.Boolean),
  metadata: optional(Json.SafeUnknown),
  processorId: optional(Schema.String)
})

export const LifecycleChunks = [
  Start,
  StepStart,
  StepFinish,
  Finish,
  ErrorChunk,
  Abort,
  ObjectChunk,
  Watch,
  Goal,
  Tripwire
] as const
