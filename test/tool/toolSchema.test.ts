import { describe, expect, it } from "@effect/vitest"
import type { StandardSchemaV1 } from "@standard-schema/spec"
import { type } from "arktype"
import { Effect, Exit, FastCheck, ParseResult, Schema } from "effect"
import * as v from "valibot"
import { z } from "zod"
import * as ToolSchema from "../../src/tool/ToolSchema.js"
import { configurationError } from "../support/configurationError.js"

const refusal = <A>(validation: Effect.Effect<A, ToolSchema.InvalidValue>) =>
  Effect.map(Effect.flip(validation), ({ message }) => message)

const lines = (message: string) => message.split("\n").sort()

/** One tool input, said five times. */
const effectTrip = Schema.Struct({
  city: Schema.String.annotations({ description: "Where to" }),
  nights: Schema.optional(Schema.Number),
  guests: Schema.Array(Schema.Struct({ name: Schema.String })),
  unit: Schema.Literal("C", "F")
})
const zodTrip = z.object({
  city: z.string().describe("Where to"),
  nights: z.number().optional(),
  guests: z.array(z.object({ name: z.string() })),
  unit: z.enum(["C", "F"])
})
const arkTrip = type({
  city: type("string").describe("Where to"),
  "nights?": "number",
  guests: type({ name: "string" }).array(),
  unit: "'C' | 'F'"
})
const jsonTrip = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  required: ["city", "guests", "unit"],
  properties: {
    city: { type: "string", description: "Where to" },
    nights: { type: "number" },
    guests: {
      type: "array",
      items: { type: "object", required: ["name"], properties: { name: { type: "string" } } }
    },
    unit: { enum: ["C", "F"] }
  }
}
const valibotTrip = {
  schema: v.object({
    city: v.string(),
    nights: v.optional(v.number()),
    guests: v.array(v.object({ name: v.string() })),
    unit: v.picklist(["C", "F"])
  }),
  jsonSchema: jsonTrip
}
const trips: ReadonlyArray<readonly [string, ToolSchema.Source]> = [
  ["Effect Schema", effectTrip],
  ["zod", zodTrip],
  ["arktype", arkTrip],
  ["valibot with its JSON Schema", valibotTrip],
  ["JSON Schema", jsonTrip]
]

