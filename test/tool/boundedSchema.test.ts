/** Schemas of strangers: what is checked of them costs no more than the value is long. */
import { describe, expect, it } from "vitest"
import { bounded } from "../../src/tool/boundedSchema.js"

const accepts = async (schema: Parameters<typeof bounded>[0], value: unknown): Promise<boolean> =>
  (await bounded(schema, "given").schema["~standard"].validate(value)).issues === undefined

const properties = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, { type: "string" }]))

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index)

const empty = (count: number) => numbers(count).map(() => ({}))

describe("a schema of somebody who is not trusted", () => {
  it("checks shapes, and tells the model all of it", async () => {
    const schema = {
      type: "object",
      properties: { pattern: { type: "string", pattern: "^a+$" }, of: { $ref: "#/$defs/of" } },
      required: ["pattern"],
      additionalProperties: false,
      $defs: { of: { enum: ["a", "b"] } }
    }
    expect(bounded(schema, "given").jsonSchema).toEqual(schema)
    expect(await accepts(schema, { pattern: "aa", of: "b" })).toBe(true)
    for (const wrong of [
      { pattern: 1 },
      { of: "a" },
      { pattern: "aa", of: "c" },
      { pattern: "a", other: 1 }
    ]) {
      expect(await accepts(schema, wrong)).toBe(false)
    }
  })

  it("runs no pattern, whatever property it stands for", async () => {
    const slow = "^(a+)+$"
    const value = `${"a".repeat(40)}!`
    expect(await accepts({ type: "object", properties: { text: { pattern: slow } } }, { text: value })).toBe(
      true
    )
    const byName = { type: "object", patternProperties: { [slow]: false }, additionalProperties: false }
    expect(await accepts(byName, { [value]: 1 })).toBe(true)
    expect(await accepts({ anyOf: [{ type: "string", format: "uri", pattern: slow }] }, value)).toBe(true)
  })

  it.each([
    [
      "recursion",
      { $defs: { node: { properties: { next: { $ref: "#/$defs/node" } } } }, $ref: "#/$defs/node" },
      "leads back"
    ],
    ["recursion of the root", { type: "object", properties: { next: { $ref: "#" } } }, "leads back"],
    ["other documents", { $ref: "https://example.com/schema.json" }, "leads"],
    ["size", { type: "object", properties: properties(2_001) }, "more than 2000 parts"],
    [
      "references that multiply",
      {
        $defs: Object.fromEntries(
          Array.from({ length: 40 }, (_, index) => [
            `d${index}`,
            index === 39
              ? { type: "string" }
              : { allOf: [{ $ref: `#/$defs/d${index + 1}` }, { $ref: `#/$defs/d${index + 1}` }] }
          ])
        ),
        $ref: "#/$defs/d0"
      },
      "more than 2000 parts"
    ],
    ["names that are required over and over", { required: Array(2_001).fill("a") }, "more than 2000 values"],
    ["long lists", { type: "array", items: { enum: numbers(2_001) } }, "more than 2000 values"],
    ["lists of types", { type: Array(2_001).fill("string") }, "more than 2000 values"],
    ["names that depend on one", { dependentRequired: { a: numbers(2_001) } }, "more than 2000 values"],
    ["long texts", { items: { enum: ["x".repeat(200_000)] } }, "more than 2000 values"],
    ["parts that are true", { prefixItems: Array(2_001).fill(true) }, "more than 2000 parts"],
    ["what is no schema", { type: "none" }, "no type"],
    ["a broken pattern", { pattern: "(" }, "cannot work"]
  ])("refuses %s by its field", (_, schema, said) => {
    expect(() => bounded(schema, "given")).toThrow(expect.objectContaining({ field: "given" }))
    expect(() => bounded(schema, "given")).toThrow(said)
  })

  it.each([
    ["items", { items: { required: numbers(1_000).map(String) } }],
    ["properties", { items: { properties: { a: false }, required: numbers(1_000).map(String) } }]
  ])("says of wrong %s what is wrong with the first of them", async (_, schema) => {
    const { issues } = await bounded(schema, "given").schema["~standard"].validate(empty(100))
    expect(issues?.length).toBe(1_000)
  })

  it("does not look whether an item is contained, or a name is allowed, among any number", async () => {
    const costly = { required: numbers(1_000).map(String) }
    expect(await accepts({ contains: costly, unevaluatedItems: false }, empty(100))).toBe(true)
    expect(await accepts({ propertyNames: { enum: ["b"] } }, { a: 1 })).toBe(true)
  })

  it("reads references at their place", async () => {
    const schema = { $defs: { "a/b": { type: "number" } }, type: "array", items: { $ref: "#/$defs/a~1b" } }
    expect(await accepts(schema, [1])).toBe(true)
    expect(await accepts(schema, ["1"])).toBe(false)
  })
})
