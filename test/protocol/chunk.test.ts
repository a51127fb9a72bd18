import { afterAll, describe, expect, it } from "@effect/vitest"
import { Arbitrary, Effect, Either, FastCheck, Predicate, Schema } from "effect"
import * as Chunk from "../../src/protocol/Chunk.js"
import { InvalidChunk, ModelError, UnknownChunkType } from "../../src/protocol/Errors.js"
import { RemoteError } from "../../src/protocol/Json.js"
import * as Message from "../../src/protocol/Message.js"

// Schemas nest arbitraries deeply; small parts keep a hundred runs of the largest chunk within a second or two.
FastCheck.configureGlobal({ baseSize: "xsmall" })
afterAll(() => FastCheck.resetConfigureGlobal())

/** The contract's table, in its order (`contract/chunks.md`). */
const reference = [
  "text-start",
  "text-delta",
  "text-end",
  "reasoning-start",
  "reasoning-delta",
  "reasoning-end",
  "reasoning-signature",
  "tool-call",
  "tool-result",
  "tool-call-input-streaming-start",
  "tool-call-delta",
  "tool-call-input-streaming-end",
  "tool-error",
  "source",
  "file",
  "start",
  "step-start",
  "step-finish",
  "raw",
  "finish",
  "error",
  "abort",
  "object",
  "tool-output",
  "step-output",
  "background-task-started",
  "background-task-running",
  "background-task-progress",
  "background-task-output",
  "background-task-completed",
  "background-task-failed",
  "background-task-suspended",
  "background-task-resumed",
  "background-task-cancelled",
  "response-metadata",
  "watch",
  "goal",
  "tripwire"
] as const

/** Beyond the reference, `data-*` aside. */
const beyond = ["tool-call-approval", "tool-call-suspended", "tool-output-denied"] as const

const literal = [...reference, ...beyond]

/** Equal as chunks: deep; errors by name and message, dates by time, bytes by value, -0 as 0. */
const equal = (left: unknown, right: unknown): boolean => {
  if (left === right) return true
  if (!Predicate.isObject(left) || !Predicate.isObject(right)) return false
  if (left instanceof Error || right instanceof Error) {
    return (
      left instanceof Error &&
      right instanceof Error &&
      left.name === right.name &&
      left.message === right.message
    )
  }
  if (left instanceof Date || right instanceof Date) {
    return left instanceof Date && right instanceof Date && left.getTime() === right.getTime()
  }
  if (left instanceof URL || right instanceof URL) {
    return left instanceof URL && right instanceof URL && left.href === right.href
  }
  if (Array.isArray(left) !== Array.isArray(right)) return false
  if (left instanceof Uint8Array !== right instanceof Uint8Array) return false
  const one = new Map<string, unknown>(Object.entries(left))
  const two = new Map<string, unknown>(Object.entries(right))
  return one.size === two.size && [...one].every(([key, value]) => two.has(key) && equal(value, two.get(key)))
}

const throughText = (chunk: Chunk.Chunk) =>
  Effect.gen(function* () {
    const sent = JSON.stringify(yield* Chunk.encode(chunk))
    return yield* Chunk.decode(JSON.parse(sent))
  })

const schemaOf = (type: string): Schema.Schema.AnyNoContext => {
  const found = Chunk.Chunk.members.find(
    (member): boolean => member.fields.type.ast._tag === "Literal" && member.fields.type.ast.literal === type
  )
  return found ?? expect.fail(`no schema for ${type}`)
}

const envelope = { runId: "run-1", from: "AGENT" } as const

describe("types", () => {
  it("are those of the contract", () => {
    expect(reference).toHaveLength(38)
    expect(Chunk.types).toHaveLength(41)
    expect(new Set(Chunk.types)).toEqual(new Set(literal))
  })

  it("are one union with data-*", () => {
    expect(Chunk.Chunk.members).toHaveLength(42)
    const data = { type: "data-note", ...envelope, data: 1 }
    expect(Chunk.is(data)).toBe(true)
    expect(Chunk.is({ ...data, type: "datum" })).toBe(false)
  })

  it("cover the list at compile time too", () => {
    // Checked by the compiler in both directions: neither side may have a type that the other lacks.
    const types: ReadonlyArray<Exclude<Chunk.ChunkType, `data-${string}`>> = literal
    const back: ReadonlyArray<(typeof literal)[number]> = Chunk.types
    expect(types.length).toBe(back.length)
  })
})