describe.each(trips)("%s", (_, source) => {
  const trip = ToolSchema.input(source, "trip.input")
  const valid = { city: "Oslo", guests: [{ name: "Ada" }], unit: "C" }

  it("describes an object, nested parts and what is required", () => {
    expect(trip.jsonSchema).toMatchObject({
      type: "object",
      properties: {
        city: { type: "string" },
        nights: { type: "number" },
        guests: {
          type: "array",
          items: { type: "object", properties: { name: { type: "string" } }, required: ["name"] }
        },
        unit: { enum: ["C", "F"] }
      }
    })
    expect([...(trip.jsonSchema["required"] as Array<string>)].sort()).toEqual(["city", "guests", "unit"])
    expect(JSON.stringify(trip.jsonSchema)).toContain("Where to")
    expect(trip.jsonSchema).not.toHaveProperty("$schema")
    expect(trip.jsonSchema).toBe(trip.jsonSchema)
  })

  it.effect("hands on valid values, with and without what is optional", () =>
    Effect.gen(function* () {
      expect(yield* trip.decode(valid)).toEqual(valid)
      expect(yield* trip.decode({ ...valid, nights: 2 })).toEqual({ ...valid, nights: 2 })
      expect(yield* trip.encode(valid)).toEqual(valid)
    })
  )

  it.effect("tells every issue on a line of its own, path first", () =>
    Effect.gen(function* () {
      const message = yield* refusal(
        trip.decode({ city: 1, guests: [{ name: "Ada" }, { name: null }], unit: "K" })
      )
      const paths = new Set(message.split("\n").map(line => line.slice(0, line.indexOf(": "))))
      expect([...paths].sort()).toEqual(["city", "guests[1].name", "unit"])
    })
  )

  it.effect("names what is missing", () =>
    Effect.gen(function* () {
      const message = yield* refusal(trip.decode({ city: "Oslo", guests: [] }))
      expect(message).toMatch(/^unit: /)
    })
  )

  it.effect("leaves the value as it was", () =>
    Effect.gen(function* () {
      const value = { ...valid, extra: { deep: [1] } }
      const before = structuredClone(value)
      yield* trip.decode(value)
      yield* trip.encode(value)
      expect(value).toStrictEqual(before)
    })
  )

  it.effect("refuses values that are no objects", () =>
    Effect.gen(function* () {
      for (const value of [undefined, null, 1, "x", [], Symbol("s"), () => 1, 1n]) {
        expect(yield* refusal(trip.decode(value))).not.toBe("")
      }
    })
  )

  it.effect("bounds its messages", () =>
    Effect.gen(function* () {
      const guests = Array.from({ length: 1_000 }, () => ({ name: 1 }))
      const message = yield* refusal(trip.decode({ city: "x", guests, unit: "y".repeat(100_000) }))
      expect(message.length).toBeLessThanOrEqual(2_000)
      expect(message).toMatch(/^guests\[0\]\.name: /)
      expect(message).toMatch(/…$/)
    })
  )

  it.effect.prop("never throws or dies", [FastCheck.jsonValue({ maxDepth: 6 })], ([value]) =>
    Effect.gen(function* () {
      for (const candidate of [value, { city: value, guests: [value], unit: "C" }]) {
        const decoded = yield* Effect.either(trip.decode(candidate))
        if (decoded._tag === "Left") expect(decoded.left.message.length).toBeLessThanOrEqual(2_000)
        yield* Effect.either(trip.encode(candidate))
      }
    })
  )
})

