/** Parts of answers as no provider should send them, at random. */
import { type ModelPart, Usage } from "eddy"
import { FastCheck as fc } from "effect"

/** Tools that parts name, beside one that is nowhere. */
export const toolNames = ["a", "b", "c"]
const blockIds = fc.constantFrom("0", "1", "")
const callIds = fc.constantFrom("c1", "c2", "")
const calledNames = fc.constantFrom(...toolNames, "unknown")
const deltas = fc.constantFrom("", " ", "word ", "\ud83d", "\ude00", "😀", "\ude00\ud83d", undefined)
const inputs = fc.constantFrom(
  "",
  " ",
  "{}",
  '{"n":1}',
  '{"n":"1"}',
  '{"n":',
  '"\\ud83d"',
  "[1]",
  { n: 2 },
  null
)
const inputDeltas = fc.constantFrom("", " ", "{}", '{"n"', ":1}", '"\ud83d', '\ude00"', undefined)

const circular: Record<string, unknown> = { a: 1 }
circular["self"] = circular

const deep = Array.from({ length: 300 }).reduce<unknown>(inner => ({ inner }), 1)

/** Values inside a provider's record that JSON cannot hold, or that cannot be read at all. */
const hostileValues: ReadonlyArray<unknown> = [
  undefined,
  Number.NaN,
  1n,
  Symbol("s"),
  () => 1,
  "\ud83d",
  circular,
  deep,
  new Map([["a", 1n]]),
  Proxy.revocable({}, {}).proxy,
  Object.create(null),
  {
    get broken(): never {
      throw new Error("unreadable")
    }
  }
]

/** Metadata as no provider should send it: keys whose value is no record, records of what JSON cannot hold, no record at all. */
export const malformedMetadata: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, 5, "kit", [], [{ kit: { a: 1 } }], {}, new Date(0)),
  fc.dictionary(
    fc.constantFrom("kit", "google", "__proto__", "toString", "\ud83d"),
    fc.oneof(
      fc.constantFrom<unknown>(null, undefined, 1, "a", [], [1], true, new Date(0)),
      fc.constantFrom(...hostileValues),
      fc.dictionary(
        fc.constantFrom("signature", "thoughtSignature", "a", "__proto__"),
        fc.constantFrom(...hostileValues, null, 1, "s1")
      )
    )
  )
)

const metadata = fc.oneof(
  { weight: 3, arbitrary: fc.constant(undefined) },
  {
    weight: 3,
    arbitrary: fc.constantFrom<NonNullable<ModelPart.Finish["providerMetadata"]>>(
      { kit: { signature: "s1" } },
      { kit: { signature: "s2" } },
      { kit: { other: 1 } },
      { google: { thoughtSignature: "t" } }
    )
  },
  { weight: 1, arbitrary: malformedMetadata }
)
export const usage = fc
  .record({ inputTokens: fc.nat(9), outputTokens: fc.nat(9) }, { requiredKeys: [] })
  .map(Usage.make)
export const reasons = fc.constantFrom<ModelPart.Finish["reason"]>(
  "stop",
  "length",
  "content-filter",
  "tool-calls",
  "error",
  "other"
)

/** Providers are loose: what the types promise does not always come. */
export const loosely = (part: object): ModelPart.ModelPart => part as ModelPart.ModelPart

const part = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constantFrom("text-delta", "reasoning-delta"),
      id: blockIds,
      delta: deltas,
      providerMetadata: metadata
    })
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constantFrom("text-start", "text-end", "reasoning-start", "reasoning-end"),
      id: blockIds,
      providerMetadata: metadata
    })
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constantFrom("tool-input-start", "tool-input-delta", "tool-input-delta", "tool-input-end"),
      id: callIds,
      toolName: calledNames,
      delta: inputDeltas,
      providerExecuted: fc.constantFrom(undefined, undefined, true),
      providerMetadata: metadata
    })
  },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant("tool-call"),
      toolCallId: callIds,
      toolName: calledNames,
      input: inputs,
      providerExecuted: fc.constantFrom(undefined, undefined, true),
      providerMetadata: metadata
    })
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("tool-result"),
      toolCallId: callIds,
      toolName: calledNames,
      result: fc.constantFrom(1, undefined, { ok: "\ud83d" }),
      isError: fc.constantFrom(undefined, true),
      providerMetadata: metadata
    })
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      { type: "source", id: "0", sourceType: "url", url: "https://kit.test" },
      { type: "source", id: "", sourceType: "document", title: "\ud83d" },
      { type: "file", data: new Uint8Array([1, 2]), mediaType: "image/png" },
      { type: "file", data: "AQI=", mediaType: "image/png", providerMetadata: { kit: { a: 1 } } },
      { type: "raw", value: { a: 1 } },
      { type: "raw", value: "\ud83d" },
      { type: "response-metadata", id: "r", timestamp: new Date(0) },
      { type: "response-metadata", modelId: "kit-2" },
      { type: "stream-start", warnings: [{ type: "other", message: "hm" }] }
    )
  }
)

/** Any part, or a turn of the event loop before the next one. Errors and finishes are rare. */
export const anyPart = fc.oneof(
  { weight: 12, arbitrary: part.map(loosely) },
  {
    weight: 1,
    arbitrary: fc
      .record({ reason: reasons, usage })
      .map(({ reason, usage }) => loosely({ type: "finish", reason, usage }))
  },
  { weight: 3, arbitrary: fc.constant("turn" as const) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      loosely({ type: "error", error: new Error("no") }),
      loosely({ type: "error", error: undefined }),
      "turn" as const
    )
  }
)
