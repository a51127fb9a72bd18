/** What is wrong with a value, in words that a model can read: one line per issue, each naming the path, bounded. */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { InvalidConfiguration } from "../protocol/Errors.js"
import * as Json from "../protocol/safeJson.js"

/**
 * A value that breaks a schema. `message` has one line per issue, each naming the path (`items[0].city: Expected string,
 * actual 1`), and at most 2 000 characters: the model reads it. No `Error`, so no stack.
 *
 * @since 0.1.0
 * @category errors
 */
export class InvalidValue extends Data.TaggedClass("InvalidValue")<{ readonly message: string }> {
  #issues: ReadonlyArray<Issue> = []

  /** Every issue by itself, for programs. */
  get issues(): ReadonlyArray<Issue> {
    return this.#issues
  }

  /** The failure with what is wrong in it, place by place. */
  static readonly of = (message: string, issues: ReadonlyArray<Issue>): InvalidValue => {
    const invalidValue = new InvalidValue({ message })
    invalidValue.#issues = issues
    return invalidValue
  }
}

/** What is wrong, and where. @since 0.1.0 @category models */
export interface Issue {
  readonly path: ReadonlyArray<PropertyKey>
  readonly message: string
}

const maxLength = 2_000
const maxLineLength = 400

export const invalid = (issues: ReadonlyArray<Issue>): InvalidValue => {
  const lines: Array<string> = []
  let length = 0
  for (const line of new Set(issues.slice(0, maxLength).map(toLine))) {
    length += line.length + 1
    if (length > maxLength - 2) {
      lines.push("…")
      break
    }
    lines.push(line)
  }
  return InvalidValue.of(lines.length === 0 ? "Invalid value" : lines.join("\n"), issues)
}

const toLine = ({ message, path }: Issue): string => {
  const place = printPath(path)
  const text = oneLine(message)
  if (place === "") return text
  // arktype begins its messages with the path.
  return clip(`${clip(place)}: ${text.startsWith(`${place} `) ? text.slice(place.length + 1) : text}`)
}

const printPath = (path: ReadonlyArray<PropertyKey>): string =>
  path
    .map(key => {
      const name = String(key)
      if (/^\d+$/.test(name)) return `[${name}]`
      return /^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`
    })
    .join("")
    .replace(/^\./, "")

export const oneLine = (text: string): string => clip(clip(text, maxLength).replace(/[\r\n]+\s*/g, " "))

const clip = (text: string, length = maxLineLength): string =>
  Json.wellFormed(text.length <= length ? text : `${text.slice(0, length - 1)}…`)

export const thrown = (cause: unknown): InvalidValue =>
  invalid([{ path: [], message: Json.messageOf(cause) }])

/** A validator that throws, also by running out of stack, has not accepted the value. */
export const guarded =
  <A>(validate: (value: unknown) => Effect.Effect<A, InvalidValue>) =>
  (value: unknown): Effect.Effect<A, InvalidValue> =>
    Effect.catchAllDefect(
      Effect.suspend(() => validate(value)),
      defect => Effect.fail(thrown(defect))
    )

/** What is wrong with a schema. */
export const invalidConfiguration = (field: string, problem: string): InvalidConfiguration =>
  new InvalidConfiguration({ field, message: `${field} ${problem}` })