describe("Effect Schema", () => {
  class Stay extends Schema.Class<Stay>("Stay")({ from: Schema.Date, nights: Schema.NumberFromString }) {}

  it.effect("makes instances of classes, and writes them as JSON", () =>
    Effect.gen(function* () {
      const stay = ToolSchema.input(Stay, "stay.input")
      const decoded = yield* stay.decode({ from: "2026-11-30T00:00:00.000Z", nights: "2" })
      expect(decoded).toBeInstanceOf(Stay)
      expect(decoded.nights).toBe(2)
      expect(yield* stay.encode(decoded)).toStrictEqual({ from: "2026-11-30T00:00:00.000Z", nights: "2" })
    })
  )

  it("describes a class at its root, without references", () => {
    const { jsonSchema } = ToolSchema.input(Schema.Struct({ stay: Stay, stays: Schema.Array(Stay) }), "input")
    expect(JSON.stringify(jsonSchema)).not.toContain("$ref")
    expect(ToolSchema.input(Stay, "input").jsonSchema).toEqual({
      type: "object",
      required: ["from", "nights"],
      properties: { from: { type: "string", description: expect.any(String) }, nights: expect.anything() },
      additionalProperties: false
    })
  })

  it.effect("keeps references of recursive schemas under an object", () =>
    Effect.gen(function* () {
      interface Folder {
        readonly folders: ReadonlyArray<Folder>
      }
      const Folder: Schema.Schema<Folder> = Schema.Struct({
        folders: Schema.Array(Schema.suspend(() => Folder))
      }).annotations({ identifier: "Folder" })
      const folder = ToolSchema.input(Folder, "input")
      expect(folder.jsonSchema).toMatchObject({
        type: "object",
        properties: { folders: { items: { $ref: "#/$defs/Folder" } } },
        $defs: { Folder: { type: "object" } }
      })
      let deep: unknown = { folders: [] }
      for (let level = 0; level < 100_000; level++) deep = { folders: [deep] }
      expect(Exit.isFailure(yield* Effect.exit(folder.decode(deep)))).toBe(true)
      expect(yield* refusal(folder.decode(deep))).not.toBe("")
    })
  )

  it.effect("waits for schemas that are effects", () =>
    Effect.gen(function* () {
      const known = Schema.transformOrFail(Schema.String, Schema.String, {
        strict: true,
        decode: (city, _, ast) =>
          Effect.delay(
            city === "Oslo"
              ? ParseResult.succeed(city.toUpperCase())
              : ParseResult.fail(new ParseResult.Type(ast, city, "no such city")),
            0
          ),
        encode: city => ParseResult.succeed(city.toLowerCase())
      })
      const { decode } = ToolSchema.input(Schema.Struct({ city: known }), "input")
      expect(yield* Effect.promise(() => Effect.runPromise(decode({ city: "Oslo" })))).toEqual({
        city: "OSLO"
      })
      const message = yield* Effect.promise(() => Effect.runPromise(refusal(decode({ city: "Atlantis" }))))
      expect(message).toBe("city: no such city")
    })
  )

  it.effect("applies defaults, drops what is not asked for", () =>
    Effect.gen(function* () {
      const { decode } = ToolSchema.input(
        Schema.Struct({ unit: Schema.optionalWith(Schema.String, { default: () => "C" }) }),
        "input"
      )
      expect(yield* decode({ other: 1 })).toStrictEqual({ unit: "C" })
    })
  )

  it.effect("takes a filter that throws for a refusal", () =>
    Effect.gen(function* () {
      const broken = Schema.String.pipe(
        Schema.filter(() => {
          throw new Error("broken filter")
        })
      )
      const { decode } = ToolSchema.input(Schema.Struct({ a: broken }), "input")
      expect(yield* refusal(decode({ a: "x" }))).toBe("broken filter")
    })
  )

  it("describes a struct without fields and unknown values without Effect's ids", () => {
    expect(ToolSchema.input(Schema.Struct({}), "input").jsonSchema).toEqual(ToolSchema.empty.jsonSchema)
    const record = Schema.Record({ key: Schema.String, value: Schema.Unknown })
    expect(JSON.stringify(ToolSchema.input(record, "input").jsonSchema)).not.toContain("$id")
  })

  it("names field and remedy when it cannot be described", () => {
    const error = configurationError(() =>
      ToolSchema.input(Schema.Struct({ at: Schema.DateFromSelf }), "trip.input")
    )
    expect(error.field).toBe("trip.input")
    expect(error.message).toMatch(/^trip\.input .*"at".*Schema\.Date.*annotation\.$/)
  })
})

