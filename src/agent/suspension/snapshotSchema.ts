/** What of a suspended run is stored. Needs schemas, so it is loaded when the first run is suspended or resumed. */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { JsonValue, ProviderMetadata } from "../../protocol/Json.js"
import { Message, ToolResultPart } from "../../protocol/Message.js"
import { Usage } from "../../protocol/Usage.js"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const JsonRecord = Schema.Record({ key: Schema.String, value: JsonValue })

/** What a call waits for: somebody's approval, or what its tool has asked for. */
const Kind = Schema.Literal("approval", "suspension")

const waitingFields = {
  toolCallId: Schema.String,
  toolName: Schema.String,
  kind: Kind,
  suspendData: optional(JsonValue),
  /** A JSON Schema. */
  resumeSchema: optional(JsonRecord)
}

/** A call of a run below that waits. Its id is that of its call, behind those of the calls that led to it. */
export const NestedCall = Schema.Struct({ ...waitingFields, args: JsonRecord })

/** A call that waits. */
const Waiting = Schema.Struct({
  status: Schema.Literal("waiting"),
  ...waitingFields,
  input: JsonValue,
  /** What the model has said about the call itself. */
  aside: optional(JsonValue),
  /** The tool is one that `prepareStep` had given this step. */
  isOfStep: optional(Schema.Boolean),
  /** The calls of the agent that it has called, which are what is waited for. */
  nested: optional(Schema.Array(NestedCall)),
  /** Who carries out a decision about it, as long as this owner has a lease on the run. */
  claim: optional(Schema.Struct({ owner: Schema.String }))
})

/** A call that has its outcome. */
const Settled = Schema.Struct({
  status: Schema.Literal("settled"),
  toolCallId: Schema.String,
  part: ToolResultPart
})

const Figure = optional(Schema.Number)

/**
 * Options of a run that hold for what follows, whoever goes on with it. Functions are not among them, and headers are not: they
 * may be secret.
 */
const KeptOptions = Schema.Struct({
  instructions: optional(Schema.String),
  maxSteps: optional(Schema.Number),
  activeTools: optional(Schema.Array(Schema.String)),
  clientTools: optional(
    Schema.Record({
      key: Schema.String,
      value: Schema.Struct({
        description: optional(Schema.String),
        inputSchema: Schema.Record({ key: Schema.String, value: JsonValue })
      })
    })
  ),
  toolChoice: optional(
    Schema.Union(
      Schema.Literal("auto", "none", "required"),
      Schema.Struct({ type: Schema.Literal("tool"), toolName: Schema.String })
    )
  ),
  modelSettings: optional(
    Schema.Struct({
      maxOutputTokens: Figure,
      temperature: Figure,
      topP: Figure,
      topK: Figure,
      presencePenalty: Figure,
      frequencyPenalty: Figure,
      stopSequences: optional(Schema.Array(Schema.String)),
      seed: Figure
    })
  ),
  providerOptions: optional(ProviderMetadata),
  /** `policy`: a function said it, which nobody can store. */
  requireToolApproval: optional(Schema.Union(Schema.Boolean, Schema.Literal("policy")))
})

/** A suspended run. */
export const Snapshot = Schema.Struct({
  version: Schema.Literal(1),
  /** The call of another run that it serves. */
  caller: optional(Schema.Struct({ runId: Schema.String, toolCallId: Schema.String })),
  /** The conversation, up to the answer that holds the calls. */
  messages: Schema.Array(Message),
  /** What the model was told of what has happened: behind so many messages, counted from the end. */
  notes: Schema.Array(Schema.Struct({ message: Message, after: Schema.Number })),
  /** The calls of the last answer that this side answers, in their order. */
  calls: Schema.Array(Schema.Union(Waiting, Settled)),
  /** What was used, how often a model was asked, and what it said. */
  usage: Usage,
  steps: Schema.NonNegativeInt,
  /** Of these steps, those up to the answer that was judged last. */
  judgedSteps: optional(Schema.NonNegativeInt),
  text: Schema.String,
  /** Options of the run that hold for what follows. */
  options: KeptOptions
})

const encode = Schema.encodeEither(Snapshot)
const asJson = Schema.decodeUnknownEither(JsonValue)

/** Its JSON. */
export const encodeSnapshot = (snapshot: typeof Snapshot.Type) => Either.flatMap(encode(snapshot), asJson)

export const decodeSnapshot = Schema.decodeUnknownEither(Snapshot)

export const decodeNested = Schema.decodeUnknownEither(
  Schema.Struct({ runId: Schema.String, agentId: Schema.String, calls: Schema.Array(NestedCall) })
)
