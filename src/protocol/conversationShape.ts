/** What the shapes of foreign messages share: loose fields, and a refusal that names the place. */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { InvalidMessage } from "./Errors.js"
import * as Json from "./Json.js"
import { describedValue, type SchemaFault, schemaFault, shownPath } from "./schemaFault.js"

/** Other libraries set a field to `undefined`, and databases to `null`, when there is nothing to say. */
export const loose = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { nullable: true })

export const Text = Schema.transform(Schema.String, Schema.String, {
  strict: true,
  decode: Json.wellFormed,
  encode: text => text
})

export const Options = Schema.Record({
  key: Schema.String,
  value: Schema.Record({ key: Schema.String, value: Schema.Unknown })
})

export type Options = typeof Options.Type

export const options = { providerOptions: loose(Options) }

const isProviderMetadata = Schema.is(Json.ProviderMetadata)

/** `providerOptions`, absent when they say nothing. */
export const withOptions = (
  options: Options | undefined
): { readonly providerOptions?: Json.ProviderMetadata } => {
  if (options === undefined) return {}
  const providerOptions = Json.toJson(options)
  return isProviderMetadata(providerOptions) && Object.keys(providerOptions).length > 0
    ? { providerOptions }
    : {}
}

/** The part of a text, when it says something: a character, or options to carry (a signature, a cache mark). */
export const textPart = <Type extends "text" | "reasoning">(
  type: Type,
  text: string,
  options: Options | undefined
): ReadonlyArray<{
  readonly type: Type
  readonly text: string
  readonly providerOptions?: Json.ProviderMetadata
}> => {
  const part = { type, text, ...withOptions(options) }
  return text === "" && part.providerOptions === undefined ? [] : [part]
}

type Path = SchemaFault["path"]

const optionsExpected = "an object per provider name, such as { openai: { … } }"
const outputExpected = 'the outcome, such as { type: "json", value } or { type: "text", value }'
const mediaTypeExpected = 'a media type, such as "image/png"'
const dataExpected =
  "base64 text, a data: or http: URL, a Uint8Array or an ArrayBuffer (of a Blob: its `arrayBuffer()`; no provider reference)"

/** By the name of the field. The first three stand for everything inside them too. */
const expectations: Readonly<Record<string, string>> = {
  providerOptions: optionsExpected,
  providerMetadata: optionsExpected,
  output: outputExpected,
  role: '"system", "user", "assistant" or "tool" (a UI message has no "tool")',
  content: "a string (not for role tool) or an array of parts (not for role system)",
  parts: "an array of parts",
  type:
    "the type of a part: text, file, image (user); text, reasoning, file, tool-call, tool-result (assistant); tool-result " +
    "(tool); text, reasoning, file, step-start, tool-<name>, dynamic-tool, source-*, data-* (UI message)",
  data: dataExpected,
  image: dataExpected,
  url: dataExpected,
  mediaType: mediaTypeExpected,
  mimeType: mediaTypeExpected,
  state: 'the state of a UI tool part, such as "output-available"',
  providerExecuted: "true or false"
}

const expectedAt = (path: Path): string => {
  const last = path.at(-1)
  if (last === undefined) return "a string, an AI SDK model message or an AI SDK UI message"
  if (typeof last === "number") return "a part, which is an object with a `type`"
  const names = path.filter(key => typeof key === "string")
  const outer = names.find(name => ["providerOptions", "providerMetadata", "output"].includes(name))
  return expectations[outer ?? names.at(-1) ?? ""] ?? "a string"
}

/** Refuses what stands at `path` inside `root`, which itself stands at `at` in the input. */
export const refuse = (root: unknown, at: Path, path: Path): InvalidMessage => {
  const value = path.reduce<unknown>(
    (inner, key) => (Predicate.hasProperty(inner, key) ? inner[key] : undefined),
    root
  )
  const place = shownPath([...at, ...path])
  const subject = place === "" ? "The message" : place
  return new InvalidMessage({
    path: place,
    message: `${subject} is ${describedValue(value)}. Give ${expectedAt(path)}.`
  })
}

/** Reads one foreign shape; `at` is where it stands in the input. */
export const parser = <A, I>(schema: Schema.Schema<A, I>) => {
  const decode = ParseResult.decodeUnknownEither(schema)
  return (value: unknown, at: Path): Either.Either<A, InvalidMessage> =>
    Either.mapLeft(decode(value), issue => refuse(value, at, schemaFault(issue).path))
}
