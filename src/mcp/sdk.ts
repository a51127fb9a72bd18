/** The official SDK, loaded when a connection is made: who makes none need not have it. */
import * as Effect from "effect/Effect"
import { makeFetch } from "./answerStream.js"
import { McpError } from "./McpError.js"
import type { Address } from "./settings.js"
import { readLines } from "./standardError.js"

const load = <A>(module: () => Promise<A>): Effect.Effect<A, McpError> =>
  Effect.tryPromise({
    try: module,
    catch: cause =>
      new McpError({
        reason: "connect",
        message:
          "Servers of the Model Context Protocol need its official SDK. Run `npm install @modelcontextprotocol/sdk`.",
        cause
      })
  })

export const loadClient = load(() => import("@modelcontextprotocol/sdk/client/index.js"))

export const loadTypes = load(() => import("@modelcontextprotocol/sdk/types.js"))

const loadStdio = load(() => import("@modelcontextprotocol/sdk/client/stdio.js"))

const loadHttp = load(() => import("@modelcontextprotocol/sdk/client/streamableHttp.js"))

/** The transport to a server, not started. `onLine` gets each line of its standard error that is to be logged. */
export const transportTo = Effect.fnUntraced(function* (address: Address, onLine: (line: string) => void) {
  switch (address.kind) {
    case "stdio": {
      const { StdioClientTransport } = yield* loadStdio
      const { args = [], command, cwd, env, stderr = "log" } = address.server
      const transport = new StdioClientTransport({
        command,
        args: [...args],
        ...(env === undefined ? {} : { env: { ...env } }),
        ...(cwd === undefined ? {} : { cwd }),
        stderr: stderr === "log" ? "pipe" : stderr
      })
      if (stderr === "log") readLines(transport.stderr, onLine)
      return transport
    }
    case "http": {
      const { StreamableHTTPClientTransport } = yield* loadHttp
      const { headers, url } = address
      return new StreamableHTTPClientTransport(url, {
        fetch: makeFetch(),
        requestInit: { headers: { ...headers } }
      })
    }
    case "transport": {
      const { transport } = address.server
      return typeof transport === "function" ? transport() : transport
    }
  }
})
