/**
 * Messages as clients send them, without what is between the server and its provider. Metadata names what the provider stores
 * under the server's key, for any user: a client that forges an item id or a file id reads what is another's.
 */
import * as Effect from "effect/Effect"
import { isRecord } from "../protocol/safeJson.js"
import { checkFiles, loadFiles } from "./files.js"
import { refuseMessageIds } from "./reading.js"
import { invalidBody, type Refusal } from "./refusal.js"
import type { ServerSettings } from "./settings.js"

/** Fields of messages, parts and contents of results that a provider reads. A call that it executed itself is known by its id. */
const providerFields = [
  "providerOptions",
  "providerMetadata",
  "callProviderMetadata",
  "resultProviderMetadata",
  "experimental_providerMetadata",
  "providerExecuted"
]

/** Contents of a result that hold what they show. The others name something that the provider has. */
const contentTypes = ["text", "media", "image-data", "file-data", "image-url", "file-url", "file"]

/** A record of the messages, and where it stands. */
interface Place {
  readonly field: string
  readonly record: Readonly<Record<string, unknown>>
}

const recordsIn = (list: unknown, field: string): ReadonlyArray<Place> =>
  Array.isArray(list)
    ? list.flatMap((record: unknown, index) =>
        isRecord(record) ? [{ field: `${field}[${index}]`, record }] : []
      )
    : []

/** What a file is given as: a text, or one inside of a tag. */
const fileIn = ({ field, record }: Place): ReadonlyArray<readonly [field: string, text: string]> =>
  ["data", "image", "url"].flatMap(key => {
    const value = record[key]
    const at = `${field}.${key}`
    if (typeof value === "string") return [[at, value] as const]
    return isRecord(value) ? fileIn({ field: at, record: value }) : []
  })

/** Neither base64 nor the text of a URL: providers take the id of a file there, also of a file of another user. */
const isReference = (text: string): boolean => !text.includes(":") && /[^A-Za-z0-9+/=\s]/.test(text)

const isFile = ({ record: { type } }: Place): boolean =>
  typeof type === "string" && /^(file|image|media)/.test(type)

const fileFault = (place: Place): Refusal | undefined => {
  const found = isFile(place) ? fileIn(place).find(([, text]) => isReference(text)) : undefined
  return found === undefined
    ? undefined
    : invalidBody(found[0], "must be base64 or a URL. Ids of files are not allowed.")
}

const contentFault = (place: Place): Refusal | undefined => {
  const { field, record } = place
  const { data, type } = record
  const isKnown = typeof type === "string" && contentTypes.includes(type)
  return isKnown && !(isRecord(data) && data["type"] === "reference")
    ? fileFault(place)
    : invalidBody(field, "must hold what it shows. Ids of files are not allowed.")
}

/** Takes the fields of the provider out of one message, which is changed as it is; or the first thing that must not be in it. */
const strip = (message: Place): Refusal | undefined => {
  const drop = ({ record }: Place): void => {
    for (const field of providerFields) Reflect.deleteProperty(record, field)
  }
  drop(message)
  const { field, record } = message
  const parts = ["content", "parts"].flatMap(key => recordsIn(record[key], `${field}.${key}`))
  for (const part of parts) {
    const { output, toolInvocation } = part.record
    drop(part)
    if (isRecord(toolInvocation)) drop({ field: part.field, record: toolInvocation })
    const contents =
      isRecord(output) && output["type"] === "content" && part.record["type"] === "tool-result"
        ? recordsIn(output["value"], `${part.field}.output.value`)
        : []
    const fault = fileFault(part)
    if (fault !== undefined) return fault
    for (const content of contents) {
      drop(content)
      const inside = contentFault(content)
      if (inside !== undefined) return inside
    }
  }
  return undefined
}

/** Drops what only the provider reads, and refuses its ids of files, unless clients may set `providerOptions`. */
const withoutProvider = (
  messages: unknown,
  { clientOptions }: ServerSettings
): Effect.Effect<void, Refusal> => {
  if (clientOptions.has("providerOptions")) return Effect.void
  const places = Array.isArray(messages)
    ? recordsIn(messages, "messages")
    : isRecord(messages)
      ? [{ field: "messages", record: messages }]
      : []
  for (const place of places) {
    const fault = strip(place)
    if (fault !== undefined) return fault
  }
  return Effect.void
}

/**
 * What every message of a client goes through, by whichever route. `all` is the conversation, which is checked, `told` are those
 * of its messages that the run is told: their files are fetched. They are those of one request, and are changed as they are.
 */
export const admit = Effect.fnUntraced(function* (all: unknown, told: unknown, settings: ServerSettings) {
  yield* refuseMessageIds(all)
  yield* withoutProvider(all, settings)
  if (told !== all) {
    yield* withoutProvider(told, settings)
    yield* checkFiles(all, settings.files)
  }
  yield* loadFiles(told, settings.files)
})
