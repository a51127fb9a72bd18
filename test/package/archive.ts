/** The archive that `npm pack` makes, and applications outside of the repository that install it. */
import { execFile } from "node:child_process"
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join, sep } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../", import.meta.url))
const consumers = fileURLToPath(new URL("consumers/", import.meta.url))

/** What the build reads, beside the files that are packed as they are. */
const buildFiles = [".config", "tsconfig.json", "package.json"]

interface Manifest {
  readonly name: string
  readonly sideEffects: unknown
  readonly files: ReadonlyArray<string>
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional?: boolean }>>
}

export const manifest: Manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8"))

interface Door {
  /** As `exports` has it. */
  readonly name: string
  /** As an application imports it. */
  readonly specifier: string
  /** Its module below `src` and below `dist`, without extension. */
  readonly module: string
}

export const doors: ReadonlyArray<Door> = Object.keys(manifest.exports)
  .filter(name => name !== "./package.json")
  .map(name => ({
    name,
    specifier: manifest.name + name.slice(1),
    module: name === "." ? "index" : name.slice(2)
  }))

const isOptional = (name: string): boolean => manifest.peerDependenciesMeta[name]?.optional === true
const peers = Object.keys(manifest.peerDependencies)

/** Packages without which no door opens. */
export const requiredPeers: ReadonlyArray<string> = peers.filter(name => !isOptional(name))

/** Packages without which only some doors open. */
export const optionalPeers: ReadonlyArray<string> = peers.filter(isOptional)

interface Outcome {
  readonly code: number
  readonly output: string
}

/** Runs a program to its end. Everything that it says is the output, for a failure must say why. */
const run = (command: string, args: ReadonlyArray<string>, folder: string): Promise<Outcome> => {
  const { FORCE_COLOR, NODE_ENV, NODE_OPTIONS, ...env } = process.env
  const options = { cwd: folder, env, timeout: 100_000, maxBuffer: 16 * 1024 * 1024 }
  return new Promise(resolve => {
    execFile(command, args, options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), output: stdout + stderr })
    )
  })
}

const npm = async (folder: string, ...args: ReadonlyArray<string>): Promise<void> => {
  const { code, output } = await run("npm", args, folder)
  if (code !== 0) throw new Error(`npm ${args.join(" ")} failed:\n${output}`)
}

/** The version of a package that this repository is tested with: the cache of npm has it. */
const installedVersion = async (name: string): Promise<string> => {
  const { version } = JSON.parse(await readFile(join(root, "node_modules", name, "package.json"), "utf8"))
  return `${name}@${version}`
}

/** Builds and packs a copy of the repository, so that the test leaves nothing in it. The path of the archive. */
export const pack = async (folder: string): Promise<string> => {
  const copy = join(folder, "repository")
  await mkdir(copy)
  await symlink(join(root, "node_modules"), join(copy, "node_modules"), "junction")
  for (const name of new Set([...manifest.files, ...buildFiles])) {
    if (name !== "dist") await cp(join(root, name), join(copy, name), { recursive: true })
  }
  await npm(copy, "pack", "--pack-destination", folder)
  const archive = (await readdir(folder)).find(name => name.endsWith(".tgz"))
  if (archive === undefined) throw new Error("npm pack made no archive.")
  return join(folder, archive)
}

/** As strict as an application can be; the declarations of every package are checked with it. */
const strict = {
  target: "ES2022",
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: true,
  noImplicitOverride: true,
  noImplicitReturns: true,
  noFallthroughCasesInSwitch: true,
  noUnusedLocals: true,
  noUnusedParameters: true,
  verbatimModuleSyntax: true,
  isolatedModules: true,
  skipLibCheck: false
}

/** An application that has installed the archive. */
export interface Application {
  /** Writes a module. */
  readonly write: (name: string, text: string) => Promise<void>
  /** Runs a module; what it prints, and its code unless that is 0. */
  readonly node: (module: string) => Promise<string>
  /** Compiles modules into a folder; what the compiler has to say. */
  readonly compile: (
    folder: string,
    options: object,
    modules: ReadonlyArray<string>
  ) => Promise<ReadonlyArray<string>>
  /** Where the package is installed. */
  readonly package: string
}

/** Installs the archive, and packages in the version that this repository has, in a new application. */
export const install = async (
  folder: string,
  archive: string,
  packages: ReadonlyArray<string>
): Promise<Application> => {
  await cp(consumers, folder, { recursive: true })
  await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }))
  const versions = await Promise.all(packages.map(installedVersion))
  const quiet = ["--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"]
  await npm(folder, "install", ...quiet, archive, ...versions)
  return applicationIn(folder)
}

const applicationIn = (folder: string): Application => {
  const tsc = join(root, "node_modules/typescript/bin/tsc")
  const write = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text)
  return {
    package: join(folder, "node_modules", manifest.name),
    write,
    node: async module => {
      const { code, output } = await run(process.execPath, [module], folder)
      return code === 0 ? output : `${output}code ${code}\n`
    },
    compile: async (outDir, options, modules) => {
      const compilerOptions = { ...strict, ...options, rootDir: ".", outDir }
      await write(`${outDir}.json`, JSON.stringify({ compilerOptions, files: modules }))
      const { code, output } = await run(
        process.execPath,
        [tsc, "--pretty", "false", "-p", `${outDir}.json`],
        folder
      )
      const said = output.split("\n").filter(line => /\S/.test(line))
      return code === 0 || said.length > 0 ? said : [`code ${code}`]
    }
  }
}

/** The same application without one of its packages: what is left is where it was, but for the archive. */
export const without = async (
  application: Application,
  folder: string,
  name: string
): Promise<Application> => {
  const { package: installed } = application
  const from = dirname(installed)
  const to = join(folder, "node_modules")
  const scopeOf = (path: string): string | undefined =>
    path.startsWith("@") ? path.split("/")[0] : undefined
  await mkdir(to, { recursive: true })
  await cp(consumers, folder, { recursive: true })
  await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }))
  for (const entry of await readdir(from)) {
    if (entry === manifest.name || entry.startsWith(".")) continue
    const scope = scopeOf(name)
    const packages =
      entry === scope ? (await readdir(join(from, entry))).map(one => `${entry}/${one}`) : [entry]
    if (entry === scope) await mkdir(join(to, entry))
    for (const one of packages) if (one !== name) await symlink(join(from, one), join(to, one), "junction")
  }
  await cp(installed, join(to, manifest.name), { recursive: true })
  return applicationIn(folder)
}

/** Every file below a folder, with `/` between the parts of its path. */
export const filesIn = async (folder: string): Promise<ReadonlyArray<string>> => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter(entry => entry.isFile())
    .map(entry =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .split(sep)
        .join("/")
    )
    .sort()
}

export interface TemporaryFolder {
  readonly path: string
  readonly remove: () => Promise<void>
}

export const temporaryFolder = async (): Promise<TemporaryFolder> => {
  const path = await mkdtemp(join(tmpdir(), "eddy-package-"))
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}