describe("equality, as it is meant here", () => {
  it("tells unequal values apart", () => {
    expect(equal({ a: [1, new Date(0)] }, { a: [1, new Date(0)] })).toBe(true)
    expect(equal({ a: 1 }, { a: 1, b: undefined })).toBe(false)
    expect(equal([], {})).toBe(false)
    expect(equal([1], new Uint8Array([1]))).toBe(false)
    expect(equal(new Error("a"), new Error("b"))).toBe(false)
    expect(equal(new Date(0), new Date(1))).toBe(false)
  })
})

describe("encode and decode", () => {
  for (const type of [...literal, "data-*"]) {
    const schema = type === "data-*" ? Chunk.Chunk.members[41] : schemaOf(type)
    it.prop(`${type} comes back equal through text`, [Arbitrary.make(schema)], ([chunk]) => {
      const back = Effect.runSync(throughText(chunk))
      // The first line is for the report: it shows the difference.
      if (!equal(back, chunk)) expect(back).toEqual(chunk)
      expect(equal(back, chunk)).toBe(true)
      expect(Chunk.is(chunk)).toBe(true)
    })
  }

  const failure = FastCheck.oneof(
    FastCheck.jsonValue(),
    FastCheck.tuple(FastCheck.string(), FastCheck.string()).map(([name, message]) =>
      Object.assign(new Error(message), { name })
    )
  )

  it.prop("errors come back by name and message", [failure], ([error]) => {
    const failed: Chunk.Chunk = { type: "error", ...envelope, payload: { error } }
    expect(equal(Effect.runSync(throughText(failed)), failed)).toBe(true)
  })

  it.effect("an error that came over the wire is one, without a stack of this process", () =>
    Effect.gen(function* () {
      const back = yield* throughText({
        type: "tool-error",
        ...envelope,
        payload: { toolCallId: "a", toolName: "look", error: new TypeError("broke") }
      })
      const error = back.type === "tool-error" ? back.payload.error : undefined
      expect(error).toBeInstanceOf(RemoteError)
      expect(error).toMatchObject({ name: "TypeError", message: "broke", stack: "TypeError: broke" })
    })
  )

  it.effect("the JSON form has no stack and no cause, wherever an error stands", () =>
    Effect.gen(function* () {
      const deep = new AggregateError([new Error("inner")], "outer", { cause: new Error("why") })
      Object.defineProperty(deep, "stack", { value: "at secret.ts:1", enumerable: true })
      const chunks: ReadonlyArray<Chunk.Chunk> = [
        { type: "error", ...envelope, payload: { error: deep } },
        { type: "error", ...envelope, payload: { error: { nested: [deep] } } },
        { type: "abort", ...envelope, payload: { reason: deep } },
        { type: "tool-output", ...envelope, payload: { toolCallId: "a", output: new Map([["e", deep]]) } },
        { type: "tool-error", ...envelope, payload: { toolCallId: "a", toolName: "look", error: deep } },
        { type: "tool-result", ...envelope, payload: { toolCallId: "a", toolName: "look", result: [deep] } },
        { type: "start", ...envelope, payload: { whatever: deep } },
        { type: "data-error", ...envelope, data: deep }
      ]
      for (const chunk of chunks) {
        const sent = JSON.stringify(yield* Chunk.encode(chunk))
        expect(sent).toContain('{"name":"AggregateError","message":"outer"}')
        expect(sent).not.toMatch(/secret|stack|cause|inner|why/)
      }
    })
  )

  it.effect("dates are ISO text, bytes base64", () =>
    Effect.gen(function* () {
      const cancelled = yield* Chunk.encode({
        type: "background-task-cancelled",
        ...envelope,
        payload: {
          taskId: "t",
          toolName: "x",
          toolCallId: "a",
          runId: "r",
          agentId: "g",
          completedAt: new Date(0)
        }
      })
      expect(cancelled).toMatchObject({ payload: { completedAt: "1970-01-01T00:00:00.000Z" } })
      const file: Chunk.Chunk = {
        type: "file",
        ...envelope,
        payload: {
          data: new Uint8Array([104, 105]),
          mimeType: "a/b",
          providerMetadata: { openai: { id: "f" } }
        }
      }
      expect(yield* Chunk.encode(file)).toEqual({
        type: "file",
        ...envelope,
        payload: {
          data: "aGk=",
          encoding: "base64",
          mimeType: "a/b",
          providerMetadata: { openai: { id: "f" } }
        }
      })
      expect(equal(yield* throughText(file), file)).toBe(true)
    })
  )

  it.effect("what JSON cannot hold is made safe, metadata included", () =>
    Effect.gen(function* () {
      const cyclic: Record<string, unknown> = { big: 1n, call: () => 1 }
      cyclic["self"] = cyclic
      expect(
        yield* Chunk.encode({
          type: "tool-result",
          ...envelope,
          payload: {
            toolCallId: "a",
            toolName: "look",
            result: cyclic,
            args: { at: new Map([[1, 2]]) },
            providerMetadata: { openai: { text: "a\ud800" } }
          }
        })
      ).toEqual({
        type: "tool-result",
        ...envelope,
        payload: {
          toolCallId: "a",
          toolName: "look",
          result: { big: "1", self: "[Circular]" },
          args: { at: [[1, 2]] },
          providerMetadata: { openai: { text: "a\ufffd" } }
        }
      })
      const delta = yield* Chunk.encode({
        type: "text-delta",
        ...envelope,
        payload: { id: "1", text: "\udfff!" }
      })
      expect(delta).toMatchObject({ payload: { text: "\ufffd!" } })
    })
  )

  it.effect("a key named __proto__ never becomes a prototype", () =>
    Effect.gen(function* () {
      const poison = '{"__proto__":{"admin":true},"q":1}'
      const sent = [
        `{"type":"tool-call","runId":"r","from":"AGENT","payload":{"toolCallId":"a","toolName":"x","args":${poison}}}`,
        `{"type":"raw","runId":"r","from":"AGENT","payload":${poison}}`,
        `{"type":"data-x","runId":"r","from":"AGENT","data":${poison}}`,
        `{"type":"text-end","runId":"r","from":"AGENT","payload":{"id":"1","providerMetadata":{"p":${poison}}}}`
      ]
      const objects: Array<unknown> = []
      for (const json of sent) {
        const chunk = yield* Chunk.decode(JSON.parse(json))
        if (chunk.type === "tool-call") objects.push(chunk.payload.args)
        if (chunk.type === "raw") objects.push(chunk.payload)
        if (chunk.type === "data-x") objects.push(chunk.data)
        if (chunk.type === "text-end") objects.push(chunk.payload.providerMetadata?.["p"])
      }
      expect(objects).toHaveLength(4)
      for (const object of objects) {
        expect(object).toHaveProperty("q", 1)
        expect(Object.getPrototypeOf(object)).toBe(Object.prototype)
      }
    })
  )

  it.effect("metadata 100 000 levels deep neither overflows nor is lost as a defect", () =>
    Effect.gen(function* () {
      const json = `${"[".repeat(100_000)}${"]".repeat(100_000)}`
      const chunk = {
        type: "text-end" as const,
        ...envelope,
        payload: { id: "1", providerMetadata: { p: { deep: JSON.parse(json) } } }
      }
      expect(JSON.stringify(yield* Chunk.encode(chunk))).toContain("[Too deep]")
      expect((yield* Chunk.decode(chunk)).type).toBe("text-end")
    })
  )
})

