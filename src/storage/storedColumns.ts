/** What rows of every port are read with: the kinds of their columns, and what is said of those that cannot be read. */
import * as Either from "effect/Either"
import type { ParseError } from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { StorageError } from "../protocol/Errors.js"
import * as Json from "../protocol/Json.js"
import { isRecord } from "../protocol/safeJson.js"

export type JsonObject = { readonly [key: string]: Json.JsonValue }

const isObject = (value: Json.JsonValue): value is JsonObject => isRecord(value)

/** The text of a JSON value. */
export const ValueText = Schema.parseJson(Json.JsonValue)

/** The text of a JSON object. */
export const ObjectText = Schema.parseJson(Json.JsonValue.pipe(Schema.filter(isObject)))

/** Milliseconds since 1970. */
export const Time = Schema.compose(Schema.DateFromNumber, Schema.ValidDateFromSelf)

/** What was read or written; `problem` says what could not be. */
export const must = <A>(
  operation: string,
  problem: string,
  read: Either.Either<A, ParseError>
): Either.Either<A, StorageError> =>
  Either.mapLeft(read, cause => new StorageError({ operation, message: problem, cause }))

/** What is said of a row that cannot be read. */
export const unreadable = (row: string): string =>
  `${row} cannot be read: what is stored is not what was given. See the cause, and mend it or delete it.`
