/** Bodies and queries as clients send them: read within their limits, and refused by the name of the field that is wrong. */
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { isRecord } from "../protocol/safeJson.js"
import { isJson } from "./crossSite.js"
import { invalidBody, invalidField, invalidQuery, Refusal } from "./refusal.js"

/** The fields of a JSON body. */
export type Fields = Readonly<Record<string, unknown>>

const tooLarge = new Refusal({ status: 413, message: "Request body too large" })

const tooSlow = new Refusal({ status: 408, message: "The request body took too long" })

/** How long a body may take. */
const bodyWithin = Duration.seconds(30)

const join = (pieces: ReadonlyArray<Uint8Array>, length: number): Uint8Array => {
  const whole = new Uint8Array(length)
  let place = 0
  for (const piece of pieces) {
    whole.set(piece, place)
    place += piece.length
  }
  return whole
}

/** The bytes of a body: refused by its announced length before any of it is read, and by its true one as it comes. */
const readBytes = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, limit: number) {
  if (Number(request.headers["content-length"] ?? 0) > limit) return yield* tooLarge
  const pieces: Array<Uint8Array> = []
  let length = 0
  const isOver = yield* Deferred.make<never, Refusal>()
  // It stays open until the answer is sent: to close it resets the connection, and the client never reads why.
  const reading = yield* Effect.forkScoped(
    Stream.runForEach(request.stream, piece => {
      length += piece.length
      if (length > limit) return Effect.zipRight(Deferred.fail(isOver, tooLarge), Effect.never)
      pieces.push(piece)
      return Effect.void
    })
  )
  yield* Effect.raceFirst(Fiber.join(reading), Deferred.await(isOver)).pipe(
    Effect.timeoutFail({ duration: bodyWithin, onTimeout: () => tooSlow }),
    Effect.mapError(error =>
      error instanceof Refusal
        ? error
        : new Refusal({ status: 400, message: "The request body could not be read" })
    )
  )
  return join(pieces, length)
})

/** Bytes of JSON that tell its structure. */
const [quote, comma, backslash, openBracket, closeBracket, openBrace, closeBrace] = [
  34, 44, 92, 91, 93, 123, 125
]

const decoder = new TextDecoder("utf-8", { fatal: true })

const hasBody = (request: HttpServerRequest.HttpServerRequest): boolean =>
  request.headers["transfer-encoding"] !== undefined || Number(request.headers["content-length"] ?? 0) > 0

/** Levels of a body. Code that walks through a value needs a stack for each. */
const mostLevels = 200

/** Values of a body. Each costs its check, however few bytes it has. */
const mostValues = 100_000

/** What JSON has too many of. It is read as bytes, before any value is made of it: a byte costs a few nanoseconds. */
const excessOf = (json: Uint8Array): string | undefined => {
  let depth = 0
  let values = 1
  let isInText = false
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]
    if (isInText) {
      if (byte === backslash) at++
      else if (byte === quote) isInText = false
    } else if (byte === quote) isInText = true
    else if (byte === comma) values++
    else if (byte === openBracket || byte === openBrace) {
      depth++
      values++
      if (depth > mostLevels) return `${mostLevels} levels`
    } else if (byte === closeBracket || byte === closeBrace) depth--
  }
  return values > mostValues ? `${mostValues} values` : undefined
}

/** The fields of a JSON body; none when there is no body. */
export const readBody = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  limit: number
) {
  // Browsers send other types, and bodies without one, to any site without a preflight: none of them is read as JSON.
  if (hasBody(request) && !isJson(request.headers["content-type"])) {
    return yield* new Refusal({ status: 415, message: "The request body must be application/json" })
  }
  const bytes = yield* readBytes(request, limit)
  if (bytes.length === 0) return {}
  const excess = excessOf(bytes)
  if (excess !== undefined) return yield* invalidBody("root", `may have at most ${excess}`)
  const body: unknown = yield* Effect.try({
    try: (): unknown => JSON.parse(decoder.decode(bytes)),
    catch: () => invalidBody("body", "is no JSON")
  })
  if (!isRecord(body)) return yield* invalidBody("root", "must be an object")
  const fields: Fields = body
  return fields
})

const describe = (value: unknown): string => (value === null ? "null" : typeof value)

/** Refuses fields that are not known, by name. */
export const refuseFields = (
  fields: Fields,
  known: ReadonlyArray<string>,
  at = ""
): Effect.Effect<void, Refusal> => {
  const other = Object.keys(fields).find(field => !known.includes(field))
  return other === undefined
    ? Effect.void
    : invalidBody(`${at}${other}`, `is not allowed here. Allowed: ${known.join(", ")}`)
}

