/**
 * Runs code that stands in documents: each snippet is a module in a folder of its own outside of the repository, which
 * resolves packages as the repository does. All of them run in one process, one after the other.
 */
import { execFile } from "node:child_process"
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** The bodies of the code fences below headings of level two, by the heading. */
export const examples = (markdown: string): ReadonlyMap<string, string> =>
  new Map(
    Array.from(markdown.matchAll(/^## ([^\n]*)\n\n```\w*\n(.*?)^```$/gms), ([, name = "", code = ""]) => [
      name,
      code
    ])
  )

/** The bodies of the code fences of one language, in order. */
export const fences = (markdown: string, language: string): ReadonlyArray<string> =>
  Array.from(markdown.matchAll(/^```(\w*)\n(.*?)^```$/gms))
    .filter(([, tag]) => tag === language)
    .map(([, , code = ""]) => code)

type Environment = Readonly<Record<string, string>>

const node = (folder: string, args: ReadonlyArray<string>, more: Environment = {}): Promise<string> => {
  const { ANTHROPIC_API_KEY, FORCE_COLOR, GOOGLE_GENERATIVE_AI_API_KEY, OPENAI_API_KEY, ...env } = process.env
  const options = {
    cwd: folder,
    env: { ...env, ...more, TSX_TSCONFIG_PATH: join(folder, "tsconfig.json") },
    timeout: 55_000
  }
  return new Promise(resolve => {
    execFile(process.execPath, args, options, (error, stdout, stderr) =>
      resolve(`${stdout}${stderr}${error === null ? "" : `\nexit code ${error.code}`}`)
    )
  })
}

/** Marks where the output of a snippet begins, in what the one process prints. */
const separator = "\u241e"

const runner = `
console.error = (...values) => console.log("stderr:", ...values)
for (const name of process.argv.slice(2)) {
  process.stdout.write("${separator}" + name + "\\n")
  try {
    await import("./" + name + ".ts")
  } catch (cause) {
    console.log("threw", cause)
  }
}
`

export interface Sandbox {
  /** What the compiler has to say; empty when all is well. */
  readonly check: () => Promise<string>
  /** What each snippet prints; lines to standard error begin with `stderr:`. */
  readonly run: () => Promise<ReadonlyMap<string, string>>
  readonly remove: () => Promise<void>
}

/** Snippets by name, and what is in their environment beside what is in this one, which keeps its keys to itself. */
export const sandbox = async (
  snippets: Readonly<Record<string, string>>,
  environment?: Environment
): Promise<Sandbox> => {
  const folder = await mkdtemp(join(tmpdir(), "eddy-snippets-"))
  const names = Object.keys(snippets)
  const config = {
    extends: join(root, "tsconfig.json"),
    // A snippet shows values that it does not go on to use.
    compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
    include: ["./*.ts"]
  }
  await symlink(join(root, "node_modules"), join(folder, "node_modules"))
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }))
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config))
  await writeFile(join(folder, "runner.mjs"), runner)
  for (const name of names) {
    // `export {}`: a snippet without imports is a module too.
    await writeFile(join(folder, `${name}.ts`), `${snippets[name]}\nexport {}\n`)
  }
  return {
    check: () => node(folder, [join(root, "node_modules/typescript/bin/tsc"), "-p", "."]),
    run: async () => {
      const printed = await node(folder, ["--import", "tsx", "runner.mjs", ...names], environment)
      const parts = printed.split(separator).slice(1)
      return new Map(
        parts.map(part => {
          const [name = "", ...lines] = part.split("\n")
          return [name, lines.join("\n").trimEnd()] as const
        })
      )
    },
    remove: () => rm(folder, { recursive: true, force: true })
  }
}
