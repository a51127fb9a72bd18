/** Options of the public API, checked: their names, the place of each, and the kind of its value. */
import { InvalidConfiguration } from "./Errors.js"

/** What an option takes, and the remedy for a value that it does not take. */
export interface Kind {
  readonly accepts: (value: unknown) => boolean
  /** A sentence. */
  readonly remedy: string | ((value: unknown) => string)
}

/** The options that an object may have. */
export interface Known {
  readonly kinds: Readonly<Record<string, Kind>>
  /** Where an option of another name or place stands: a sentence by the name that was written. */
  readonly places?: Readonly<Record<string, string>>
}

const longestShown = 40

/** A value as messages show it. Runs no code of the value but its `constructor`, and never throws. */
export const shown = (value: unknown): string => {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value.length > longestShown ? `${value.slice(0, longestShown)}…` : value)
    case "symbol":
      return "a symbol"
    case "function":
      return "a function"
    case "object":
      return value === null ? "null" : shownObject(value)
    default:
      return String(value)
  }
}

const shownObject = (value: object): string => {
  try {
    if (Array.isArray(value)) return "an array"
    const name: unknown = value.constructor?.name
    if (typeof name !== "string" || name === "" || name === "Object") return "an object"
    return `${/^[AEIOU]/.test(name) ? "an" : "a"} ${name}`
  } catch {
    return "an object"
  }
}

/** What a value is, and how to write it: the text of every refusal of a value. */
export const wrongValue = (field: string, value: unknown, remedy: string): InvalidConfiguration =>
  new InvalidConfiguration({ field, message: `\`${field}\` is ${shown(value)}. ${remedy}` })

const kind = (accepts: Kind["accepts"], remedy: Kind["remedy"]): Kind => ({ accepts, remedy })

/** An object that is neither an array nor a function. */
export const isOptions = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isText = (value: unknown): value is string => typeof value === "string"

/** An option that its reader checks. */
export const read: Kind = kind(() => true, "")
export const text: Kind = kind(isText, "Give a string.")
export const id: Kind = kind(value => isText(value) && value !== "", "Give a string that is not empty.")
export const flag: Kind = kind(value => typeof value === "boolean", "Give true or false.")
export const number: Kind = kind(Number.isFinite, "Give a number.")
export const wholeNumber = (least: number): Kind =>
  kind(
    value => typeof value === "number" && Number.isSafeInteger(value) && value >= least,
    `Give a whole number of at least ${least}.`
  )
export const callback: Kind = kind(value => typeof value === "function", "Give a function.")
export const object: Kind = kind(isOptions, "Give an object.")
export const texts: Kind = kind(
  value => Array.isArray(value) && value.every(isText),
  'Give strings in an array, for example ["first", "second"].'
)
export const date: Kind = kind(
  value => value instanceof Date && !Number.isNaN(value.getTime()),
  "Give a Date that holds a time."
)
export const oneOf = (...values: ReadonlyArray<string>): Kind =>
  kind(
    value => isText(value) && values.includes(value),
    `Give one of: ${values.map(value => JSON.stringify(value)).join(", ")}.`
  )

const isAbortSignal = (value: unknown): boolean =>
  typeof value === "object" &&
  value !== null &&
  "aborted" in value &&
  typeof value.aborted === "boolean" &&
  "addEventListener" in value &&
  typeof value.addEventListener === "function"

export const abortSignal: Kind = kind(isAbortSignal, value =>
  isOptions(value) && isAbortSignal(value["signal"])
    ? "Give its signal: `controller.signal`."
    : "Give an AbortSignal: the `signal` of an AbortController."
)

/** An array of values of one kind. */
export const listOf = ({ accepts, remedy }: Kind): Kind =>
  kind(value => Array.isArray(value) && value.every(accepts), remedy)

/** A value of either kind. */
export const either = (first: Kind, second: Kind, remedy: string): Kind =>
  kind(value => first.accepts(value) || second.accepts(value), remedy)

/** The place of an option, as a sentence. */
export const at = (place: string): string => `Write it as \`${place}\`.`

