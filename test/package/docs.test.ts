/** Every name that a door gives away says what it is: wherever it is declared, and what one sets or calls on it. */
import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { doors } from "./archive.js"
import { type Declaration, surfaceOf } from "./declarations.js"

const source = fileURLToPath(new URL("../../src/", import.meta.url))

const { declarations, unknown } = surfaceOf(
  doors.map(({ module }) => module),
  path => {
    const file = `${source}${path}.ts`
    return existsSync(file) ? readFileSync(file, "utf8") : undefined
  }
)

const nameOf = ({ kind, module, name }: Declaration): string => `${module}: ${kind} ${name}`

/** The words of a comment, without its tags. */
const wordsOf = (comment = ""): string =>
  comment
    .replace(/^\/\*\*|\*\/$|^ *\*/gm, "")
    .replace(/@\w+ .*?(?=@|$)/gm, "")
    .trim()

/** Interfaces that somebody fills in. */
const isFilledIn = ({ kind, name }: Declaration): boolean =>
  kind === "interface" && /(?:Options|Callbacks|Defaults|Settings|Timeouts)$/.test(name)

/** Members that say with their name what a comment would say. */
const selfExplanatory = [
  ...["id", "name", "description", "model", "tools", "modelSettings"],
  // What every provider calls so.
  ...["temperature", "topP", "topK", "presencePenalty", "frequencyPenalty", "stopSequences", "seed"]
]

describe("the public names", () => {
  it("are all found", () => {
    expect(unknown).toEqual([])
    const names = declarations.map(nameOf)
    expect(names).toContain("promise/callbacks: interface RunCallbacks")
    expect(names).toContain("agent/definition: const make")
    expect(names).toContain("promise/Eddy: class Eddy")
    expect(names.length).toBeGreaterThan(150)
  })

  it("have a doc comment and their version", () => {
    const bare = declarations.filter(({ comment = "" }) => !/@since \d+\.\d+\.\d+/.test(comment))
    expect(bare.map(nameOf)).toEqual([])
  })

  it("say something, unless a schema of the same name or each of their options does", () => {
    const schemas = declarations.filter(({ comment, kind }) => kind === "const" && wordsOf(comment) !== "")
    const silent = declarations
      .filter(({ comment, name }) => wordsOf(comment) === "" && name !== "TypeId")
      .filter(declaration => !isFilledIn(declaration))
      .filter(
        ({ kind, module, name }) =>
          kind !== "type" || !schemas.some(schema => schema.module === module && schema.name === name)
      )
    expect(silent.map(nameOf)).toEqual([])
  })

  it("say what each option and each method is for", () => {
    const silent = declarations.flatMap(declaration =>
      declaration.members
        .filter(({ isCallable }) => isFilledIn(declaration) || (declaration.kind === "class" && isCallable))
        .filter(
          ({ comment, name }) =>
            comment === undefined &&
            !selfExplanatory.includes(name) &&
            !name.startsWith("[") &&
            // The list in the comment of an interface does as well.
            declaration.comment?.includes(`\`${name}\`:`) !== true
        )
        .map(({ name }) => `${nameOf(declaration)}.${name}`)
    )
    expect(silent).toEqual([])
  })
})
