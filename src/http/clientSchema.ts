/** Structured values that clients ask for: their schema is checked at a cost that it does not choose. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { JsonSchema } from "../model/ModelPort.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { bounded } from "../tool/boundedSchema.js"
import type { Asked } from "./asked.js"
import type { HostRunOptions } from "./Host.js"
import type { OpenAiFormat } from "./mapping/OpenAiChatRequest.js"
import * as Read from "./reading.js"
import { invalidBody, type Refusal } from "./refusal.js"

type Told = Pick<HostRunOptions, "structuredOutput">

const isSchema = (value: unknown): value is JsonSchema => Predicate.isRecord(value)

/** What checking a schema takes by itself, before there is any value: its objects, its other values, the text of its patterns. */
const mostParts = 10_000

/** Characters of a pattern, or values that are no objects, that take as long as an object. */
const smallParts = 4

/** Stops when there are too many. */
const hasTooManyParts = (schemas: unknown): boolean => {
  let parts = 0
  const open: Array<unknown> = [schemas]
  while (open.length > 0 && parts <= mostParts) {
    const next = open.pop()
    if (typeof next !== "object" || next === null) {
      parts += 1 / smallParts
      continue
    }
    parts++
    for (const [key, value] of Object.entries(next)) {
      if (key === "pattern" && typeof value === "string") parts += value.length / smallParts
      if (key === "patternProperties" && Predicate.isRecord(value)) {
        parts += Object.keys(value).reduce((sum, name) => sum + name.length / smallParts, 0)
      }
      open.push(value)
    }
  }
  return parts > mostParts
}

/** Refuses schemas that would keep everybody waiting while they are looked at. */
export const checkSize = (schemas: unknown, field: string): Effect.Effect<void, Refusal> =>
  hasTooManyParts(schemas)
    ? invalidBody(field, "has too many parts, or too long patterns. Give a smaller one.")
    : Effect.void

/** A JSON Schema of a client. `field` is where it stands. */
const boundedSchema = (schema: unknown, field: string) => {
  if (!isSchema(schema)) return invalidBody(field, "must be a JSON Schema")
  return Effect.zipRight(
    checkSize(schema, field),
    Effect.try({
      try: () => bounded(schema, field),
      catch: cause =>
        invalidBody(
          field,
          cause instanceof InvalidConfiguration ? cause.message : "cannot be used as a schema"
        )
    })
  )
}

/** Fields that are the run's to check. */
const passed = ["errorStrategy", "fallbackValue", "jsonPromptInjection"]

/** The field `structuredOutput`, where the host allows it. Which model writes the value is the host's to say. */
export const readStructured = Effect.fnUntraced(function* (
  { settings }: Pick<Asked, "settings">,
  body: Read.Fields
) {
  const none: Told = {}
  const given = yield* Read.maybeRecord(body, "structuredOutput")
  if (given === undefined) return none
  yield* Read.refuseFields(given, ["schema", "instructions", ...passed], "structuredOutput.")
  const { instructions, schema } = given
  if (instructions !== undefined && !settings.clientOptions.has("instructions")) {
    return yield* invalidBody("structuredOutput.instructions", "may not be set by clients")
  }
  const told: Told = {
    structuredOutput: {
      schema: yield* boundedSchema(schema, "structuredOutput.schema"),
      ...Object.fromEntries(
        ["instructions", ...passed].flatMap(field =>
          given[field] === undefined ? [] : [[field, given[field]]]
        )
      )
    }
  }
  return told
})

/** The same, where a client of OpenAI asks for it. `field` is where it stands. What is wrong with the value it finds itself. */
export const formatOf = (
  { settings }: Pick<Asked, "settings">,
  format: OpenAiFormat | undefined,
  field: string
): Effect.Effect<Told, Refusal> => {
  if (format === undefined) return Effect.succeed({})
  if (!settings.clientOptions.has("structuredOutput")) return invalidBody(field, "may not be set by clients")
  const { schema } = format.type === "json_object" ? { schema: { type: "object" } } : format
  // Of a value with another root the text, which is what is read, would be another one.
  if (!isSchema(schema) || schema["type"] !== "object")
    return invalidBody(field, 'must have the root type "object"')
  return Effect.map(boundedSchema(schema, field), checked => ({
    structuredOutput: {
      schema: checked,
      errorStrategy: "warn",
      // Nothing is known of the object that a provider could be bound to.
      ...(format.type === "json_object" ? { jsonPromptInjection: true } : {})
    }
  }))
}