describe("Standard Schema", () => {
  it.effect("hands on what transforms and defaults made", () =>
    Effect.gen(function* () {
      const zod = z.object({ unit: z.string().default("C"), nights: z.string().transform(Number) })
      expect(yield* ToolSchema.input(zod, "input").decode({ nights: "2" })).toEqual({ unit: "C", nights: 2 })
      const ark = type({ unit: "string = 'C'", nights: "string.numeric.parse" })
      expect(yield* ToolSchema.input(ark, "input").decode({ nights: "2" })).toEqual({ unit: "C", nights: 2 })
      const valibot = v.object({
        unit: v.optional(v.string(), "C"),
        nights: v.pipe(v.string(), v.transform(Number))
      })
      const described = { schema: valibot, jsonSchema: { type: "object" } }
      expect(yield* ToolSchema.input(described, "input").decode({ nights: "2" })).toEqual({
        unit: "C",
        nights: 2
      })
    })
  )

  it("does not require what has a default", () => {
    const { jsonSchema } = ToolSchema.input(
      z.object({ unit: z.string().default("C"), city: z.string() }),
      "input"
    )
    expect(jsonSchema["required"]).toEqual(["city"])
  })

  it.effect("waits for validators that are asynchronous", () =>
    Effect.gen(function* () {
      const schema = z.object({ city: z.string().refine(async city => city === "Oslo", "no such city") })
      const { decode } = ToolSchema.input(schema, "input")
      expect(yield* decode({ city: "Oslo" })).toEqual({ city: "Oslo" })
      expect(yield* refusal(decode({ city: "Atlantis" }))).toBe("city: no such city")
    })
  )

  it("costs no promise when it is synchronous", () => {
    expect(
      Effect.runSync(ToolSchema.input(zodTrip, "input").encode({ city: "x", guests: [], unit: "C" }))
    ).toEqual({
      city: "x",
      guests: [],
      unit: "C"
    })
  })

  it.effect("takes a validator that throws or rejects for a refusal", () =>
    Effect.gen(function* () {
      const broken = (validate: StandardSchemaV1["~standard"]["validate"]) =>
        ToolSchema.output(
          { "~standard": { version: 1, vendor: "test", validate } } as StandardSchemaV1,
          "output"
        )
      const throws = broken(() => {
        throw new Error("thrown")
      })
      expect(yield* refusal(throws.decode(1))).toBe("thrown")
      expect(yield* refusal(throws.encode(1))).toBe("thrown")
      expect(yield* refusal(broken(() => Promise.reject(new Error("rejected"))).encode(1))).toBe("rejected")
      expect(yield* refusal(broken(() => ({ issues: [] })).encode(1))).toBe("Invalid value")
    })
  )

  it("describes at its root what the library describes by reference", () => {
    const named = z.object({ city: z.string() }).meta({ id: "City" })
    expect(ToolSchema.input(named, "input").jsonSchema).toEqual({
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"]
    })
  })

  it("adds the type to a union of objects", () => {
    const union = z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("a") }),
      z.object({ kind: z.literal("b") })
    ])
    expect(ToolSchema.input(union, "input").jsonSchema).toMatchObject({ type: "object", oneOf: [{}, {}] })
  })

  it("names field and remedy when it cannot describe itself", () => {
    const valibot = configurationError(() => ToolSchema.input(valibotTrip.schema, "trip.input"))
    expect(valibot.field).toBe("trip.input")
    expect(valibot.message).toMatch(
      /^trip\.input \(valibot\) has no JSON Schema .*Pass \{ schema, jsonSchema \}/
    )
    const zod = configurationError(() => ToolSchema.input(z.object({ at: z.date() }), "trip.input"))
    expect(zod.message).toMatch(/Date cannot be represented.*Pass \{ schema, jsonSchema \}/)
  })

  it.effect("needs no description for an output", () =>
    Effect.gen(function* () {
      const schema = ToolSchema.output(v.object({ at: v.date() }), "output")
      expect(schema.jsonSchema).toEqual({})
      const at = new Date(0)
      expect(yield* schema.encode({ at })).toEqual({ at: at.toISOString() })
      expect(yield* refusal(schema.encode({ at: "now" }))).toMatch(/^at: /)
    })
  )
})

