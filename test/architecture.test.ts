/** The house: which room may import which, as data, and the few rules that keep it readable. */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"

const source = fileURLToPath(new URL("../src", import.meta.url))

/** A room imports only from rooms of a lower rank, and from itself. Rooms of one rank do not know each other. */
const ranks: Readonly<Record<string, number>> = {
  protocol: 0,
  storage: 1,
  model: 1,
  output: 2,
  tool: 3,
  mcp: 4,
  background: 4,
  agent: 5,
  workflow: 6,
  http: 7,
  promise: 8
}

/** Leaf modules of effect, never the barrel: loading all of it takes as long as loading a whole other framework. */
const isAllowed = (specifier: string): boolean =>
  /^effect\/[A-Z]\w+$/.test(specifier) ||
  /^@effect\/(ai|sql-pg|platform)\/[A-Z]\w+$/.test(specifier) ||
  /^@effect\/platform-node\/Node\w+$/.test(specifier) ||
  ["node:http", "node:https", "node:net"].includes(specifier) ||
  specifier.startsWith("@modelcontextprotocol/sdk/") ||
  ["@standard-schema/spec", "@cfworker/json-schema", "@libsql/client"].includes(specifier)

/** Modules that need schemas, which the Promise face must not load. */
const schemaModules = ["effect/Schema", "effect/Stream", "effect/Arbitrary", "effect/FastCheck"]

/** Modules of ours that the Promise face loads at import, at most. */
const mostOwnModules = 172

interface Module {
  readonly path: string
  /** `undefined` for a door: a file at the root. */
  readonly room: string | undefined
  readonly text: string
  readonly imports: ReadonlyArray<string>
}

const importPattern = /(?:^|\n)\s*(?:import|export)\b[^"'\n;]*(?:\{[^}]*\}[^"'\n;]*)?from\s+"([^"]+)"/g

const modules: ReadonlyArray<Module> = readdirSync(source, { recursive: true, encoding: "utf8" })
  .filter(path => path.endsWith(".ts"))
  .map(path => {
    const text = readFileSync(join(source, path), "utf8")
    const room = path.includes("/") ? path.split("/")[0] : undefined
    return { path, room, text, imports: Array.from(text.matchAll(importPattern), match => match[1] ?? "") }
  })

const inside = modules.filter(module => module.room !== undefined)
const doors = modules.filter(module => module.room === undefined)

/** The text without its comments. */
const code = (text: string): string => text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "")

const isRelative = (specifier: string): boolean => specifier.startsWith(".")

/** The path of the imported module within `src`. */
const target = (module: Module, specifier: string): string =>
  relative(source, join(source, dirname(module.path), specifier)).replace(/\.js$/, ".ts")

const roomOf = (path: string): string | undefined => (path.includes("/") ? path.split("/")[0] : undefined)

