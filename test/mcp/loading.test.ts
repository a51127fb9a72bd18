/** The official SDK is an optional peer: loaded by the first connection, and asked for by name where it is missing. */
import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** A project that has eddy and what it depends on, and not the SDK. */
let folder = ""

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "eddy-mcp-"))
  cpSync(join(root, "src"), join(folder, "src"), { recursive: true })
  mkdirSync(join(folder, "node_modules"))
  for (const name of ["effect", "@cfworker", "@standard-schema"]) {
    symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name))
  }
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }')
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** What a program prints in that project. */
const run = (program: string): string => {
  writeFileSync(join(folder, "program.mjs"), program)
  const tsx = join(root, "node_modules/tsx/dist/loader.mjs")
  return execFileSync(process.execPath, ["--import", tsx, "program.mjs"], {
    cwd: folder,
    encoding: "utf8"
  }).trim()
}

describe("without the SDK", () => {
  it("every door opens, and a connection says what to install", () => {
    const printed = run(`
      await import("./src/index.ts")
      await import("./src/promise.ts")
      const { McpClient } = await import("./src/mcp.ts")
      for (const server of [{ command: "node" }, { url: "http://127.0.0.1:9" }]) {
        await McpClient.connect(server).catch(error => console.log(error.name, error.reason, error.message))
      }
    `)
    const line =
      "McpError connect Servers of the Model Context Protocol need its official SDK. Run `npm install @modelcontextprotocol/sdk`."
    expect(printed).toBe(`${line}\n${line}`)
  }, 60_000)
})