describe("what is refused", () => {
  const refused = (json: unknown) => Effect.flip(Chunk.decode(json))

  it.effect.prop(
    "an unknown type, by its name",
    [
      FastCheck.string({ minLength: 1 }).filter(
        type => !Chunk.types.some(known => known === type) && !type.startsWith("data-")
      )
    ],
    ([type]) =>
      Effect.gen(function* () {
        const error = yield* refused({ type, ...envelope, payload: {} })
        expect(error).toBeInstanceOf(UnknownChunkType)
        expect(error.type).toBe(type)
        expect(error.message).toContain(`"${type}"`)
      })
  )

  it.effect.each<unknown>([null, undefined, 5, "text-start", [], {}, { type: 5 }])(
    "%j, which has no type",
    json =>
      Effect.gen(function* () {
        expect(yield* refused(json)).toBeInstanceOf(UnknownChunkType)
      })
  )

  for (const type of literal.filter(type => type !== "object")) {
    it.effect(`${type} whose payload is no object, naming the field`, () =>
      Effect.gen(function* () {
        const error = yield* refused({ type, ...envelope, payload: 5 })
        expect(error).toBeInstanceOf(InvalidChunk)
        expect(error.type).toBe(type)
        expect(error.message).toContain('["payload"]')
      })
    )
  }

  const text = { type: "text-delta", ...envelope, payload: { id: "1", text: "a" } }
  const ended = {
    type: "background-task-cancelled",
    ...envelope,
    payload: { taskId: "t", toolName: "x", toolCallId: "a", runId: "r", agentId: "g", completedAt: "soon" }
  }
  const file = { type: "file", ...envelope, payload: { data: "%", encoding: "base64", mimeType: "a/b" } }
  const wrong: ReadonlyArray<readonly [string, object]> = [
    ["runId", { ...text, runId: undefined }],
    ["from", { ...text, from: "GOD" }],
    ["text", { ...text, payload: { id: "1", text: 5 } }],
    ["id", { ...text, payload: { text: "a" } }],
    ["providerMetadata", { ...text, payload: { id: "1", text: "a", providerMetadata: { openai: 5 } } }],
    ["completedAt", ended],
    ["data", file],
    ["object", { type: "object", ...envelope, object: 1, runId: 5 }]
  ]

  it.effect.each(wrong)("a wrong field: %s", ([field, json]) =>
    Effect.gen(function* () {
      const error = yield* refused(json)
      expect(error).toBeInstanceOf(InvalidChunk)
      expect(error.message).toContain(field)
    })
  )

  it.effect("encoding a chunk of wrong fields", () =>
    Effect.gen(function* () {
      const stamped = (eventTimestamp: number): Chunk.Chunk => ({
        type: "watch",
        ...envelope,
        payload: { eventTimestamp }
      })
      expect(Either.isRight(yield* Effect.either(Chunk.encode(stamped(1))))).toBe(true)
      for (const figure of [Number.NaN, Number.POSITIVE_INFINITY]) {
        const error = yield* Effect.flip(Chunk.encode(stamped(figure)))
        expect(error).toBeInstanceOf(InvalidChunk)
        expect(error.message).toContain("eventTimestamp")
      }
    })
  )
})

