/** Columns of rows, read: databases give big integers as numbers, as text or as `bigint`. Throws for what is none of it. */
import * as Effect from "effect/Effect"
import { type Row, SqlFailure } from "./executor.js"
import { unescapeNul } from "./text.js"

const unreadable = (name: string, what: string): Error =>
  new Error(`Column "${name}" holds no ${what}: the table is not as it was made.`)

export const optionalText = (row: Row, name: string): string | null => {
  const value = row[name]
  if (value === null) return null
  if (typeof value === "string") return unescapeNul(value)
  throw unreadable(name, "text")
}

export const text = (row: Row, name: string): string => {
  const value = optionalText(row, name)
  if (value !== null) return value
  throw unreadable(name, "text")
}

/** The texts of a JSON array. */
export const texts = (row: Row, name: string): ReadonlyArray<string> => {
  const values: unknown = JSON.parse(text(row, name))
  if (Array.isArray(values) && values.every(value => typeof value === "string"))
    return values.map(unescapeNul)
  throw unreadable(name, "list of texts")
}

export const optionalNumber = (row: Row, name: string): number | null => {
  const value = row[name]
  if (value === null) return null
  const number = typeof value === "string" || typeof value === "bigint" ? Number(value) : value
  if (typeof number === "number" && Number.isSafeInteger(number) && value !== "") return number
  throw unreadable(name, "whole number")
}

export const number = (row: Row, name: string): number => {
  const value = optionalNumber(row, name)
  if (value !== null) return value
  throw unreadable(name, "whole number")
}

/** One of these words. */
export const oneOf = <Word extends string>(row: Row, name: string, words: ReadonlyArray<Word>): Word => {
  const value = row[name]
  const word = words.find(word => word === value)
  if (word !== undefined) return word
  throw unreadable(name, `word of ${words.join(", ")}`)
}

/** What is read of a result. What that throws is a failure of the driver. */
export const read = <A>(reading: () => A): Effect.Effect<A, SqlFailure> =>
  Effect.try({
    try: reading,
    catch: cause =>
      new SqlFailure({ kind: "refused", message: "A row cannot be read: see the cause.", cause })
  })