/** Changes from one name to another: insertions, deletions, replacements, and two neighbours that are swapped. */
const distance = (from: string, to: string): number => {
  let before: ReadonlyArray<number> = []
  let row: ReadonlyArray<number> = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let line = 1; line <= from.length; line++) {
    const next: Array<number> = [line]
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[line - 1] === to[column - 1]
      const isSwapped =
        line > 1 && column > 1 && from[line - 1] === to[column - 2] && from[line - 2] === to[column - 1]
      next.push(
        Math.min(
          (row[column] ?? 0) + 1,
          (next[column - 1] ?? 0) + 1,
          (row[column - 1] ?? 0) + (isSame ? 0 : 1),
          isSwapped ? (before[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY
        )
      )
    }
    before = row
    row = next
  }
  return row[to.length] ?? 0
}

/** The known name that a misspelt one stands for; `undefined` when none is near. */
const nearest = (name: string, known: ReadonlyArray<string>): string | undefined => {
  const most = Math.max(1, Math.floor(name.length / 4))
  // A name of any length has a distance: one that is much longer than every option is compared with none.
  const [best] = known
    .filter(candidate => Math.abs(candidate.length - name.length) <= most)
    .map(candidate => ({ candidate, changes: distance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ changes }) => changes <= most)
    .sort((one, other) => one.changes - other.changes)
  return best?.candidate
}

/** What to write instead of an option that is not known: its place, the nearest name, or all names. */
export const remedyFor = (
  name: string,
  known: ReadonlyArray<string>,
  places: Known["places"] = {}
): string => {
  const place = Object.hasOwn(places, name) ? places[name] : undefined
  if (place !== undefined) return place
  const near = nearest(name, known)
  return near === undefined ? `Known options: ${known.join(", ")}.` : `Did you mean \`${near}\`?`
}

/**
 * Refuses an option that nothing reads: a misspelt one would be ignored in silence. Throws `InvalidConfiguration`, with the
 * place of the option, or the nearest name, or all names.
 */
export const refuseUnknown = (
  what: string,
  options: object,
  known: ReadonlyArray<string>,
  places?: Known["places"]
): void => {
  for (const field of Object.keys(options)) {
    if (known.includes(field)) continue
    throw new InvalidConfiguration({
      field,
      message: `${what} has no option \`${field}\`. ${remedyFor(field, known, places)}`
    })
  }
}

/**
 * Checks an object of options: that it is one, the names, and the value of each that is not `undefined`. `prefix` is the place of
 * the object within another one. Throws `InvalidConfiguration`, which names the field and the remedy.
 */
export const checkOptions = (what: string, options: unknown, { kinds, places }: Known, prefix = ""): void => {
  const known = Object.keys(kinds)
  if (!isOptions(options)) {
    throw wrongValue(prefix === "" ? "options" : prefix, options, `Give an object of: ${known.join(", ")}.`)
  }
  refuseUnknown(prefix === "" ? what : `\`${prefix}\``, options, known, places)
  for (const [name, { accepts, remedy }] of Object.entries(kinds)) {
    const value = options[name]
    if (value === undefined || accepts(value)) continue
    const field = prefix === "" ? name : `${prefix}.${name}`
    throw wrongValue(field, value, typeof remedy === "string" ? remedy : remedy(value))
  }
}

/** Something that has an id, and the option that it was given as. */
export type Listed = readonly [field: string, value: { readonly id: string }]

/**
 * Throws `InvalidConfiguration` when two different values share an id: what is stored is found by the id, and they would go on with
 * each other's runs and tasks. One that is listed several times is no conflict.
 */
export const refuseSharedIds = (kind: "agents" | "workflows", listed: Iterable<Listed>): void => {
  const known = new Map<string, Listed>()
  for (const [field, value] of listed) {
    const [other, first] = known.get(value.id) ?? [field, value]
    known.set(value.id, [other, first])
    if (first === value) continue
    throw new InvalidConfiguration({
      field,
      message: `\`${other}\` and \`${field}\` are different ${kind} with the same id "${value.id}": each would go on with the stored runs and tasks of the other. Give each its own \`id\`.`
    })
  }
}
