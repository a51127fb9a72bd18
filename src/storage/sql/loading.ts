/** Packages of databases, loaded when a layer is made: who uses none need not have them. */
import * as Effect from "effect/Effect"
import { InvalidConfiguration } from "../../protocol/Errors.js"

const wordsOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** `packages` are those that are to be installed, `module` spells out the import for bundlers. */
export const load = <Module>(
  what: string,
  packages: string,
  module: () => Promise<Module>
): Effect.Effect<Module, InvalidConfiguration> =>
  Effect.tryPromise({
    try: module,
    catch: cause =>
      new InvalidConfiguration({
        field: "storage",
        message: `${what} needs ${packages}, which cannot be loaded (${wordsOf(cause)}). Run: npm install ${packages}`
      })
  })