describe("JSON Schema", () => {
  const object = (properties: ToolSchema.Source & object, rest = {}) =>
    ({ type: "object", properties, ...rest }) as ToolSchema.Source

  it.effect("applies no defaults", () =>
    Effect.gen(function* () {
      const { decode } = ToolSchema.input(object({ unit: { type: "string", default: "C" } }), "input")
      expect(yield* decode({})).toStrictEqual({})
    })
  )

  it.effect("names paths of any keys, and what is not allowed", () =>
    Effect.gen(function* () {
      const { decode } = ToolSchema.input(
        object({ "a/b ~c": { type: "array", items: { type: "string" } } }, { additionalProperties: false }),
        "input"
      )
      const message = yield* refusal(decode({ "a/b ~c": ["x", 1], other: 1 }))
      expect(lines(message)).toEqual([
        '["a/b ~c"][1]: Instance type "number" is invalid. Expected "string".',
        "other: Not allowed."
      ])
    })
  )

  it.effect("treats keys of Object.prototype as data", () =>
    Effect.gen(function* () {
      const { decode } = ToolSchema.input(object({ constructor: { type: "string" } }), "input")
      expect(yield* decode({})).toStrictEqual({})
      expect(yield* refusal(decode({ constructor: 1 }))).toMatch(/^constructor: /)
      const value: unknown = JSON.parse('{"__proto__":{"a":1}}')
      expect(JSON.stringify(yield* decode(value))).toBe('{"__proto__":{"a":1}}')
    })
  )

  it.effect("follows references, also recursive ones", () =>
    Effect.gen(function* () {
      const schema = ToolSchema.input(
        {
          $ref: "#/$defs/tree",
          $defs: {
            tree: {
              type: "object",
              properties: { label: { $ref: "#/$defs/label" }, trees: { items: { $ref: "#/$defs/tree" } } }
            },
            label: { type: "string" }
          }
        },
        "input"
      )
      expect(schema.jsonSchema).toMatchObject({ type: "object", properties: {}, $defs: { tree: {} } })
      expect(schema.jsonSchema).not.toHaveProperty("$ref")
      expect(yield* refusal(schema.decode({ trees: [{ label: 1 }] }))).toMatch(/^trees\[0\]\.label: /)
    })
  )

  it.effect("chooses the draft by $schema", () =>
    Effect.gen(function* () {
      // Draft 7 ignores what stands beside a reference, 2020-12 does not.
      const beside = {
        properties: { a: { $ref: "#/definitions/a", minLength: 2 } },
        definitions: { a: { type: "string" } },
        type: "object"
      }
      const draft7 = { ...beside, $schema: "http://json-schema.org/draft-07/schema#" }
      expect(yield* ToolSchema.input(draft7, "input").decode({ a: "x" })).toEqual({ a: "x" })
      expect(yield* refusal(ToolSchema.input(beside, "input").decode({ a: "x" }))).toMatch(/^a: /)
    })
  )

  it.effect("takes frozen schemas, and one schema twice", () =>
    Effect.gen(function* () {
      const text = Object.freeze({ type: "string" })
      const frozen = Object.freeze({ type: "object", properties: Object.freeze({ a: text, b: text }) })
      for (const field of ["one", "two"]) {
        expect(yield* refusal(ToolSchema.input(frozen, field).decode({ b: 1 }))).toMatch(/^b: /)
      }
      expect(Object.getOwnPropertyNames(text)).toEqual(["type"])
    })
  )

  it.effect("requires an object where only properties are told", () =>
    Effect.gen(function* () {
      const schema = ToolSchema.input({ properties: { a: { type: "string" } } }, "input")
      expect(schema.jsonSchema["type"]).toBe("object")
      expect(yield* refusal(schema.decode(1))).toContain("object")
    })
  )

  it.effect("validates the JSON form of outputs", () =>
    Effect.gen(function* () {
      const schema = ToolSchema.output({ type: ["string", "null"] }, "output")
      expect(yield* schema.encode(new Date(0))).toBe("1970-01-01T00:00:00.000Z")
      expect(yield* schema.encode(undefined)).toBe(null)
      expect(yield* refusal(schema.encode({ a: 1 }))).toContain("object")
      expect(schema.jsonSchema).toEqual({ type: ["string", "null"] })
    })
  )

  it.each([
    ["a bad pattern", { a: { type: "string", pattern: "(" } }, /regular expression/],
    ["a bad pattern of keys", { a: { patternProperties: { "[": true } } }, /regular expression/],
    ["a reference to nowhere", { a: { $ref: "#/$defs/none" } }, /"#\/\$defs\/none" leads nowhere/],
    ["a remote reference", { a: { $ref: "https://example.com/a.json" } }, /leads nowhere/],
    ["an unknown type", { a: { type: "text" } }, /no type "text"/],
    ["a part that is no schema", { a: "string" }, /"a" is no schema/],
    ["an enum that is no list", { a: { enum: "x" } }, /"enum" must be an array/]
  ])("finds %s when it is made", (_, properties, reason) => {
    for (const make of [ToolSchema.input, ToolSchema.output]) {
      const error = configurationError(() => make({ type: "object", properties }, "trip.input"))
      expect(error.field).toBe("trip.input")
      expect(error.message).toMatch(/^trip\.input is a JSON Schema that cannot work/)
      expect(error.message).toMatch(reason)
    }
  })

  it("accepts examples and extensions that look like schemas", () => {
    const place = { example: { id: "one", type: "Point" }, "x-place": { $ref: "#/none" }, type: "object" }
    const other = { ...place, example: { id: "one", type: "Line" } }
    expect(() => ToolSchema.input(object({ place, other }), "input")).not.toThrow()
  })

  it("refuses one that refers to itself", () => {
    const circular: { [key: string]: unknown } = { type: "object" }
    circular["properties"] = { circular }
    expect(configurationError(() => ToolSchema.input(circular as ToolSchema.Source, "input")).field).toBe(
      "input"
    )
    expect(configurationError(() => ToolSchema.input({ $ref: "#" }, "input")).message).toContain("object")
  })
})

