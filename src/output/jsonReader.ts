/**
 * Reads a text as JSON, character by character, wherever it is cut. Needs no stack for depth, and a time in proportion to the
 * text.
 *
 * It takes what JSON takes, and two things that models write beside it: line breaks and other control characters within
 * strings, and a comma behind the last member. A number is told when the character behind it has come, since it may go on
 * before that; so is a key.
 */
import { GrowingValue } from "./growingValue.js"

type Expected = "value" | "element" | "key" | "colon" | "comma" | "string" | "number" | "word" | "nothing"

const [quote, backslash, comma, colon] = [34, 92, 44, 58]
const [openBracket, closeBracket, openBrace, closeBrace] = [91, 93, 123, 125]

const isSpace = (code: number): boolean => code === 32 || code === 10 || code === 13 || code === 9

const isOfNumber = (code: number): boolean =>
  (code >= 48 && code <= 57) || code === 43 || code === 45 || code === 46 || code === 69 || code === 101

const number = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/

const words = new Map<number, readonly [string, boolean | null]>([
  [116, ["true", true]],
  [102, ["false", false]],
  [110, ["null", null]]
])

const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t"
}

export class JsonReader {
  readonly growing: GrowingValue
  private expected: Expected = "value"
  private isKey = false
  private keyText = ""
  /** What of an escape, a number or a word has come. */
  private token = ""
  private isEscape = false
  private word: readonly [string, boolean | null] = ["", null]

  /** What is wrong; `undefined` as long as nothing is. */
  failure: string | undefined

  constructor(
    /** Where the root is to be an array: the one key that an object around it may have. */
    private readonly elementsKey?: string,
    isUnseen = false
  ) {
    this.growing = new GrowingValue(elementsKey, isUnseen)
  }

  /** Whether the value is complete. */
  get isDone(): boolean {
    return this.expected === "nothing"
  }

  /** Reads on from a place in a text, and gives the place where it stopped: the end, unless it is done or has failed. */
  read(text: string, from: number): number {
    let at = from
    while (at < text.length && this.failure === undefined && this.expected !== "nothing") {
      if (this.expected === "string") {
        at = this.isEscape ? this.escape(text, at) : this.string(text, at)
        continue
      }
      const code = text.charCodeAt(at)
      if (this.expected === "number") {
        if (isOfNumber(code)) {
          this.token += text[at++]
          continue
        }
        this.endNumber()
        continue
      }
      if (this.expected === "word") {
        this.spell(text[at++] ?? "")
        continue
      }
      if (!isSpace(code)) this.take(code, text, at)
      if (this.failure === undefined) at++
    }
    return at
  }

  private fail(found: string): void {
    this.failure = `Unexpected ${found}`
  }

  private take(code: number, text: string, at: number) {
    const { expected, growing } = this
    switch (expected) {
      case "key":
        if (code === quote) return this.openString(true)
        if (code === closeBrace) return this.close()
        break
      case "colon":
        if (code !== colon) break
        this.expected = "value"
        return
      case "comma":
        if (code === comma) {
          this.expected = growing.isInArray ? "element" : "key"
          return
        }
        if (code === (growing.isInArray ? closeBracket : closeBrace)) return this.close()
        break
      default:
        if (code === closeBracket && expected === "element") return this.close()
        if (this.begin(code, text[at] ?? "")) return
    }
    this.fail(JSON.stringify(text[at]))
  }

  /** Whether a value begins. */
  private begin(code: number, character: string): boolean {
    if (code === quote) {
      this.openString(false)
    } else if (code === openBrace || code === openBracket) {
      this.growing.open(code === openBracket)
      this.expected = code === openBracket ? "element" : "key"
    } else if (code === 45 || (code >= 48 && code <= 57)) {
      this.token = character
      this.expected = "number"
    } else {
      const word = words.get(code)
      if (word === undefined) return false
      this.word = word
      this.token = character
      this.expected = "word"
    }
    return true
  }

  private ended(): void {
    this.expected = this.growing.depth === 0 ? "nothing" : "comma"
  }

  private close(): void {
    this.growing.close()
    this.ended()
  }

  private openString(isKey: boolean): void {
    this.isKey = isKey
    this.expected = "string"
    this.keyText = ""
    if (!isKey) this.growing.openString()
  }

  private grow(piece: string): void {
    if (this.isKey) this.keyText += piece
    else this.growing.growString(piece)
  }

  private string(text: string, from: number): number {
    let at = from
    let code = 0
    while (at < text.length) {
      code = text.charCodeAt(at)
      if (code === quote || code === backslash) break
      at++
    }
    if (at > from) this.grow(from === 0 && at === text.length ? text : text.slice(from, at))
    if (at === text.length) return at
    if (code === backslash) {
      this.isEscape = true
      this.token = ""
    } else if (this.isKey) {
      this.endKey()
    } else {
      this.growing.closeString()
      this.ended()
    }
    return at + 1
  }

  private endKey(): void {
    const { elementsKey, growing, keyText } = this
    growing.key(keyText)
    this.expected = "colon"
    if (growing.depth === 1 && elementsKey !== undefined && growing.firstKey !== elementsKey) {
      this.failure = `Expected an array, or an object with the key "${elementsKey}"`
    }
  }

  private escape(text: string, at: number): number {
    const character = text[at] ?? ""
    if (this.token === "") {
      if (character === "u") {
        this.token = "u"
        return at + 1
      }
      const meant = Object.hasOwn(escapes, character) ? escapes[character] : undefined
      if (meant === undefined) {
        this.fail(`escape ${JSON.stringify(character)}`)
        return at
      }
      this.isEscape = false
      this.grow(meant)
      return at + 1
    }
    if (!/[0-9a-fA-F]/.test(character)) {
      this.fail(`${JSON.stringify(character)} in an escape`)
      return at
    }
    this.token += character
    if (this.token.length === 5) {
      this.isEscape = false
      this.grow(String.fromCharCode(Number.parseInt(this.token.slice(1), 16)))
    }
    return at + 1
  }

  private endNumber() {
    if (!number.test(this.token)) return this.fail(`number ${this.token}`)
    this.growing.scalar(Number(this.token))
    this.ended()
  }

  private spell(character: string) {
    const [spelling, value] = this.word
    this.token += character
    if (!spelling.startsWith(this.token)) return this.fail(JSON.stringify(this.token))
    if (this.token !== spelling) return
    this.growing.scalar(value)
    this.ended()
  }
}
