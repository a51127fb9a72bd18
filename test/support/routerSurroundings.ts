/** Surroundings of a router that a test holds in its hands, and what models refuse with. */
import { execFile } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { promisify } from "node:util"
import { Effect } from "effect"
import { expect } from "vitest"
import type { LanguageModel, ModelAnswer, ModelRequest } from "../../src/model/ModelPort.js"
import type { ModelId } from "../../src/model/router/routerId.js"
import { makeRouter, type Surroundings } from "../../src/model/router/routerModel.js"
import { importPackage } from "../../src/model/router/routerPackages.js"
import { InvalidConfiguration } from "../../src/protocol/Errors.js"
import { request } from "./readAnswer.js"

/** A router over the real packages, with these environment variables and no others. */
export const routerWith = (
  variables: Readonly<Record<string, string>> = {},
  load: Surroundings["load"] = importPackage
): ((id: ModelId) => LanguageModel) => makeRouter({ load, environment: variable => variables[variable] })

/** Begins an answer as a promise. */
export const ask = async (
  model: LanguageModel,
  signal: AbortSignal = new AbortController().signal,
  asked: ModelRequest = request()
): Promise<ModelAnswer> => {
  const begun = model.answer(asked, signal)
  return Effect.isEffect(begun) ? Effect.runPromise(begun) : begun
}

/** What the promise rejects with. */
export const rejection = async (promise: Promise<unknown>): Promise<unknown> => {
  try {
    await promise
  } catch (cause) {
    return cause
  }
  throw new Error("Nothing was refused.")
}

/** The message of an `InvalidConfiguration` of the field `model`. */
export const messageOf = (cause: unknown): string => {
  expect(cause).toBeInstanceOf(InvalidConfiguration)
  if (!(cause instanceof InvalidConfiguration)) throw cause
  expect(cause.field).toBe("model")
  // A cause may hold a request, and with it a key.
  expect(cause).not.toHaveProperty("cause")
  return cause.message
}

/** With what the model refuses to be asked. */
export const refusal = async (model: LanguageModel): Promise<string> => messageOf(await rejection(ask(model)))

/** A package, as far as a router looks at it: what its models are made of is kept in `made`, what they are asked in `asked`. */
export const fakePackage = (specificationVersion: "v2" | "v3" | "v4" = "v4") => {
  const made: Array<unknown> = []
  const asked: Array<{ readonly prompt: ReadonlyArray<object> }> = []
  const createOpenAI = (settings: object) => (modelId: string) => {
    made.push(settings)
    return {
      specificationVersion,
      provider: "fake.words",
      modelId: `fake-${modelId}`,
      doStream: async (options: { readonly prompt: ReadonlyArray<object> }) => {
        asked.push(options)
        return { stream: new ReadableStream() }
      }
    }
  }
  return { made, asked, loaded: { createOpenAI } }
}

/** A place of its own with the sources in it, and beside them no package but those that eddy cannot do without. */
export const bareInstallation = () => {
  const root = mkdtempSync(join(tmpdir(), "eddy-router-"))
  const home = fileURLToPath(new URL("../..", import.meta.url))
  cpSync(join(home, "src"), join(root, "src"), { recursive: true })
  writeFileSync(join(root, "package.json"), JSON.stringify({ type: "module" }))
  for (const name of ["effect", "@standard-schema/spec", "@cfworker/json-schema"]) {
    mkdirSync(dirname(join(root, "node_modules", name)), { recursive: true })
    symlinkSync(join(home, "node_modules", name), join(root, "node_modules", name))
  }
  const tsx = createRequire(import.meta.url).resolve("tsx")
  return {
    /** Puts a package of one file there. */
    install: (name: string, text: string): void => {
      const folder = join(root, "node_modules", name)
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, "package.json"), JSON.stringify({ name, type: "module", main: "index.js" }))
      writeFileSync(join(folder, "index.js"), text)
    },
    /** Runs a module in a process of its own; what it writes, which is JSON. */
    run: async (text: string): Promise<unknown> => {
      writeFileSync(join(root, "main.mjs"), text)
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ["--import", pathToFileURL(tsx).href, "main.mjs"],
        { cwd: root, env: { PATH: process.env["PATH"] } }
      )
      return JSON.parse(stdout)
    },
    remove: (): void => rmSync(root, { recursive: true, force: true })
  }
}
