/**
 * A server of the Model Context Protocol: where it is, and how it is talked to.
 *
 * @since 0.1.0
 */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import type * as Duration from "effect/Duration"

/**
 * A server that is started as a process and spoken to over its standard input and output. It ends with the connection: it
 * is told by the end of its input, then after 2 seconds each by SIGTERM and SIGKILL. A message may have up to 10 MB.
 *
 * @since 0.1.0
 * @category models
 */
export interface StdioServer {
  readonly command: string
  readonly args?: ReadonlyArray<string>
  /** Beside `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM` and `USER`, which are handed on; nothing else of this process is. */
  readonly env?: Readonly<Record<string, string>>
  /** Default: that of this process. */
  readonly cwd?: string
  /**
   * What becomes of its standard error. `log`: each line is logged at debug level, and when the server ends by itself the
   * last 20 at warning level. `inherit`: it goes to this process's standard error. Default `log`.
   */
  readonly stderr?: "log" | "inherit" | "ignore"
}

/**
 * A server that is reached over streamable HTTP. For one that knows only the older transport (HTTP with SSE), make an
 * `SSEClientTransport` of the SDK and pass it as `transport`; likewise for one that wants OAuth.
 *
 * @since 0.1.0
 * @category models
 */
export interface HttpServer {
  readonly url: string | URL
  /** Sent with each request, for example `Authorization`. Followed redirects stay within the origin. */
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * A server behind a transport of the SDK that has not been started. The connection starts and closes it. A transport starts
 * only once: when the server forgets its session, every later call fails. A function that makes a transport lets the
 * connection open another session.
 *
 * @since 0.1.0
 * @category models
 */
export interface TransportServer {
  readonly transport: Transport | (() => Transport)
}

/** A server of the Model Context Protocol. @since 0.1.0 @category models */
export type McpServer = StdioServer | HttpServer | TransportServer

/** @since 0.1.0 @category models */
export interface McpOptions {
  /**
   * What the server is called in messages; and its tools are called `name_tool`, so that two servers may have tools of one
   * name. Letters, digits, hyphens and underscores, at most 64. Without it the tools keep the names that the server gives.
   */
  readonly name?: string
  /**
   * How long the first contact may take, from the start of a process to the server's first answer; a number is
   * milliseconds. Default 60 seconds.
   */
  readonly connectTimeout?: Duration.DurationInput
  /**
   * How long the server may take for an answer; a number is milliseconds. Progress of a call starts the time anew. A call
   * that takes longer is cancelled and fails with `ToolTimedOut`. Default 60 seconds.
   */
  readonly timeout?: Duration.DurationInput
  /** What the server is told of this side. Default: eddy. */
  readonly clientInfo?: { readonly name: string; readonly version: string }
}
