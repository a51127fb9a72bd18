/** Names of a server's tools, made acceptable to providers. */
import { describe, expect, it } from "vitest"
import { toolNames } from "../../src/mcp/toolNames.js"

const long = "a".repeat(128)

const cases: ReadonlyArray<
  readonly [what: string, names: ReadonlyArray<string>, made: ReadonlyArray<string>, prefix: string]
> = [
  ["leaves what providers take", ["read_file", "B-2"], ["read_file", "B-2"], ""],
  ["replaces the rest", ["a.b", "søk", "a b/c", "🌍"], ["a_b", "s_k", "a_b_c", "_"], ""],
  ["numbers what has become alike", ["a.b", "a/b", "a b"], ["a_b", "a_b_2", "a_b_3"], ""],
  ["leaves its name to a tool that has it, wherever it stands", ["a.b", "a_b"], ["a_b_2", "a_b"], ""],
  ["gives no number away twice", ["a.b", "a/b", "a_b_2"], ["a_b", "a_b_3", "a_b_2"], ""],
  ["cuts at 128", [`${long}b`, `${long}c`], [long, `${long.slice(2)}_2`], ""],
  ["puts the prefix in front", ["a", "b.c"], ["x_a", "x_b_c"], "x_"],
  ["cuts with the prefix", [long], [`x_${long.slice(2)}`], "x_"],
  ["has none for none", [], [], ""]
]

describe("names", () => {
  it.each(cases)("%s", (_, names, made, prefix) => {
    expect(toolNames(names, prefix)).toStrictEqual(made)
    for (const name of toolNames(names, prefix)) expect(name).toMatch(/^[A-Za-z0-9_-]{1,128}$/)
  })
})