describe("any source", () => {
  it.each<[string, ToolSchema.Source]>([
    ["Effect Schema", Schema.String],
    ["zod", z.array(z.string())],
    ["arktype", type("string")],
    ["valibot", { schema: v.string(), jsonSchema: { type: "string" } }],
    ["JSON Schema", { type: "string" }],
    ["nullable JSON Schema", { type: ["object", "null"] }],
    ["union with a string", z.union([z.string(), z.object({})])]
  ])("%s must be an object as input, not as output", (_, source) => {
    const error = configurationError(() => ToolSchema.input(source, "trip.input"))
    expect(error.field).toBe("trip.input")
    expect(error.message).toMatch(/^trip\.input does not describe an object.*type: "object"/)
    expect(() => ToolSchema.output(source, "trip.output")).not.toThrow()
  })

  it.each([
    ["a string", "string"],
    ["null", null],
    ["a function", () => ({})],
    ["an array", []],
    ["fields without z.object", { city: z.string() }],
    ["fields without Schema.Struct", { city: Schema.String }]
  ])("%s is no schema", (_, value) => {
    for (const make of [ToolSchema.input, ToolSchema.output]) {
      const error = configurationError(() => make(value as never, "trip.input"))
      expect(error.message).toMatch(/^trip\.input is no schema.*z\.object/)
    }
  })

  it.effect("none: no arguments", () =>
    Effect.gen(function* () {
      expect(ToolSchema.input(undefined, "input")).toBe(ToolSchema.empty)
      expect(ToolSchema.empty.jsonSchema).toEqual({
        type: "object",
        properties: {},
        additionalProperties: false
      })
      for (const value of [undefined, null, {}, { placeholder: true }]) {
        expect(yield* ToolSchema.empty.decode(value)).toStrictEqual({})
      }
      expect(yield* refusal(ToolSchema.empty.decode([1]))).toContain("without properties")
    })
  )

  it("describes an output once, when it is asked to", () => {
    let asked = 0
    const schema = {
      "~standard": {
        version: 1 as const,
        vendor: "test",
        validate: (value: unknown) => ({ value }),
        jsonSchema: { input: () => ({}), output: () => ({ type: "string", title: `${++asked}` }) }
      }
    }
    const made = ToolSchema.output(schema, "output")
    expect(asked).toBe(0)
    expect([made.jsonSchema, made.jsonSchema]).toEqual([
      { type: "string", title: "1" },
      { type: "string", title: "1" }
    ])
  })

  it.effect("refusals are values without a stack", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(ToolSchema.input(effectTrip, "input").decode({}))
      expect(error).toBeInstanceOf(ToolSchema.InvalidValue)
      expect(error).not.toBeInstanceOf(Error)
      expect(Object.keys(error).sort()).toEqual(["_tag", "message"])
    })
  )
})
