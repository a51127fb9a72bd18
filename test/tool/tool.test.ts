/** A tool by itself: how it is made, and what a call of it checks, does and gives back. */

import { describe, expect, it } from "@effect/vitest"
import { Errors, Tool, type ToolContext } from "eddy"
import { createTool, InvalidToolArguments } from "eddy/promise"
import { Context, Effect, Exit, Schema } from "effect"
import * as v from "valibot"
import { z } from "zod"
import { configurationError } from "../support/configurationError.js"

const context: ToolContext = {
  runId: "r",
  agentId: "a",
  toolCallId: "c",
  toolName: "t",
  threadId: undefined,
  resourceId: undefined,
  requestContext: new Map(),
  messages: [],
  abortSignal: new AbortController().signal,
  taskId: undefined,
  resumeData: undefined,
  suspendData: undefined,
  suspend: () => Effect.never,
  write: () => Effect.void,
  writeData: () => Effect.void
}

/** What a call of a tool comes to. */
const run = <R>(tool: Tool.Tool<string, R>, args: unknown): Effect.Effect<unknown, unknown, R> =>
  tool.call === undefined ? Effect.die("A tool of the client's") : tool.call(args, context)

describe("making a tool", () => {
  it.each(["", "with space", "ümlaut", "a.b", "a/b", "x".repeat(129), undefined, 1])(
    "refuses the name %s",
    name => {
      const error = configurationError(() => Tool.make(name as string, {}))
      expect(error.field).toBe("name")
      expect(error.message).toMatch(/cannot be the name of a tool\. Use 1 to 128 letters/)
    }
  )

  it.each(["a", "get_weather", "get-weather", "Get2", "x".repeat(128)])("takes the name %s", name => {
    expect(Tool.make(name, {}).definition.name).toBe(name)
  })

  const schemas: ReadonlyArray<readonly [what: string, input: unknown, problem: RegExp]> = [
    ["no schema", { city: z.string() }, /t\.input is no schema\. Pass an Effect Schema/],
    ["no object", z.string(), /t\.input does not describe an object/],
    ["an array", Schema.Array(Schema.String), /t\.input does not describe an object/],
    ["no description", v.object({ city: v.string() }), /t\.input \(valibot\) has no JSON Schema/],
    ["no JSON", Schema.Struct({ at: Schema.DateFromSelf }), /t\.input cannot be described as JSON Schema/],
    [
      "a JSON Schema that cannot work",
      { type: "objekt" },
      /t\.input is a JSON Schema that cannot work: there is no type "objekt"/
    ]
  ]

  it.each(schemas)("refuses an input schema that is %s", (_, input, problem) => {
    const error = configurationError(() => Tool.make("t", { input: input as never }))
    expect(error.field).toMatch(/^t\.input/)
    expect(error.message).toMatch(problem)
  })

  it("refuses a success schema that is none", () => {
    const error = configurationError(() =>
      Tool.make("t", { success: { ok: z.string() }, execute: () => Effect.void } as never)
    )
    expect(error.field).toBe("t.success")
  })

  it("tells the model its name, what it is for, and what its arguments are", () => {
    const input = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
    expect(Tool.make("weather", { description: "Tells it.", input }).definition).toStrictEqual({
      name: "weather",
      description: "Tells it.",
      inputSchema: input
    })
    expect(Tool.make("now", {}).definition).toStrictEqual({
      name: "now",
      inputSchema: { type: "object", properties: {}, additionalProperties: false }
    })
  })

  it("without execute makes a tool of the client's", () => {
    expect(Tool.make("ask", {}).call).toBeUndefined()
  })

  it("of the Promise face refuses the same, by the names that it has there", () => {
    expect(configurationError(() => createTool({ id: "with space" })).message).toMatch(/cannot be the name/)
    const nameless = createTool({ id: "first" })
    expect(configurationError(() => nameless.named("with space")).message).toMatch(/"with space"/)
    expect(nameless.named("second").definition.name).toBe("second")
    expect(nameless.named("second")).toBe(nameless.named("second"))
  })
})