it.effect("messages come back equal through text", () =>
  Effect.gen(function* () {
    const codec = Schema.parseJson(Schema.Array(Message.Message))
    const messages = FastCheck.sample(Arbitrary.make(Schema.Array(Message.Message)), {
      numRuns: 100,
      seed: 1
    })
    for (const one of messages) {
      const back = yield* Schema.decode(codec)(yield* Schema.encode(codec)(one))
      expect(equal(back, one)).toBe(true)
    }
  })
)

it.effect("the value of a result in a message is made safe", () =>
  Effect.gen(function* () {
    const message: Message.Message = {
      role: "tool",
      content: [
        { type: "tool-result", toolCallId: "a", toolName: "x", output: { type: "json", value: ["a\ud800"] } }
      ]
    }
    expect(yield* Schema.encode(Message.Message)(message)).toMatchObject({
      content: [{ output: { type: "json", value: ["a\ufffd"] } }]
    })
  })
)

describe("an error that is printed instead of encoded", () => {
  it("shows a client its name and its message, and no cause", () => {
    const cause = { headers: { authorization: "secret" } }
    const error = new ModelError({ reason: "request", provider: "p", modelId: "m", message: "No.", cause })
    const printed: unknown = JSON.parse(
      JSON.stringify({ type: "error", runId: "r", from: "AGENT", payload: { error } })
    )
    expect(printed).toMatchObject({ payload: { error: { name: "ModelError", message: "No." } } })
    expect(JSON.stringify(printed)).not.toContain("secret")
  })
})
