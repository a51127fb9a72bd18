/** The README tells the truth: its code runs and type-checks, its tables list what there is. */
import { readdir, readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { Chunk, Errors } from "eddy"
import { SchemaAST } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { streamOptions } from "../src/promise/translate.js"
import { fences, type Sandbox, sandbox } from "./reference/snippets.js"

const readme = await readFile(fileURLToPath(new URL("../README.md", import.meta.url)), "utf8")

/** The cells of each row of the table below a heading, the head left out. */
const table = (heading: string): ReadonlyArray<ReadonlyArray<string>> => {
  const [, section = ""] = readme.split(`\n## ${heading}\n`)
  return (section.split("\n## ")[0] ?? "")
    .split("\n")
    .filter(line => line.startsWith("| "))
    .slice(1)
    .map(line =>
      line
        .split("|")
        .slice(1, -1)
        .map(cell => cell.trim())
    )
}

/** Names in a cell, each in backquotes. */
const names = (cell = ""): ReadonlyArray<string> =>
  Array.from(cell.matchAll(/`([^`]+)`/g), ([, name = ""]) => name)

describe("the README", () => {
  it("has at most 350 lines", () => {
    expect(readme.trimEnd().split("\n").length).toBeLessThanOrEqual(350)
  })

  it("lists every option of a run", () => {
    const listed = table("Options of a run").flatMap(([option]) => names(option))
    expect([...listed].sort()).toEqual(Object.keys(streamOptions.kinds).sort())
  })

  it("lists every error", () => {
    const listed = table("Errors").flatMap(([error]) => names(error))
    const classes = Object.entries(Errors).flatMap(([name, value]) =>
      typeof value === "function" && value.prototype instanceof Error ? [name] : []
    )
    expect([...listed].sort()).toEqual(classes.sort())
  })
})

/** Fields of a struct as the table writes them: `?` for an optional one, `…` for an open record. */
const fieldsOf = (schema: { readonly ast: SchemaAST.AST }): ReadonlyArray<string> => {
  const ast = SchemaAST.typeAST(schema.ast)
  if (ast._tag !== "TypeLiteral") return []
  const fields = ast.propertySignatures.map(
    ({ isOptional, name }) => `${String(name)}${isOptional ? "?" : ""}`
  )
  return ast.indexSignatures.length === 0 ? fields : [...fields, "…"]
}

const payloads = new Map(
  Chunk.Chunk.members.flatMap(({ fields }) => {
    const [type] = "literals" in fields.type ? fields.type.literals : []
    return "payload" in fields && type !== undefined
      ? [[type as string, fieldsOf(fields.payload)] as const]
      : []
  })
)

/** The source of the rooms that make chunks. */
const makers = (
  await Promise.all(
    ["agent", "background", "model", "output", "tool", "workflow"].map(async room => {
      const folder = fileURLToPath(new URL(`../src/${room}/`, import.meta.url))
      const files = (await readdir(folder, { recursive: true })).filter(file => file.endsWith(".ts"))
      return Promise.all(files.map(file => readFile(folder + file, "utf8")))
    })
  )
)
  .flat()
  .join("\n")

describe("the table of chunks", () => {
  const rows = table("Chunks").flatMap(([types, , payload = ""]) =>
    names(types).map(type => ({ payload, type }))
  )

  it("lists every type", () => {
    expect(rows.map(({ type }) => type).sort()).toEqual([...Chunk.types, "data-*"].sort())
    expect(payloads.size).toBe(40)
  })

  it("lists the fields of every payload", () => {
    const listed = rows
      .filter(({ type }) => payloads.has(type))
      .map(({ payload, type }) => [type, payload.split(", ").sort()])
    const real = listed.map(([type]) => [type, [...(payloads.get(String(type)) ?? [])].sort()])
    expect(listed).toEqual(real)
  })

  it("lists nothing that is never told", () => {
    const unmade = rows
      .map(({ type }) => type)
      .filter(type => type !== "data-*")
      .filter(type => !new RegExp(`type: "${type}",\\s*(?:runId|\\.\\.\\.|from|payload|object)`).test(makers))
    expect(unmade).toEqual([])
  })
})

/** What a snippet says that it prints: the comments that begin with an arrow. */
const promised = (code: string): string =>
  Array.from(code.matchAll(/\/\/ → (.*)/g), ([, line]) => line).join("\n")

describe("the code of the README", () => {
  const snippets = Object.fromEntries(
    fences(readme, "ts").map((code, index) => [`snippet-${index + 1}`, code])
  )
  let box: Sandbox
  let printed: ReadonlyMap<string, string>

  beforeAll(async () => {
    box = await sandbox(snippets)
    printed = await box.run()
  }, 60_000)

  afterAll(() => box.remove())

  it("type-checks", { timeout: 60_000 }, async () => {
    expect(await box.check()).toBe("")
  })

  for (const [name, code] of Object.entries(snippets)) {
    it(`runs and prints what it says: ${name}`, () => {
      expect(promised(code)).not.toBe("")
      expect(printed.get(name)).toBe(promised(code))
    })
  }
})
