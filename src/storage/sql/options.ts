/** The options of the layers over databases, checked before anything is opened. */
import * as Effect from "effect/Effect"
import { InvalidConfiguration } from "../../protocol/Errors.js"
import { checkOptions as checkOptionNames, read, wrongValue } from "../../protocol/options.js"

const invalid = (field: string, message: string): InvalidConfiguration =>
  new InvalidConfiguration({ field, message })

/** Throws `InvalidConfiguration` for an option that nothing reads, and for an address that is none. */
const checkOptions = (
  what: string,
  options: { readonly url: string },
  known: ReadonlyArray<string>,
  addresses: RegExp,
  example: string
): void => {
  checkOptionNames(what, options, { kinds: Object.fromEntries(known.map(name => [name, read])) })
  // The address may hold a password: it is not told.
  if (typeof options.url === "string" && addresses.test(options.url)) return
  throw invalid("url", `\`url\` is no address that ${what} knows. Give one, for example "${example}".`)
}

/** Throws `InvalidConfiguration` for what is given and is no text. */
const checkText = (field: string, value: string | undefined): void => {
  if (value === undefined || (typeof value === "string" && value !== "")) return
  throw invalid(field, `\`${field}\` is no text. Give a text that is not empty, or leave it out.`)
}

/** Throws `InvalidConfiguration` for what is given and is no number of things. */
const checkCount = (field: string, value: number | undefined): void => {
  if (value === undefined || (Number.isInteger(value) && value > 0)) return
  throw wrongValue(field, value, "Give a whole number of at least 1, or leave it out.")
}

/** Runs a check that throws `InvalidConfiguration`. */
export const checked = (check: () => void): Effect.Effect<void, InvalidConfiguration> =>
  Effect.suspend(() => {
    try {
      check()
      return Effect.void
    } catch (cause) {
      return cause instanceof InvalidConfiguration ? Effect.fail(cause) : Effect.die(cause)
    }
  })

/** Throws `InvalidConfiguration` for options that cannot work. */
export const checkLibSql = (options: { readonly url: string; readonly authToken?: string }): void => {
  const addresses = /^(?:file:.|:memory:$|(?:libsql|https?|wss?):\/\/.)/
  checkOptions("LibSqlStore", options, ["url", "authToken"], addresses, "file:eddy.db")
  checkText("authToken", options.authToken)
}

/** Throws `InvalidConfiguration` for options that cannot work. */
export const checkPostgres = (options: { readonly url: string; readonly maxConnections?: number }): void => {
  const example = "postgres://user:password@localhost:5432/database"
  checkOptions("PostgresStore", options, ["url", "maxConnections"], /^postgres(?:ql)?:\/\/./, example)
  checkCount("maxConnections", options.maxConnections)
}
