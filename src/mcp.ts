/// <reference lib="esnext.disposable" preserve="true" />
/**
 * Tools of servers of the Model Context Protocol, for both faces. Needs the package `@modelcontextprotocol/sdk`, which is
 * loaded when the first connection is made.
 *
 * @since 0.1.0
 */
export { McpError } from "./mcp/McpError.js"
export type { HttpServer, McpOptions, McpServer, StdioServer, TransportServer } from "./mcp/McpServer.js"
export * as McpTools from "./mcp/McpTools.js"
export { McpClient, type McpClientOptions } from "./promise/McpClient.js"