/** Longest id that a client may choose. */
const longestId = 256

/** What no id holds: stores and logs cannot keep it, or show another one. */
const control = /\p{Cc}/u

/** The one rule of ids that a client chooses. Other languages, emoji and addresses are ids too. */
const isId = (value: unknown): value is string =>
  typeof value === "string" &&
  value !== "" &&
  value.length <= longestId &&
  value.isWellFormed() &&
  !control.test(value)

const idRule = `must be a text of 1 to ${longestId} characters without control characters`

/** Refuses ids in the path that nothing has, and control characters in the query, before a store or a log gets them. */
export const refuseParameters = (
  params: Readonly<Record<string, string | undefined>>,
  query: Query
): Effect.Effect<void, Refusal> => {
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && !isId(value)) return invalidField(name, idRule, "Invalid path parameters")
  }
  for (const [name, value] of query) {
    if (control.test(value)) return invalidQuery(name, "must have no control characters")
  }
  return Effect.void
}

/** Refuses ids of messages that no client may choose. An empty one is none. */
export const refuseMessageIds = (messages: unknown): Effect.Effect<void, Refusal> => {
  const items: ReadonlyArray<unknown> = Array.isArray(messages) ? messages : [messages]
  for (const [index, item] of items.entries()) {
    const given = isRecord(item) ? item["id"] : undefined
    if (typeof given === "string" && given !== "" && !isId(given)) {
      return invalidBody(Array.isArray(messages) ? `messages[${index}].id` : "messages.id", idRule)
    }
  }
  return Effect.void
}

/** An id, or nothing where it is left out. */
export const maybeId = (
  fields: Fields,
  field: string,
  at = ""
): Effect.Effect<string | undefined, Refusal> => {
  const value = fields[field]
  if (value === undefined || isId(value)) return Effect.succeed(value)
  return invalidBody(`${at}${field}`, `${idRule}, is ${describe(value)}`)
}

export const id = (fields: Fields, field: string, at = ""): Effect.Effect<string, Refusal> =>
  Effect.flatMap(maybeId(fields, field, at), value =>
    value === undefined ? invalidBody(`${at}${field}`, "is required") : Effect.succeed(value)
  )

export const maybeText = (fields: Fields, field: string): Effect.Effect<string | undefined, Refusal> => {
  const value = fields[field]
  if (value === undefined || typeof value === "string") return Effect.succeed(value)
  return invalidBody(field, `must be a text, is ${describe(value)}`)
}

export const maybeRecord = (fields: Fields, field: string): Effect.Effect<Fields | undefined, Refusal> => {
  const value = fields[field]
  if (value === undefined || isRecord(value)) return Effect.succeed(value)
  return invalidBody(field, `must be an object, is ${describe(value)}`)
}

/** A query as it was sent. */
export type Query = URLSearchParams

/** Queries of these names are read by somebody, or known not to matter. */
export const queryText = (query: Query, field: string): string | undefined => query.get(field) ?? undefined

/** A whole number of a query. */
export const queryNumber = (query: Query, field: string): Effect.Effect<number | undefined, Refusal> => {
  const text = queryText(query, field)
  if (text === undefined) return Effect.succeed(undefined)
  return /^\d{1,15}$/.test(text)
    ? Effect.succeed(Number(text))
    : invalidQuery(field, "must be a whole number")
}

/** Most items of a page. */
const largestPage = 1000

/** Which page; sizes are bounded. */
export const page = Effect.fnUntraced(function* (query: Query) {
  const number = (yield* queryNumber(query, "page")) ?? 0
  const perPage = (yield* queryNumber(query, "perPage")) ?? 100
  if (perPage > largestPage) return yield* invalidQuery("perPage", `must be at most ${largestPage}`)
  return { page: number, perPage }
})

export const queryDate = (query: Query, field: string): Effect.Effect<Date | undefined, Refusal> => {
  const text = queryText(query, field)
  if (text === undefined) return Effect.succeed(undefined)
  const date = new Date(text)
  return Number.isNaN(date.getTime()) ? invalidQuery(field, "must be an ISO 8601 date") : Effect.succeed(date)
}

/** One of these words. */
export const queryWord = <Word extends string>(
  query: Query,
  field: string,
  words: ReadonlyArray<Word>
): Effect.Effect<Word | undefined, Refusal> => {
  const text = queryText(query, field)
  if (text === undefined) return Effect.succeed(undefined)
  const word = words.find(known => known === text)
  return word === undefined
    ? invalidQuery(field, `must be one of: ${words.join(", ")}`)
    : Effect.succeed(word)
}
