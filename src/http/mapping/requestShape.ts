/** What the bodies of all protocols share: loose fields, and a refusal that names the place. */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { describedValue, schemaFault, shownPath } from "../../protocol/schemaFault.js"
import { InvalidRequest } from "./InvalidRequest.js"

/** Other libraries send `null` when there is nothing to say. */
export const loose = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { nullable: true })

/** What is wrong. The value is described and not shown: it may be as large as the body. */
const reasonOf = (issue: ParseResult.ParseIssue): string => {
  switch (issue._tag) {
    case "Missing":
      return "is missing"
    case "Type":
      return issue.message ?? `Expected ${String(issue.ast)}, is ${describedValue(issue.actual)}`
    default:
      return "cannot be read"
  }
}

const refusal = (root: ParseResult.ParseIssue, remedy: string): InvalidRequest => {
  const { issue, path } = schemaFault(root)
  const field = shownPath(path)
  return new InvalidRequest({ field, message: `${field || "The body"}: ${reasonOf(issue)}. ${remedy}` })
}

/** Reads a body; `remedy` says what should be there. */
export const bodyReader = <A, I>(schema: Schema.Schema<A, I>, remedy: string) => {
  const decode = ParseResult.decodeUnknownEither(schema)
  return (body: unknown): Either.Either<A, InvalidRequest> =>
    Either.mapLeft(decode(body), issue => refusal(issue, remedy))
}

export const OpenRecord = Schema.Record({ key: Schema.String, value: Schema.Unknown })
