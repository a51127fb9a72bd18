/** Redaction: whatever a text says and wherever it is cut, what comes out is what the whole text gives. */
import { describe, expect, it } from "@effect/vitest"
import { Processor } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, FastCheck as fc } from "effect"
import { custom, finders } from "../../src/agent/processors/personalData.js"
import { Redacting, redacted } from "../../src/agent/processors/redacting.js"
import { textOf } from "./kit.js"
import { ran, said } from "./processorsKit.js"

const { finish, reply } = ScriptedModel

const all = () => [custom("key", /sk-[a-z0-9]{4,12}\b/i, 24), ...Object.values(finders).map(make => make())]

const replace = (kind: string): string => `[${kind}]`

const whole = (text: string): string => redacted(all(), replace, text)

describe("what is found", () => {
  const found: ReadonlyArray<readonly [string, string]> = [
    ["Write to ada.l+x@mail.example.co.uk, please.", "Write to [email], please."],
    ["Call +49 (30) 123 456-78 or (415) 555-2671.", "Call [phone] or [phone]."],
    ["Call 030 12345678 today", "Call [phone] today"],
    ["Card 4111 1111 1111 1111 12/27", "Card [creditCard] 12/27"],
    ["12 4111111111111111.", "12 [creditCard]."],
    ["Pay to DE89 3704 0044 0532 0130 00 NOW", "Pay to [iban] NOW"],
    ["From 192.168.0.1: ok", "From [ipAddress]: ok"],
    ["From 2001:db8::8a2e:370:7334 ok", "From [ipAddress] ok"],
    ["The key sk-abc123 is", "The key [key] is"]
  ]

  it.each(found)("%s", (text, expected) => {
    expect(whole(text)).toBe(expected)
  })

  it.each([
    "On 2024-01-15 at 12:30:45 we had 3.14 and 1,000,000 of 4111 1111 1111 1112.",
    "Version 1.2.3 of a@b and DE89 3704 1144."
  ])("and left alone: %s", text => {
    expect(whole(text)).toBe(text)
  })
})

/** What brings patterns to their edges. */
const bit = fc.oneof(
  fc.constantFrom(
    "4111 1111 1111 1111",
    "4111111111111111",
    "ada@mail.example",
    "DE89 3704 0044 0532 0130 00",
    "DE89370400440532013000",
    "192.168.0.1",
    "2001:db8::1",
    "+49 30 1234567",
    "(415) 555-2671",
    "sk-abc123",
    "😀",
    "é"
  ),
  fc.string({ unit: fc.constantFrom(..."0149 .-+()@:aBDEf_x\n"), maxLength: 6 })
)

const texts = fc.array(bit, { maxLength: 12 }).map(bits => bits.join(""))

/** A text, cut between its characters. */
const pieces = (text: string, cuts: ReadonlyArray<number>): ReadonlyArray<string> => {
  const characters = [...text]
  const places = [...new Set(cuts.map(cut => cut % (characters.length + 1)))].sort(
    (left, right) => left - right
  )
  return [0, ...places].map((from, index) => characters.slice(from, places[index]).join(""))
}

describe("however it is cut", () => {
  it("the same comes out", () => {
    fc.assert(
      fc.property(texts, fc.array(fc.nat(), { maxLength: 12 }), (text, cuts) => {
        const redacting = new Redacting(all(), replace)
        const told = pieces(text, cuts).map(piece => redacting.push(piece))
        expect(told.join("") + redacting.end()).toBe(whole(text))
      }),
      { numRuns: 2000 }
    )
  })

  it("character by character, too", () => {
    fc.assert(
      fc.property(texts, text => {
        const redacting = new Redacting(all(), replace)
        const told = [...text].map(piece => redacting.push(piece))
        expect(told.join("") + redacting.end()).toBe(whole(text))
      }),
      { numRuns: 500 }
    )
  })

  it("no more is held back than may be the beginning of something", () => {
    const redacting = new Redacting(
      Object.values(finders).map(make => make()),
      replace
    )
    expect(redacting.push("Plain words go out at once. ")).toBe("Plain words go out at once. ")
    expect(redacting.push("x".repeat(5000)).length).toBeGreaterThan(4000)
  })
})

describe("redact", () => {
  const deltas = (text: string) => [
    { type: "text-start", id: "t" } as const,
    ...[...text].map(delta => ({ type: "text-delta", id: "t", delta }) as const),
    { type: "text-end", id: "t" } as const,
    finish("stop")
  ]

  it.effect("in and out: neither model nor reader nor anything stored has it", () =>
    Effect.gen(function* () {
      const redact = Processor.redact()
      const { chunks, full, requests } = yield* ran(
        [deltas("Ask bob@mail.example or +49 30 1234567")],
        { inputProcessors: [redact], outputProcessors: [redact] },
        "I am ada@mail.example"
      )
      expect(full.text).toBe("Ask [email] or [phone]")
      expect(textOf(chunks)).toBe(full.text)
      expect(said(requests[0]?.messages)).toContain("I am [email]")
      expect(said([chunks, full, requests])).not.toMatch(/mail\.example|1234567/)
    })
  )

  it.effect("says what it is told to say", () =>
    Effect.gen(function* () {
      const redact = Processor.redact({
        data: [],
        patterns: { name: /Ada|Bob/ },
        replacement: (kind, found) => `<${kind} ${found.length}>`
      })
      const { full } = yield* ran([reply("Ada and Bob")], { outputProcessors: [redact] })
      expect(full.text).toBe("<name 3> and <name 3>")
    })
  )

  it("refuses what it does not know", () => {
    expect(() => Processor.redact({ data: ["shoe" as "email"] })).toThrow(/knows no data "shoe"/)
    expect(() => Processor.redact({ data: [] })).toThrow(/nothing to look for/)
    expect(() => Processor.redact({ patterns: { key: "sk" as unknown as RegExp } })).toThrow(
      /no regular expression/
    )
    expect(() => Processor.redact({ longest: 0 })).toThrow(/whole number/)
  })
})
