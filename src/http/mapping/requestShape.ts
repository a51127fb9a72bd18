/** What the bodies of all protocols share: loose fields, and a refusal that names the place. */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { InvalidRequest } from "./InvalidRequest.js"

/** Other libraries send `null` when there is nothing to say. */
export const loose = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { nullable: true })

const shown = (path: ReadonlyArray<PropertyKey>): string =>
  path
    .map(key => (typeof key === "number" ? `[${key}]` : `.${String(key)}`))
    .join("")
    .replace(/^\./, "")

/** Of the alternatives of a union the one that got deepest is the one that was meant. */
const refusal = (issue: ParseResult.ParseIssue, remedy: string): InvalidRequest => {
  const found = ParseResult.ArrayFormatter.formatIssueSync(issue).reduce((best, next) =>
    next.path.length > best.path.length ? next : best
  )
  const field = shown(found.path)
  const reason = found.message.split("\n")[0] ?? ""
  return new InvalidRequest({ field, message: `${field || "The body"}: ${reason}. ${remedy}` })
}

/** Reads a body; `remedy` says what should be there. */
export const bodyReader = <A, I>(schema: Schema.Schema<A, I>, remedy: string) => {
  const decode = ParseResult.decodeUnknownEither(schema)
  return (body: unknown): Either.Either<A, InvalidRequest> =>
    Either.mapLeft(decode(body), issue => refusal(issue, remedy))
}

export const OpenRecord = Schema.Record({ key: Schema.String, value: Schema.Unknown })