describe("a call", () => {
  it.effect("decodes its arguments by an Effect schema", () =>
    Effect.gen(function* () {
      const tool = Tool.make("t", {
        input: Schema.Struct({
          at: Schema.Date,
          n: Schema.optionalWith(Schema.Number, { default: () => 3 })
        }),
        execute: ({ at, n }) => Effect.succeed([at.getTime(), n])
      })
      expect(yield* run(tool, { at: "1970-01-01T00:00:01.000Z" })).toStrictEqual([1000, 3])
    })
  )

  it.effect("decodes its arguments by a Standard Schema, also one that takes its time", () =>
    Effect.gen(function* () {
      const input = z.object({ city: z.string().trim(), unit: z.string().default("C") })
      const tool = Tool.make("t", { input, execute: args => Effect.succeed(args) })
      expect(yield* run(tool, { city: " Kiel " })).toStrictEqual({ city: "Kiel", unit: "C" })
      const slow = Tool.make("t", {
        input: z.object({ city: z.string().refine(async city => city !== "nowhere", "is nowhere") }),
        execute: args => Effect.succeed(args)
      })
      expect(yield* run(slow, { city: "Kiel" })).toStrictEqual({ city: "Kiel" })
      expect(yield* Effect.flip(run(slow, { city: "nowhere" }))).toMatchObject({
        message: 'Invalid arguments for tool "t": city: is nowhere'
      })
    })
  )

  it.effect("with wrong arguments executes nothing, and says what is wrong with each", () =>
    Effect.gen(function* () {
      let executions = 0
      const tool = Tool.make("t", {
        input: Schema.Struct({ a: Schema.Number, b: Schema.String }),
        execute: () => Effect.sync(() => executions++)
      })
      const error = yield* Effect.flip(run(tool, { a: "1" }))
      expect(error).toBeInstanceOf(Errors.InvalidToolArguments)
      expect(error).toBeInstanceOf(InvalidToolArguments)
      expect(error).toMatchObject({
        toolName: "t",
        message: expect.stringMatching(/"t": a: Expected number.*\nb: is missing/)
      })
      expect(executions).toBe(0)
    })
  )

  it.effect("of a tool without arguments takes whatever models send for none", () =>
    Effect.gen(function* () {
      const tool = Tool.make("t", { execute: args => Effect.succeed(args) })
      for (const args of [undefined, null, {}, { placeholder: 1 }]) {
        expect(yield* run(tool, args)).toStrictEqual({})
      }
      expect(yield* Effect.flip(run(tool, "text"))).toBeInstanceOf(Errors.InvalidToolArguments)
    })
  )

  it.effect("encodes its output by an Effect schema", () =>
    Effect.gen(function* () {
      const tool = Tool.make("t", {
        success: Schema.Struct({ at: Schema.Date, tags: Schema.Set(Schema.String) }),
        execute: () => Effect.succeed({ at: new Date(0), tags: new Set(["a"]) })
      })
      expect(yield* run(tool, {})).toStrictEqual({ at: "1970-01-01T00:00:00.000Z", tags: ["a"] })
    })
  )

  it.effect("validates its output by a Standard Schema and by a JSON Schema", () =>
    Effect.gen(function* () {
      const standard = Tool.make("t", {
        input: { type: "object" },
        success: z.object({ n: z.number() }),
        execute: args => Effect.succeed(args as { n: number })
      })
      expect(yield* run(standard, { n: 1, more: 2 })).toStrictEqual({ n: 1 })
      const json = Tool.make("t", {
        input: { type: "object" },
        success: { type: "object", required: ["n"] },
        execute: args => Effect.succeed(args)
      })
      expect(yield* run(json, { n: 1 })).toStrictEqual({ n: 1 })
      for (const tool of [standard, json]) {
        const error = yield* Effect.flip(run(tool, { m: 1 }))
        expect(error).toBeInstanceOf(Errors.InvalidToolOutput)
        expect(error).toMatchObject({
          toolName: "t",
          message: expect.stringMatching(/"t" returned a wrong output: n/)
        })
      }
    })
  )

  it.effect("without a success schema gives back what was returned, itself", () =>
    Effect.gen(function* () {
      const value = { at: new Date(0) }
      expect(yield* run(Tool.make("t", { execute: () => Effect.succeed(value) }), {})).toBe(value)
    })
  )

  it.effect("does not hold what says that it is an error against the success schema", () =>
    Effect.gen(function* () {
      const success = { type: "object", required: ["n"] }
      const of = (value: unknown) =>
        run(Tool.make("t", { success, execute: () => Effect.succeed(value) }), {})
      expect(yield* of({ isError: true })).toStrictEqual({ isError: true })
      expect(yield* Effect.flip(of({ isError: false }))).toBeInstanceOf(Errors.InvalidToolOutput)
      expect(yield* Effect.flip(of({ isError: 1 }))).toBeInstanceOf(Errors.InvalidToolOutput)
    })
  )

  it.effect("fails with what it fails with, and needs what it needs", () =>
    Effect.gen(function* () {
      class Shop extends Context.Tag("Shop")<
        Shop,
        { readonly price: (what: string) => Effect.Effect<number, string> }
      >() {}
      const tool = Tool.make("t", {
        input: Schema.Struct({ what: Schema.String }),
        execute: ({ what }) => Effect.flatMap(Shop, shop => shop.price(what))
      })
      const shop = Shop.of({ price: what => (what === "tea" ? Effect.succeed(3) : Effect.fail("sold out")) })
      const priced = (what: string) => Effect.exit(Effect.provideService(run(tool, { what }), Shop, shop))
      expect(yield* priced("tea")).toStrictEqual(Exit.succeed(3))
      expect(yield* priced("gold")).toStrictEqual(Exit.fail("sold out"))
    })
  )
})

describe("isErrorValue", () => {
  it.each([
    [{ isError: true }, true],
    [{ isError: true, content: [] }, true],
    [{ isError: "true" }, false],
    [{ error: "x" }, false],
    [new Error("x"), false],
    ["isError", false],
    [null, false],
    [undefined, false]
  ])("of %o is %s", (value, expected) => {
    expect(Tool.isErrorValue(value)).toBe(expected)
  })
})
