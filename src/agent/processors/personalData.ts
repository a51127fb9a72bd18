/** What personal data looks like: where it begins and ends in a text, and how much of a text may be the beginning of some. Pure. */

/** A stretch of a text. */
export interface Stretch {
  readonly start: number
  readonly end: number
}

/** Finds one kind of data. */
export interface Finder {
  readonly kind: string
  /** The first one that begins at `from` or behind it. */
  readonly find: (text: string, from: number) => Stretch | undefined
  /** Where the end of a text begins that may be the beginning of one: what stands before it is settled. */
  readonly tail: (text: string) => number
}

/** How long the match is in truth; 0 for none. */
type Accept = (match: string) => number

const escapes = /\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})/g

/**
 * A text of the same length in which no escape of JSON is part of a word: an answer may be a value, and what stands in it behind
 * a new line begins there, not with the `n` of its escape.
 */
const withoutEscapes = (text: string): string =>
  text.includes("\\") ? text.replace(escapes, escape => "\0".repeat(escape.length)) : text

/** Finds what a pattern matches. `inside`: a character that may stand in a match. `first`: one that it may begin with. */
const finder = (
  kind: string,
  pattern: RegExp,
  { first, inside, longest }: { readonly first: RegExp; readonly inside: RegExp; readonly longest: number },
  accept?: Accept
): Finder => ({
  kind,
  find: (said, from) => {
    const text = withoutEscapes(said)
    pattern.lastIndex = from
    for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
      const length = accept === undefined ? match[0].length : accept(match[0])
      if (length > 0) return { start: match.index, end: match.index + length }
      // Another may begin inside it.
      pattern.lastIndex = match.index + 1
    }
    return undefined
  },
  tail: text => {
    let start = text.length
    const least = Math.max(0, text.length - longest)
    while (start > least && inside.test(text.charAt(start - 1))) start--
    while (start < text.length && !first.test(text.charAt(start))) start++
    return start
  }
})

const digitsOf = (text: string): string => text.replace(/\D/g, "")

/** Sum of Luhn: what every number of a card keeps to. */
const isCard = (digits: string): boolean => {
  let sum = 0
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits.at(-1 - index))
    const doubled = index % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0 && /[1-9]/.test(digits)
}

/** Remainder 1 modulo 97: what every IBAN keeps to. */
const isIban = (iban: string): boolean => {
  let remainder = 0
  for (const character of iban.slice(4) + iban.slice(0, 4)) {
    const value = Number.parseInt(character, 36)
    remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97
  }
  return remainder === 1
}

/** The longest beginning of a match that ends with a group of it and is one: numbers may stand behind numbers. */
const longestBeginning =
  (least: number, most: number, isOne: (characters: string) => boolean): Accept =>
  match => {
    for (let end = match.length; end > 0; end--) {
      // Within a group nothing ends.
      if (end < match.length && /[A-Za-z0-9]/.test(match.charAt(end))) continue
      if (!/[A-Za-z0-9]/.test(match.charAt(end - 1))) continue
      const characters = match.slice(0, end).replace(/[ -]/g, "")
      if (characters.length >= least && characters.length <= most && isOne(characters)) return end
    }
    return 0
  }

const isIpV6 = (text: string): boolean => {
  const halves = text.split("::")
  if (halves.length > 2) return false
  const groups = halves.flatMap(half => (half === "" ? [] : half.split(":")))
  if (groups.some(group => !/^[0-9A-Fa-f]{1,4}$/.test(group))) return false
  return halves.length === 2 ? groups.length <= 7 && groups.length > 0 : groups.length === 8
}

const isPhone = (match: string): boolean => {
  const { length } = digitsOf(match)
  return length >= 8 && length <= 15
}

const letterOrDigit = "[\\p{L}\\p{N}]"

/** Finds each kind of personal data that is known. Fresh ones: a pattern remembers its place. */
export const finders: Readonly<
  Record<"email" | "phone" | "creditCard" | "iban" | "ipAddress", () => Finder>
> = {
  email: () =>
    finder(
      "email",
      /[\p{L}\p{N}._%+'-]{1,64}@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.){1,4}\p{L}{2,24}/gu,
      {
        // Halves of a surrogate pair, for letters that are one.
        inside: /[\p{L}\p{N}\p{Cs}._%+'@-]/u,
        first: /[\p{L}\p{N}\p{Cs}._%+'-]/u,
        longest: 352
      }
    ),
  phone: () =>
    finder(
      "phone",
      new RegExp(
        `(?<!${letterOrDigit}|[+.-])(?:\\+\\d{1,3}(?:[ ./-]?\\(?\\d{1,4}\\)?){2,6}|0\\d{1,5}[ /-]\\d{2,8}(?:[ -]\\d{2,5}){0,3}|\\(\\d{3}\\) ?\\d{3}[-. ]\\d{4}|\\d{3}[-.]\\d{3}[-.]\\d{4})(?!${letterOrDigit})`,
        "gu"
      ),
      { inside: /[\d ()./+-]/, first: /[\d(+]/, longest: 56 },
      match => (isPhone(match) ? match.length : 0)
    ),
  creditCard: () =>
    finder(
      "creditCard",
      new RegExp(`(?<!${letterOrDigit})\\d(?:[ -]?\\d){12,30}(?!${letterOrDigit})`, "gu"),
      { inside: /[\d -]/, first: /\d/, longest: 64 },
      longestBeginning(13, 19, isCard)
    ),
  iban: () =>
    finder(
      "iban",
      new RegExp(`(?<!${letterOrDigit})[A-Z]{2}\\d{2}(?: ?[A-Z0-9]){11,40}(?!${letterOrDigit})`, "gu"),
      { inside: /[A-Z0-9 ]/, first: /[A-Z]/, longest: 88 },
      longestBeginning(15, 34, isIban)
    ),
  ipAddress: () =>
    finder(
      "ipAddress",
      /(?<![\p{L}\p{N}:.])(?:(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\p{L}\p{N}]|\.\d)|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\p{L}\p{N}:]))/gu,
      { inside: /[0-9A-Fa-f:.]/, first: /[0-9A-Fa-f:]/, longest: 56 },
      match => (match.includes(".") || isIpV6(match) ? match.length : 0)
    )
}

/** The same place, or the end of the escape that it is in the middle of. */
const behindEscape = (text: string, start: number): number => {
  if (!text.includes("\\")) return start
  for (const { 0: escape, index } of text.matchAll(escapes)) {
    if (index >= start) break
    if (index + escape.length > start) return index + escape.length
  }
  return start
}

/** Finds what a pattern matches, as long as a match has at most so many characters. */
export const custom = (kind: string, pattern: RegExp, longest: number): Finder => {
  const flags = pattern.flags.replace(/[gy]/g, "")
  const global = new RegExp(pattern.source, `${flags}g`)
  return {
    kind,
    find: (text, from) => {
      global.lastIndex = from
      for (let match = global.exec(text); match !== null; match = global.exec(text)) {
        const end = match.index + match[0].length
        const start = behindEscape(text, match.index)
        if (start < end) return { start, end }
        // Nothing is no data.
        global.lastIndex = Math.max(match.index + 1, start)
      }
      return undefined
    },
    tail: text => Math.max(0, text.length - longest)
  }
}
