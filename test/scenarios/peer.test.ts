/** Where our chunks differ from the peer's in kind or order, it is known why: README.md says it, and says nothing else. */
import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { scenarios as narrow } from "./all.js"
import { declared, difference, edits, typesOf } from "./scenario.js"
import { wide } from "./wide.js"

const page = await readFile(fileURLToPath(new URL("./README.md", import.meta.url)), "utf8")

/** Every scenario, in the order of its number. */
const scenarios = [...narrow, ...wide].sort((left, right) => (left.id < right.id ? -1 : 1))

/** The cells of each row of the table. */
const rows = page
  .split("\n")
  .filter(line => line.startsWith("| `"))
  .map(line =>
    line
      .split("|")
      .slice(1, -1)
      .map(cell => cell.trim())
  )

/** The scenarios that show each difference, by its id. */
const shown = new Map<string, ReadonlyArray<string>>()
for (const { differences = {}, id } of scenarios) {
  for (const name of Object.keys(differences)) shown.set(name, [...(shown.get(name) ?? []), id])
}

/** The scenarios that could show one. */
const compared = scenarios.filter(({ peer }) => peer !== undefined)

describe("what differs from the peer", () => {
  it("is found", () => {
    expect(edits(typesOf("start a×2 b finish"), typesOf("start a c finish"))).toEqual(["-a", "-b", "+c"])
    expect(edits(typesOf("a#1 a#2"), typesOf("a#2 a#1"))).toEqual(["-a#1", "+a#1"])
    expect(edits([], typesOf("start"))).toEqual(["+start"])
    expect(edits(typesOf("start x×2"), typesOf("start x×2"))).toEqual([])
  })

  it.each(scenarios.map(scenario => [scenario.id, scenario] as const))("%s: is declared", (_, scenario) => {
    expect(difference(scenario)).toEqual(declared(scenario))
  })

  it("has a row in the page, and every row has a scenario", () => {
    expect(rows.map(([name = ""]) => name.replaceAll("`", "")).sort()).toEqual([...shown.keys()].sort())
  })

  it("is shown by the scenarios that the page names", () => {
    for (const [name = "", what, why, where] of rows) {
      const ids = shown.get(name.replaceAll("`", "")) ?? []
      expect([name, where]).toEqual([name, ids.length > compared.length / 2 ? "most" : ids.join(", ")])
      expect([what, why]).not.toContain("")
    }
  })
})

describe("the page", () => {
  it("is one page", () => {
    expect(page.trimEnd().split("\n").length).toBeLessThanOrEqual(120)
  })

  it("is about scenarios that have one number each", () => {
    const ids = scenarios.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.length).toBeGreaterThan(75)
  })
})
