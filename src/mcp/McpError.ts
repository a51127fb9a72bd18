/**
 * What goes wrong between this side and a server of the Model Context Protocol.
 *
 * @since 0.1.0
 */
import { tagged } from "../protocol/tagged.js"

/**
 * A server of the Model Context Protocol could not be reached or did not answer as it should. `reason` says where:
 * `connect` when there is no connection yet (a command that is not found, a refused connection, a wrong first answer),
 * `request` when a request failed later (it is answered with an error, or broken off, or HTTP fails), `timeout` when the
 * server did not answer in time, `closed` when the connection has ended. `message` never holds arguments, environment, headers or more of an address than its origin; `cause` is the
 * original failure and stays in the process.
 *
 * @since 0.1.0
 * @category errors
 */
export class McpError extends tagged("McpError")<{
  readonly reason: "connect" | "request" | "timeout" | "closed"
  readonly message: string
  readonly cause?: unknown
}> {}
