/** Snapshots of runs, read from a store. Needs schemas, so it is loaded when the first one is read. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { StorageError } from "../protocol/Errors.js"
import { JsonValue } from "../protocol/Json.js"
import { Usage } from "../protocol/Usage.js"
import type { StoredRun } from "../storage/RunStore.js"
import type { Kept } from "./shelf.js"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const StepState = Schema.Struct({
  status: Schema.Literal("running", "success", "failed", "suspended", "aborted"),
  input: JsonValue,
  output: optional(JsonValue),
  error: optional(Schema.Struct({ name: Schema.String, message: Schema.String })),
  suspendData: optional(JsonValue),
  resumeData: optional(JsonValue),
  startedAt: Schema.Finite,
  endedAt: optional(Schema.Finite),
  attempts: Schema.NonNegativeInt,
  iteration: optional(Schema.NonNegativeInt),
  usage: Usage
})

const read = Schema.decodeUnknown(
  Schema.Struct({
    version: Schema.Literal(1),
    status: Schema.Literal("running", "suspended"),
    input: JsonValue,
    steps: Schema.Record({ key: Schema.String, value: StepState }),
    branches: Schema.Record({ key: Schema.String, value: Schema.Array(Schema.String) }),
    repeated: Schema.Array(Schema.String),
    claim: optional(Schema.Struct({ owner: Schema.String }))
  })
)

/** The run of a workflow that a store gave. */
export const readSnapshot = ({
  holders,
  revision,
  runId,
  snapshot
}: StoredRun): Effect.Effect<Kept, StorageError> =>
  Effect.mapBoth(read(snapshot), {
    onSuccess: readable => ({ runId, snapshot: readable, revision, holders }),
    onFailure: cause =>
      new StorageError({
        operation: "RunStore.get",
        message: `What is stored of run "${runId}" is no run of a workflow that this version can read. Delete it, or use the version that wrote it.`,
        cause
      })
  })
