/** A server and its options, checked before anything is started. Throws `InvalidConfiguration`. */
import { InvalidConfiguration } from "../protocol/Errors.js"
import { checkOptions, isOptions, type Kind, object, read, text, wrongValue } from "../protocol/options.js"
import { milliseconds } from "../tool/background.js"
import type { HttpServer, McpOptions, McpServer, StdioServer, TransportServer } from "./McpServer.js"

export type Address =
  | { readonly kind: "stdio"; readonly server: StdioServer }
  | { readonly kind: "http"; readonly url: URL; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: "transport"; readonly server: TransportServer }

/** Whether a session that the server has forgotten can be followed by another one: a transport starts only once. */
export const canOpenAgain = (address: Address): boolean =>
  address.kind === "http" || (address.kind === "transport" && typeof address.server.transport === "function")

export interface Settings {
  readonly address: Address
  /** The server, in a sentence. */
  readonly who: string
  /** In front of the names of its tools. */
  readonly prefix: string
  /** Milliseconds that the first contact may take. */
  readonly connectTimeout: number
  /** Milliseconds that an answer may take. */
  readonly timeout: number
  readonly clientInfo: { readonly name: string; readonly version: string }
}

const invalid = (field: string, message: string): InvalidConfiguration =>
  new InvalidConfiguration({ field, message })

/** An address may hold a secret anywhere behind its origin: no message repeats it. */
const parseUrl = ({ headers = {}, url }: HttpServer): Address => {
  const parsed = URL.canParse(String(url)) ? new URL(url) : undefined
  if (parsed !== undefined && /^https?:$/.test(parsed.protocol)) return { kind: "http", url: parsed, headers }
  throw invalid(
    "url",
    "`url` is no address of a server. Give a whole one that begins with https:// or http://."
  )
}

const addressOf = (server: McpServer): Address => {
  if (!object.accepts(server))
    throw wrongValue("server", server, "Give { command, args }, { url } or { transport }.")
  const given = ["command", "url", "transport"].filter(field => Object.hasOwn(server, field))
  if (given.length === 1) {
    if ("url" in server) return parseUrl(server)
    if ("transport" in server) return { kind: "transport", server }
    if (typeof server.command === "string" && server.command !== "") return { kind: "stdio", server }
  }
  throw invalid(
    "server",
    "A server is exactly one of { command, args }, { url } and { transport }. Give it one of these."
  )
}

const nameOf = (address: Address): string => {
  switch (address.kind) {
    case "stdio":
      return `"${address.server.command.split(/[\\/]/).at(-1)}"`
    case "http":
      return `at ${address.url.origin}`
    case "transport":
      return "of the given transport"
  }
}

export const mcpKinds = {
  name: text,
  connectTimeout: read,
  timeout: read,
  clientInfo: {
    accepts: value =>
      isOptions(value) && typeof value["name"] === "string" && typeof value["version"] === "string",
    remedy: "Give { name, version }: two strings."
  }
} satisfies Record<keyof McpOptions, Kind>

const checkName = (name: string): void => {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(name)) return
  throw invalid(
    "name",
    "`name` becomes part of names of tools. Use 1 to 64 letters, digits, hyphens and underscores."
  )
}

export const settingsOf = (server: McpServer, options: McpOptions): Settings => {
  const {
    clientInfo = { name: "eddy", version: "0.1.0" },
    connectTimeout = 60_000,
    name,
    timeout = 60_000
  } = options
  checkOptions("A connection", options, { kinds: mcpKinds })
  if (name !== undefined) checkName(name)
  const address = addressOf(server)
  return {
    address,
    who: `the MCP server ${name === undefined ? nameOf(address) : `"${name}"`}`,
    prefix: name === undefined ? "" : `${name}_`,
    connectTimeout: milliseconds("connectTimeout", connectTimeout),
    timeout: milliseconds("timeout", timeout),
    clientInfo
  }
}
