/** The one fault that a schema's refusal is about, found without a word about the value, which may be as large as a request. */
import type * as ParseResult from "effect/ParseResult"

/** Where a fault is, and the issue without parts that names it. */
export interface SchemaFault {
  readonly path: ReadonlyArray<PropertyKey>
  readonly issue: ParseResult.ParseIssue
}

const issuesOf = ({ issues }: ParseResult.Composite): ReadonlyArray<ParseResult.ParseIssue> =>
  "_tag" in issues ? [issues] : issues

const weight = ({ path }: SchemaFault): number => path.length * 2 + (path.at(-1) === "type" ? 0 : 1)

/**
 * The fault of an issue. All alternatives of a union fail: the deepest is the one that the sender meant, and of two at one depth
 * the part whose `type` matched.
 */
export const schemaFault = (issue: ParseResult.ParseIssue, path: SchemaFault["path"] = []): SchemaFault => {
  switch (issue._tag) {
    case "Pointer":
      return schemaFault(issue.issue, path.concat(issue.path))
    case "Refinement":
    case "Transformation":
      return schemaFault(issue.issue, path)
    case "Composite":
      return issuesOf(issue)
        .map(inner => schemaFault(inner, path))
        .reduce((best, fault) => (weight(fault) > weight(best) ? fault : best))
    default:
      return { path, issue }
  }
}

/** A path as people read it: `messages[0].content`. */
export const shownPath = (path: SchemaFault["path"]): string =>
  path
    .map(key => (typeof key === "number" ? `[${key}]` : `.${String(key)}`))
    .join("")
    .replace(/^\./, "")

/** A value in a few words, however large it is. */
export const describedValue = (value: unknown): string => {
  if (value === undefined) return "missing"
  if (typeof value === "string") return value.length > 60 ? "a long string" : JSON.stringify(value)
  if (value === null || typeof value === "boolean") return String(value)
  if (Array.isArray(value)) return "an array"
  return typeof value === "object" ? "an object" : `a ${typeof value}`
}
