/**
 * What a user gets: the archive that `npm pack` makes, installed in applications outside of the repository, which import
 * every door, run, and are compiled with the strictest settings, the declarations of all packages included.
 */
import { readFile } from "node:fs/promises"
import { dirname, join } from "node:path/posix"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  type Application,
  doors,
  filesIn,
  install,
  manifest,
  optionalPeers,
  pack,
  requiredPeers,
  type TemporaryFolder,
  temporaryFolder,
  without
} from "./archive.js"
import { surfaceOf } from "./declarations.js"

/** Doors that open without any optional peer. */
const freeDoors = [".", "./promise", "./testing"]

/** A project for Node, and one for a bundler, whose surroundings are a browser's. */
const nodenext = { module: "NodeNext", lib: ["ES2022"], types: ["node"] }
const bundler = { module: "ESNext", moduleResolution: "bundler", lib: ["ES2022", "DOM"], types: [] }

/** Declarations of other packages that these settings refuse: whoever uses them needs `skipLibCheck`, or types of the DOM. */
const foreignFaults = [/^node_modules\/@modelcontextprotocol\/sdk\/.*'HeadersInit'/]

const isOurs = (line: string): boolean => !foreignFaults.some(fault => fault.test(line))

/** Specifiers in declarations. */
const importPattern = /(?:\bfrom |\bimport\(|^import )"([^"]+)"/gm

/** What TypeScript applications are made of. */
const modules = ["typescript.ts", "effect.ts"]

const told = {
  javascript: "rain in Oslo\nTake an umbrella.\ntrue true\n",
  typescript: 'rain for {"city":"Oslo"}\nTake\nan\numbrella.\n',
  effect: "rain in Oslo\nThe text is over.\ntrue\n"
}

/** A module that imports every door and says of each that it has names. */
const importsEveryDoor = [
  ...doors.map(({ specifier }, index) => `import * as door${index} from "${specifier}"`),
  `const doors = [${doors.map((_, index) => `door${index}`).join(", ")}]`,
  "for (const door of doors) console.log(Object.keys(door).length > 0)"
].join("\n")

const toldOfDoors = "true\n".repeat(doors.length)

let folder: TemporaryFolder
let bare: Application
let full: Application
let files: ReadonlyArray<string>

const textOf = (file: string): Promise<string> => readFile(`${bare.package}/${file}`, "utf8")

beforeAll(async () => {
  folder = await temporaryFolder()
  const archive = await pack(folder.path)
  ;[bare, full] = await Promise.all([
    install(`${folder.path}/bare`, archive, requiredPeers),
    install(`${folder.path}/full`, archive, [...requiredPeers, ...optionalPeers, "@types/node"])
  ])
  await full.write("doors.ts", importsEveryDoor)
  files = await filesIn(bare.package)
}, 240_000)

afterAll(() => folder.remove(), 60_000)

