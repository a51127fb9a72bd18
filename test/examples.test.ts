import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { readdir, readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("..", import.meta.url))

const names = (await readdir(`${root}examples`)).filter(file => /^\d\d-/.test(file))

/** The environment without keys, with which an example would ask a real model, and without orders to use colours. */
const { ANTHROPIC_API_KEY, FORCE_COLOR, GOOGLE_GENERATIVE_AI_API_KEY, OPENAI_API_KEY, ...env } = process.env

/** Examples that are run as a reader does: the one without a name, and two by their names. */
const commands: Readonly<Record<string, ReadonlyArray<string>>> = {
  "01-hello.ts": ["examples/run.ts", "hello"],
  "10-until-idle.ts": ["examples/run.ts"],
  "21-http.ts": ["examples/run.ts", "http"]
}

/** Serves until it is told to end. */
const server = "22-web-page.ts"

interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

const run = (...args: ReadonlyArray<string>): Promise<Outcome> =>
  new Promise(resolve => {
    const command = ["--import", "tsx", ...args]
    const options = { cwd: root, env, timeout: 55_000 }
    execFile(process.execPath, command, options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr })
    )
  })

/** What the comment at the top of an example says that it prints last. `…` is a number that is not the same every time. */
const promised = (source: string): ReadonlyArray<string> => {
  const [comment = ""] = source.split("*/", 1)
  const [, prints = ""] = comment.split("It prints")
  return prints
    .split("\n")
    .filter(line => line.startsWith(" *     "))
    .map(line => line.slice(" *     ".length))
}

const linesOf = (text: string): ReadonlyArray<string> => text.trimEnd().split("\n")

/** Without what the log of the host has of runs and tasks that fail. */
const withoutLog = (text: string): string =>
  text
    .split("\n")
    .filter(line => !/^timestamp=\S+ level=ERROR .*(Run|Task) .* failed: /.test(line))
    .join("\n")

const withoutDurations = (text: string): string => text.replace(/\d+\.\d s\)/g, "… s)")

// Each takes two seconds, and four times that on a busy machine.
describe.concurrent("examples", { timeout: 60_000 }, () => {
  it("are twenty-two", () => {
    expect(names).toHaveLength(22)
  })

  it(`${server} serves its page until it is interrupted`, async ({ onTestFinished }) => {
    const source = await readFile(`${root}examples/${server}`, "utf8")
    expect(linesOf(source).length, "lines").toBeLessThanOrEqual(80)
    expect(promised(source)).toEqual(["Open http://127.0.0.1:3000"])

    const command = ["--import", "tsx", "examples/run.ts", "page"]
    const child = spawn(process.execPath, command, { cwd: root, env: { ...env, PORT: "0" } })
    onTestFinished(() => void child.kill("SIGKILL"))
    const ended = once(child, "exit")
    const said = { stdout: "", stderr: "" }
    child.stderr.on("data", piece => {
      said.stderr += piece
    })
    const url = new Promise<string>((resolve, reject) => {
      child.stdout.on("data", piece => {
        said.stdout += piece
        const found = /^Open (\S+)\n/m.exec(said.stdout)?.[1]
        if (found !== undefined) resolve(found)
      })
      child.once("exit", () => reject(new Error(`It ended: ${said.stderr}`)))
    })
    const page = await fetch(await url)
    expect(page.headers.get("content-security-policy")).toContain("default-src 'self'")
    expect(await page.text()).toContain("<title>")
    expect(await (await fetch(`${await url}/api/agents`)).json()).toMatchObject({ guide: { id: "guide" } })

    child.kill("SIGINT")
    expect(await ended).toEqual([0, null])
    expect(said.stderr).toBe("")
  })

  for (const name of names.filter(name => name !== server)) {
    it(`${name} prints what it says`, async () => {
      const source = await readFile(`${root}examples/${name}`, "utf8")
      const length = linesOf(source).length
      expect(length, "lines").toBeGreaterThanOrEqual(20)
      expect(length, "lines").toBeLessThanOrEqual(80)
      const expected = promised(source)
      expect(expected.length, "lines that the comment promises").toBeGreaterThan(0)

      const { code, stderr, stdout } = await run(...(commands[name] ?? [`examples/${name}`]))

      expect(withoutLog(stderr)).toBe("")
      expect(linesOf(withoutDurations(withoutLog(stdout))).slice(-expected.length)).toEqual(expected)
      expect(stdout, "escape sequences").not.toContain("\u001b")
      expect(code).toBe(0)
    })
  }

  it("are listed when the name is unknown", async () => {
    const { code, stderr } = await run("examples/run.ts", "nonesuch")
    for (const name of names) expect(stderr).toContain(name.replace(".ts", ""))
    expect(code).toBe(1)
  })
})
