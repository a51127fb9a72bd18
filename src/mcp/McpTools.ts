/**
 * The tools of a server of the Model Context Protocol, as tools of an agent. The official SDK, `@modelcontextprotocol/sdk`,
 * is loaded by the first connection.
 *
 * Only tools: the server's resources and prompts are not read, and what it may ask of a client (sampling, elicitation,
 * roots) is not offered to it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { InvalidConfiguration } from "../protocol/Errors.js"
import type * as Tool from "../tool/Tool.js"
import type { McpError } from "./McpError.js"
import type { McpOptions, McpServer } from "./McpServer.js"
import * as serverTools from "./serverTools.js"
import type { RemoteTool } from "./toolList.js"

/** A connection to a server. @since 0.1.0 @category models */
export interface McpTools {
  /** The tools that the server had when the connection was made, in its order. */
  readonly tools: ReadonlyArray<Tool.Tool>
  /** What the server says of the use of its tools, for the instructions of an agent. */
  readonly instructions: string | undefined
  /**
   * Asks the server for its tools again: it may have other ones by now. Agents that were made with the tools of before keep
   * those. Fails with reason `request`, `timeout` or `closed`, or `connect` when a new session cannot be opened.
   */
  readonly refresh: Effect.Effect<ReadonlyArray<Tool.Tool>, McpError>
}

const make = (tools: ReadonlyArray<RemoteTool>): ReadonlyArray<Tool.Tool> =>
  tools.map(tool => tool.named(tool.name))

/**
 * Connects to a server and reads its tools, every page of the list. The scope closes the connection: calls that still run
 * fail, and a process has ended when the scope is closed. Fails with `InvalidConfiguration` before anything is started, or
 * with `McpError` of reason `connect`, `timeout` or `request`; then, and when it is interrupted, nothing is left open.
 *
 * A tool has the name that the server gives it (see {@link McpOptions.name}); characters that providers refuse are replaced
 * by `_`, longer names are cut at 128, and of two that become alike the later one is numbered: `a.b` is `a_b`, or `a_b_2`
 * beside a tool `a_b`. What the server reports as an error of the tool is a result with `isError`, which the model reads. A
 * call fails with `ToolFailed` when the server refuses it or cannot be reached, with `ToolTimedOut`, or with
 * `InvalidToolOutput` when `structuredContent` does not match the schema that the server gave. Its result is the server's
 * whole one (`content`, `structuredContent`, `_meta`); the model is told the structured content, or the content as text and
 * files. Progress comes as `tool-output` of `{ type: "progress", progress, total?, message? }`. An aborted call is cancelled
 * on the server too.
 *
 * A server over HTTP that answers that it does not know the session gets another one, opened once for all calls that it
 * refused, and those calls are sent again. A call whose answer is cut off is sent again, once, when the tool declares
 * `readOnlyHint` or `idempotentHint`; otherwise it fails.
 *
 * The tools are those of now: a notice of the server that they have changed is not acted on. See {@link McpTools.refresh}.
 *
 * @since 0.1.0
 * @category constructors
 */
export const connect = (
  server: McpServer,
  options: McpOptions = {}
): Effect.Effect<McpTools, McpError | InvalidConfiguration, Scope.Scope> =>
  Effect.map(serverTools.connect(server, options), ({ instructions, refresh, tools }) => ({
    tools: make(tools),
    instructions,
    refresh: Effect.map(refresh, make)
  }))
