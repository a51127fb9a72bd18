/**
 * Agents over HTTP, for both faces. Needs the package `@effect/platform`, and `@effect/platform-node` where Node serves.
 *
 * @since 0.1.0
 */
export * as Http from "./http/Http.js"
export type { NodeRequest, NodeResponse } from "./http/nodeBridge.js"
export {
  createHandler,
  type HandlerOptions,
  type Served,
  type ServeOptions,
  type Serving,
  serve,
  type WebHandler
} from "./promise/serve.js"