describe("the archive", () => {
  it("holds the documents, the sources and what is built of each, and nothing else", () => {
    const sources = files.filter(file => file.startsWith("src/") && file.endsWith(".ts"))
    const built = sources.flatMap(file =>
      [".d.ts", ".d.ts.map", ".js", ".js.map"].map(extension =>
        file.replace(/^src\/(.*)\.ts$/, `dist/$1${extension}`)
      )
    )
    const rooms = files.filter(file => /^src\/.+\/README\.md$/.test(file))
    const documents = ["CHANGELOG.md", "LICENSE", "README.md", "package.json", ...rooms]
    // Where each module of effect is resolved, once for all of ours: see .config/resolveOnce.mjs.
    const resolved = files.filter(file => /^dist\/effect\/[A-Z]\w+\.js$/.test(file))
    expect(resolved.length).toBeGreaterThan(20)
    expect(rooms.length).toBeGreaterThan(3)
    expect(sources.length).toBeGreaterThan(50)
    expect([...files].sort()).toEqual([...documents, ...built, ...sources, ...resolved].sort())
  })

  it("has a file behind each condition of each door, types first", () => {
    for (const [door, conditions] of Object.entries(manifest.exports)) {
      const paths = typeof conditions === "string" ? [conditions] : Object.values(conditions)
      if (typeof conditions !== "string") expect(Object.keys(conditions)[0], door).toBe("types")
      expect(files).toEqual(expect.arrayContaining(paths.map(path => path.replace("./", ""))))
    }
  })

  it("leads from each map to the source that it names", async () => {
    const maps = files.filter(file => file.endsWith(".map"))
    const named = await Promise.all(
      maps.map(async map => {
        const { sources }: { readonly sources: ReadonlyArray<string> } = JSON.parse(await textOf(map))
        return sources.map(path => join(dirname(map), path))
      })
    )
    expect(named.flat()).toHaveLength(maps.length)
    expect(named.flat().filter(path => !files.includes(path))).toEqual([])
  })

  it("imports no module for its effect, as `sideEffects` says", async () => {
    const code = files.filter(file => file.endsWith(".js"))
    const texts = await Promise.all(code.map(textOf))
    expect(manifest.sideEffects).toBe(false)
    expect(code.filter((_, index) => /^import\s*["']/m.test(texts[index] ?? ""))).toEqual([])
  })

  it("resolves each module of effect once, and nothing else there", async () => {
    const code = files.filter(file => file.endsWith(".js"))
    for (const file of code) {
      const text = await textOf(file)
      const name = /^dist\/effect\/(\w+)\.js$/.exec(file)?.[1]
      if (name === undefined) expect(text, file).not.toMatch(/^(import|export) .*from "effect\//m)
      else expect(text).toBe(`export * from "effect/${name}";\n`)
    }
  })

  it("keeps in its declarations what the sources say of each public name", async () => {
    const text = new Map(await Promise.all(files.map(async file => [file, await textOf(file)] as const)))
    const said = (path: string, extension: string) =>
      surfaceOf(
        doors.map(({ module }) => module),
        module => text.get(`${path}/${module}${extension}`)
      ).declarations.map(({ comment, kind, module, name }) => ({
        module,
        kind,
        name,
        comment: comment?.replace(/\s+/g, " ")
      }))
    const written = said("src", ".ts")
    expect(written.length).toBeGreaterThan(150)
    expect(said("dist", ".d.ts")).toEqual(expect.arrayContaining(written))
  })
})

describe("an application without the optional peers", { timeout: 120_000 }, () => {
  it("runs plain JavaScript", async () => {
    expect(await bare.node("javascript.mjs")).toBe(told.javascript)
  })

  it("is told what to install when it uses what needs one of them", async () => {
    const lines = (await bare.node("missing.mjs")).trimEnd().split("\n")
    const wanted = ["@ai-sdk/openai", "@modelcontextprotocol/sdk"]
    expect(lines).toHaveLength(wanted.length)
    for (const [index, name] of wanted.entries()) {
      expect(lines[index]).toMatch(new RegExp(`npm install ${name}\\b`))
      expect(optionalPeers).toContain(name)
    }
  })

  it("needs the types of no other package", async () => {
    const needed = new Set<string>()
    const visited = new Set<string>()
    const visit = async (file: string): Promise<void> => {
      if (visited.has(file)) return
      visited.add(file)
      for (const [, specifier = ""] of (await textOf(file)).matchAll(importPattern)) {
        if (specifier.startsWith(".")) await visit(join(dirname(file), specifier).replace(/\.js$/, ".d.ts"))
        else needed.add(/^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier)
      }
    }
    for (const { module, name } of doors) if (freeDoors.includes(name)) await visit(`dist/${module}.d.ts`)
    expect(visited.size).toBeGreaterThan(40)
    expect(needed).toContain("effect")
    const given = [...Object.keys(manifest.dependencies), ...requiredPeers]
    expect([...needed].filter(name => !given.includes(name))).toEqual([])
  })

  it("opens the doors that need none of them; the others name what they miss", async () => {
    const attempts = doors.map(
      ({ specifier }) =>
        `await import("${specifier}").then(() => console.log("open"), ({ code, message }) => console.log(code, message))`
    )
    await bare.write("each.mjs", attempts.join("\n"))
    const lines = (await bare.node("each.mjs")).trimEnd().split("\n")
    expect(lines).toHaveLength(doors.length)
    const open = doors.filter((_, index) => lines[index] === "open").map(({ name }) => name)
    expect(open).toEqual(expect.arrayContaining(freeDoors))
    const refusals = lines.filter(line => line !== "open")
    const clear = refusals.filter(
      line =>
        line.startsWith("ERR_MODULE_NOT_FOUND ") &&
        optionalPeers.filter(peer => line.includes(`'${peer}'`)).length === 1
    )
    expect(refusals).toEqual(clear)
  })
})

describe("an application that serves", { timeout: 120_000 }, () => {
  it("is told what it misses: Node's server where it is used, and the platform before anything else", async () => {
    const handlersOnly = await without(full, `${folder.path}/handlers`, "@effect/platform-node")
    const [refusal, status] = (await handlersOnly.node("serving.mjs")).trimEnd().split("\n")
    expect(refusal).toMatch(/^InvalidConfiguration: `serve` needs .*npm install @effect\/platform-node$/)
    // A function from `Request` to `Response` needs no server.
    expect(status).toBe("200")
    const said = await bare.node("serving.mjs")
    expect(said).toContain("ERR_MODULE_NOT_FOUND")
    expect(said).toContain("'@effect/platform'")
  })

  it("loads nothing of Node for a handler, not even when it answers", async () => {
    expect(await full.node("runtimes.mjs")).toBe("200 true\n")
  })
})

describe("an application with all of them", { timeout: 120_000 }, () => {
  it("imports every door in plain JavaScript", async () => {
    await full.write("doors.mjs", importsEveryDoor)
    expect(await full.node("doors.mjs")).toBe(toldOfDoors)
    expect(await full.node("javascript.mjs")).toBe(told.javascript)
  })

  for (const [name, options] of Object.entries({ nodenext, bundler })) {
    it(`is compiled and runs with module resolution ${name}`, async () => {
      const said = await full.compile(name, options, [...modules, "doors.ts"])
      expect(said.filter(isOurs)).toEqual([])
      expect(await full.node(`${name}/doors.js`)).toBe(toldOfDoors)
      expect(await full.node(`${name}/typescript.js`)).toBe(told.typescript)
      expect(await full.node(`${name}/effect.js`)).toBe(told.effect)
    })
  }
})
