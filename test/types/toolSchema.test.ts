import { type } from "arktype"
import { type Effect, Schema } from "effect"
import * as v from "valibot"
import { describe, expectTypeOf, it } from "vitest"
import { z } from "zod"
import * as ToolSchema from "../../src/tool/ToolSchema.js"

const effect = Schema.Struct({ nights: Schema.NumberFromString })
class Stay extends Schema.Class<Stay>("Stay")({ from: Schema.Date }) {}
const zod = z.object({ unit: z.string().default("C"), nights: z.string().transform(Number) })
const ark = type({ "nights?": "number" })
const valibot = {
  schema: v.object({ nights: v.pipe(v.string(), v.transform(Number)) }),
  jsonSchema: { type: "object" }
}
const json = { type: "object", properties: { nights: { type: "number" } } }
const jsonConst = { type: "object", required: ["a"] } as const

describe("ToolSchema", () => {
  it("Decoded is what execute receives", () => {
    expectTypeOf<ToolSchema.Decoded<typeof effect>>().toEqualTypeOf<{ readonly nights: number }>()
    expectTypeOf<ToolSchema.Decoded<typeof Stay>>().toEqualTypeOf<Stay>()
    expectTypeOf<ToolSchema.Decoded<typeof zod>>().toEqualTypeOf<{ unit: string; nights: number }>()
    expectTypeOf<ToolSchema.Decoded<typeof ark>>().toEqualTypeOf<{ nights?: number }>()
    expectTypeOf<ToolSchema.Decoded<typeof valibot>>().toEqualTypeOf<{ nights: number }>()
    expectTypeOf<ToolSchema.Decoded<typeof json>>().toEqualTypeOf<unknown>()
    expectTypeOf<ToolSchema.Decoded<ToolSchema.Empty>>().toEqualTypeOf<Record<string, never>>()
  })

  it("Accepted is what a tool may return", () => {
    expectTypeOf<ToolSchema.Accepted<typeof effect>>().toEqualTypeOf<{ readonly nights: number }>()
    expectTypeOf<ToolSchema.Accepted<typeof Stay>>().toEqualTypeOf<Stay>()
    expectTypeOf<ToolSchema.Accepted<typeof zod>>().toEqualTypeOf<{
      unit?: string | undefined
      nights: string
    }>()
    expectTypeOf<ToolSchema.Accepted<typeof ark>>().toEqualTypeOf<{ nights?: number }>()
    expectTypeOf<ToolSchema.Accepted<typeof valibot>>().toEqualTypeOf<{ nights: string }>()
    expectTypeOf<ToolSchema.Accepted<typeof json>>().toEqualTypeOf<unknown>()
    expectTypeOf<ToolSchema.Accepted<ToolSchema.Anything>>().toEqualTypeOf<unknown>()
  })

  it("input and output infer from every kind of source", () => {
    expectTypeOf(ToolSchema.input(effect, "f")).toEqualTypeOf<
      ToolSchema.ToolSchema<{ readonly nights: number }>
    >()
    expectTypeOf(ToolSchema.input(Stay, "f").decode).returns.toEqualTypeOf<
      Effect.Effect<Stay, ToolSchema.InvalidValue>
    >()
    expectTypeOf(ToolSchema.input(zod, "f")).toEqualTypeOf<
      ToolSchema.ToolSchema<{ unit: string; nights: number }>
    >()
    expectTypeOf(ToolSchema.input(ark, "f")).toEqualTypeOf<ToolSchema.ToolSchema<{ nights?: number }>>()
    expectTypeOf(ToolSchema.input(valibot, "f")).toEqualTypeOf<ToolSchema.ToolSchema<{ nights: number }>>()
    expectTypeOf(ToolSchema.input(jsonConst, "f")).toEqualTypeOf<ToolSchema.ToolSchema<unknown>>()
    expectTypeOf(ToolSchema.input<ToolSchema.Empty>(undefined, "f")).toEqualTypeOf<
      ToolSchema.ToolSchema<Record<string, never>>
    >()
    expectTypeOf(ToolSchema.output(Schema.Date, "f")).toEqualTypeOf<ToolSchema.ToolSchema<Date>>()
  })

  it("is covariant", () => {
    expectTypeOf<ToolSchema.ToolSchema<Stay>>().toExtend<ToolSchema.ToolSchema<unknown>>()
    expectTypeOf<ToolSchema.ToolSchema<unknown>>().not.toExtend<ToolSchema.ToolSchema<Stay>>()
  })

  it("refuses what is no schema, and Effect Schemas that need services", () => {
    expectTypeOf<string>().not.toExtend<ToolSchema.Source>()
    expectTypeOf<{ city: typeof zod }>().not.toExtend<ToolSchema.Source>()
    expectTypeOf<Schema.Schema<string, string, "service">>().not.toExtend<ToolSchema.Source>()
    expectTypeOf<Schema.Schema<string, string>>().toExtend<ToolSchema.Source>()
  })
})