describe("architecture", () => {
  it("reads every import", () => {
    const words = modules.flatMap(({ text }) => Array.from(text.matchAll(/\sfrom\s+"[^"]+"/g)))
    expect(modules.flatMap(({ imports }) => imports)).toHaveLength(words.length)
    expect(inside.length).toBeGreaterThan(30)
  })

  it("has only rooms that the table knows", () => {
    expect(inside.filter(({ room = "" }) => ranks[room] === undefined).map(({ path }) => path)).toEqual([])
  })

  it("lets a room import from itself and from rooms above it only", () => {
    const wrong = inside.flatMap(module =>
      module.imports.filter(isRelative).flatMap(specifier => {
        const path = target(module, specifier)
        const room = roomOf(path)
        const own = ranks[module.room ?? ""] ?? -1
        const other = ranks[room ?? ""] ?? Number.POSITIVE_INFINITY
        return room === module.room || other < own ? [] : [`${module.path} → ${path}`]
      })
    )
    expect(wrong).toEqual([])
  })

  it("has no import cycle, types included", () => {
    const known = new Map(modules.map(module => [module.path, module]))
    const done = new Set<string>()
    const cycles: Array<string> = []
    const visit = (path: string, trail: ReadonlyArray<string>): void => {
      if (trail.includes(path)) {
        cycles.push([...trail.slice(trail.indexOf(path)), path].join(" → "))
        return
      }
      const module = known.get(path)
      if (done.has(path) || module === undefined) return
      for (const specifier of module.imports.filter(isRelative)) {
        visit(target(module, specifier), [...trail, path])
      }
      done.add(path)
    }
    for (const { path } of modules) visit(path, [])
    expect(cycles).toEqual([])
  })

  it("looks at failures, and writes to the log, in one safe way", () => {
    const only: Readonly<Record<string, RegExp>> = {
      "protocol/foreignValue.ts": /\bCause\.squash\b/,
      "protocol/logging.ts": /\bEffect\.(log(Debug|Info|Warning|Error|Fatal)?|ignoreLogged)\b/
    }
    const wrong = Object.entries(only).flatMap(([home, pattern]) =>
      modules
        .filter(
          ({ path, text }) => path !== home && path !== "protocol/logging.ts" && pattern.test(code(text))
        )
        .map(({ path }) => `${path}: ${pattern}`)
    )
    expect(wrong).toEqual([])
  })

  it("lets doors only re-export", () => {
    const wrong = doors.filter(({ text }) => {
      return (
        code(text)
          .replace(/export[\s\S]*?from\s+"[^"]+"/g, "")
          .trim() !== ""
      )
    })
    expect(wrong.map(({ path }) => path)).toEqual([])
  })

  it("imports leaf modules with their extension, and no barrel", () => {
    const wrong = modules.flatMap(module =>
      module.imports
        .filter(specifier => isRelative(specifier) && !/\/[A-Za-z]+\.js$/.test(specifier))
        .map(specifier => `${module.path}: ${specifier}`)
    )
    expect(wrong).toEqual([])
    expect(inside.filter(({ path }) => /(^|\/)index\.ts$/.test(path))).toEqual([])
  })

  it("needs only the packages that it declares", () => {
    const foreign = modules.flatMap(({ imports, path }) =>
      imports
        .filter(specifier => !isRelative(specifier) && !isAllowed(specifier))
        .map(specifier => `${path}: ${specifier}`)
    )
    expect(foreign).toEqual([])
  })

  it("loads neither schemas nor streams of Effect with the Promise face", () => {
    const known = new Map(modules.map(module => [module.path, module]))
    const loaded = new Set<string>()
    const load = (path: string): void => {
      const module = known.get(path)
      if (module === undefined || loaded.has(path)) return
      loaded.add(path)
      for (const match of module.text.matchAll(importPattern)) {
        if (/^\s*(import|export) type\b/.test(match[0])) continue
        const specifier = match[1] ?? ""
        if (isRelative(specifier)) load(target(module, specifier))
        else loaded.add(specifier)
      }
    }
    load("promise.ts")
    const own = [...loaded].filter(name => known.has(name))
    expect(own.length).toBeGreaterThan(30)
    expect([...loaded].filter(name => schemaModules.includes(name))).toEqual([])
    // Every file takes a millisecond to load. What only some applications need is loaded by the first run that needs it.
    expect(own.length, own.join(", ")).toBeLessThanOrEqual(mostOwnModules)
  })

  it("needs Node only where it serves with Node's own server", () => {
    const needing = modules.filter(({ text }) =>
      Array.from(text.matchAll(importPattern)).some(
        ([statement, specifier = ""]) =>
          /^(node:|@effect\/platform-node)/.test(specifier) && !/^\s*import type\b/.test(statement)
      )
    )
    expect(needing.map(({ path }) => path)).toEqual(["http/nodeServer.ts"])
    const importing = modules.filter(({ text }) => /from\s+"[^"]*\/nodeServer\.js"/.test(code(text)))
    expect(importing.map(({ path }) => path)).toEqual([])
  })

  it("keeps files and rooms small", () => {
    expect(modules.filter(({ text }) => text.split("\n").length > 400).map(({ path }) => path)).toEqual([])
  })

  it("uses no `any`, no suppressed types, no wall clock, no daemon fibers", () => {
    const smells = /(:|as|<)\s*any\b|@ts-ignore|@ts-expect-error|Date\.now\(|forkDaemon|TODO|FIXME/
    expect(modules.filter(({ text }) => smells.test(code(text))).map(({ path }) => path)).toEqual([])
  })

  it("documents every export of a public module", () => {
    const bare = inside
      .filter(({ path }) => /\/[A-Z][A-Za-z]*\.ts$/.test(path))
      .flatMap(({ path, text }) =>
        Array.from(text.matchAll(/(.*)\n(export (?:const|class|interface|type|function) \w+)/g))
          .filter(match => !/\*\/\s*$/.test(match[1] ?? ""))
          .map(match => `${path}: ${match[2]}`)
      )
    expect(bare).toEqual([])
  })
})
