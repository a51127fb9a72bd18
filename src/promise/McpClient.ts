/**
 * Tools of servers of the Model Context Protocol, for plain TypeScript.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { McpOptions, McpServer } from "../mcp/McpServer.js"
import * as serverTools from "../mcp/serverTools.js"
import { mcpKinds } from "../mcp/settings.js"
import type { RemoteTool } from "../mcp/toolList.js"
import { squash } from "../protocol/foreignValue.js"
import { abortSignal, checkOptions, type Kind } from "../protocol/options.js"
import type { PromiseTool } from "./createTool.js"
import { consoleLayer, type EddyLogger, loggerKind, loggerLayer } from "./logging.js"

/** @since 0.1.0 @category models */
export interface McpClientOptions extends McpOptions {
  /** Gives up connecting. Closes nothing later: for that there is {@link McpClient.close}. */
  readonly abortSignal?: AbortSignal
  /** Default: the console; what went wrong goes to standard error. */
  readonly logger?: EddyLogger
}

const kinds = {
  ...mcpKinds,
  abortSignal,
  logger: loggerKind
} satisfies Record<keyof McpClientOptions, Kind>

const toPromiseTool = ({ description, name, named }: RemoteTool): PromiseTool => ({
  id: name,
  description,
  named
})

const byName = (tools: ReadonlyArray<RemoteTool>): Readonly<Record<string, PromiseTool>> =>
  Object.fromEntries(tools.map(tool => [tool.name, toPromiseTool(tool)]))

interface Opened {
  readonly instructions: string | undefined
  readonly tools: ReadonlyArray<RemoteTool>
  readonly refresh: () => Promise<ReadonlyArray<RemoteTool>>
  readonly close: () => Promise<void>
}

/**
 * A connection to a server of the Model Context Protocol. What its tools do is said at `McpTools.connect`, the same thing
 * for Effect.
 *
 * ```ts
 * await using files = await McpClient.connect({ command: "npx", args: ["-y", "some-server"] }, { name: "files" })
 * const agent = new Agent({ id: "clerk", model, tools: { ...files.tools } })
 * ```
 *
 * @since 0.1.0
 * @category models
 */
export class McpClient {
  /** What the server says of the use of its tools, for the instructions of an agent. */
  readonly instructions: string | undefined
  readonly #opened: Opened
  #tools: Readonly<Record<string, PromiseTool>>
  #closing: Promise<void> | undefined

  private constructor(opened: Opened) {
    this.#opened = opened
    this.#tools = byName(opened.tools)
    this.instructions = opened.instructions
  }

  /**
   * Connects and reads the tools. Rejects with `InvalidConfiguration`, with `McpError`, or with the reason of the abort
   * signal; then nothing is left open.
   */
  static async connect(server: McpServer, options: McpClientOptions = {}): Promise<McpClient> {
    checkOptions("A connection", options, { kinds })
    const { abortSignal: signal, logger, ...rest } = options
    signal?.throwIfAborted()
    const layer = logger === undefined ? consoleLayer : loggerLayer(logger)
    const run = async <A>(effect: Effect.Effect<A, unknown>, until?: AbortSignal): Promise<A> => {
      const exit = await Effect.runPromiseExit(
        Effect.provide(effect, layer),
        until === undefined ? {} : { signal: until }
      )
      if (Exit.isSuccess(exit)) return exit.value
      until?.throwIfAborted()
      throw squash(exit.cause)
    }
    const scope = Effect.runSync(Scope.make())
    const close = () => run(Scope.close(scope, Exit.void))
    try {
      const { instructions, refresh, tools } = await run(
        Scope.extend(serverTools.connect(server, rest), scope),
        signal
      )
      return new McpClient({ instructions, tools, refresh: () => run(refresh), close })
    } catch (cause) {
      await close()
      throw cause
    }
  }

  /** The server's tools by the name that the model calls them with. Spread later, of two of one name the last one counts. */
  get tools(): Readonly<Record<string, PromiseTool>> {
    return this.#tools
  }

  /**
   * Asks the server for its tools again: {@link tools} are then those. Agents that were made before keep theirs. Rejects
   * with `McpError`.
   */
  async refresh(): Promise<Readonly<Record<string, PromiseTool>>> {
    this.#tools = byName(await this.#opened.refresh())
    return this.#tools
  }

  /** Closes the connection: calls that still run fail, and a process has ended when this resolves. May be called again. */
  close(): Promise<void> {
    this.#closing ??= this.#opened.close()
    return this.#closing
  }

  /** `await using` closes the connection at the end of the block. */
  readonly [Symbol.asyncDispose] = (): Promise<void> => this.close()
}
