/** What the SQL drivers ask of a database: to execute a statement, or several of them as one transaction. */
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import { escapeNul } from "./text.js"

/** What a database is given. Numbers are safe integers. */
export type Value = string | number | null

/** Places of arguments are written as `?`, in either database. */
export interface Statement {
  readonly sql: string
  readonly args: ReadonlyArray<Value>
}

/** By the name of the column. */
export type Row = Readonly<Record<string, unknown>>

export interface Result {
  readonly rows: ReadonlyArray<Row>
  /** How many rows a statement changed that gives none back. Of one with `RETURNING` count the rows. */
  readonly rowsAffected: number
}

/**
 * A database did not do what it was asked. `kind` says what is known of it: `refused` when it did nothing, and would not the
 * next time; `notYet` when it did nothing, and may the next time; `unknown` when it may have been done.
 */
export class SqlFailure extends Data.TaggedError("SqlFailure")<{
  readonly kind: "refused" | "notYet" | "unknown"
  readonly message: string
  readonly cause?: unknown
}> {}

export interface Executor {
  /** For statements that change nothing: it may be asked again when the connection breaks. */
  readonly execute: (statement: Statement) => Effect.Effect<Result, SqlFailure>
  /** All or none, and durable when it succeeds. A result for each. */
  readonly batch: (statements: ReadonlyArray<Statement>) => Effect.Effect<ReadonlyArray<Result>, SqlFailure>
}

/** Throws for a number that no column can hold. */
const toValue = (value: Value): Value => {
  if (typeof value === "string") return escapeNul(value)
  if (value === null || Number.isSafeInteger(value)) return value
  throw new RangeError(`${value} is no whole number that a database can hold exactly.`)
}

/** A statement with its arguments, as databases take them. */
export const statement = (sql: string, args: ReadonlyArray<Value> = []): Statement => ({
  sql,
  args: args.map(toValue)
})

/** `?, ?, ?`: a place for each. */
export const placesFor = (values: ReadonlyArray<unknown>): string => values.map(() => "?").join(", ")
