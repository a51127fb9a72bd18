/** Schemas of strangers: what is checked of them costs no more than the value is long. */
import { describe, expect, it } from "vitest"
import { bounded } from "../../src/tool/boundedSchema.js"

const accepts = async (schema: Parameters<typeof bounded>[0], value: unknown): Promise<boolean> =>
  (await bounded(schema, "given").schema["~standard"].validate(value)).issues === undefined

const properties = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, { type: "string" }]))

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
    ["what is no schema", { type: "none" }, "no type"],
    ["a broken pattern", { pattern: "(" }, "cannot work"]
  ])("refuses %s by its field", (_, schema, said) => {
    expect(() => bounded(schema, "given")).toThrow(expect.objectContaining({ field: "given" }))
    expect(() => bounded(schema, "given")).toThrow(said)
  })

  it("reads references at their place", async () => {
    const schema = { $defs: { "a/b": { type: "number" } }, type: "array", items: { $ref: "#/$defs/a~1b" } }
    expect(await accepts(schema, [1])).toBe(true)
    expect(await accepts(schema, ["1"])).toBe(false)
  })
})
