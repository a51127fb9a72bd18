/** What both faces are made of: a connection, and the tools that the server had when it was asked. */
import * as Effect from "effect/Effect"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { open } from "./connection.js"
import type { McpOptions, McpServer } from "./McpServer.js"
import { settingsOf } from "./settings.js"
import { readTools } from "./toolList.js"

const checked = (server: McpServer, options: McpOptions) =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(settingsOf(server, options))
    } catch (cause) {
      if (cause instanceof InvalidConfiguration) return Effect.fail(cause)
      throw cause
    }
  })

/** Opens a connection, which its scope closes, and reads the tools; when that fails, nothing is left open. */
export const connect = Effect.fnUntraced(function* (server: McpServer, options: McpOptions) {
  const connection = yield* open(yield* checked(server, options))
  const tools = yield* Effect.onError(readTools(connection), () => connection.close)
  return { instructions: connection.instructions, tools, refresh: readTools(connection) }
})
