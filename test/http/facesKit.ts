/** The same agent served by each face, on loopback, until the test is over. */
import { createServer } from "node:http"
import * as HttpServer from "@effect/platform/HttpServer"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Agent, BackgroundTasks, RunStore, TaskStore, ThreadStore, Tool } from "eddy"
import { Http, type ServeOptions } from "eddy/http"
import { createTool } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Effect, Exit, Layer, Logger, Scope } from "effect"
import { onTestFinished } from "vitest"
import { agentWith, served } from "./kit.js"

export interface Served {
  readonly url: string
  readonly api: string
  readonly model: ReturnType<typeof ScriptedModel.make>
}

/** Serves an agent `helper`, with a tool `clock` of its own, that answers with these turns. */
export type Serve = (
  turns: ReadonlyArray<ScriptedModel.Turn>,
  clientOptions?: NonNullable<ServeOptions["clientOptions"]>
) => Promise<Served>

const told = { description: "Tells the time.", time: "12:00" }

const byPromises: Serve = async (turns, clientOptions = ["tools"]) => {
  const model = ScriptedModel.make(turns)
  const clock = createTool({
    id: "clock",
    description: told.description,
    execute: () => Promise.resolve(told.time)
  })
  const { api, url } = await served({ helper: agentWith([], { model, tools: { clock } }) }, { clientOptions })
  return { api, url, model }
}

const stores = Layer.mergeAll(ThreadStore.layerMemory, TaskStore.layerMemory, RunStore.layerMemory)

const services = Layer.provideMerge(BackgroundTasks.layer({ enabled: true }), stores)

const byEffects: Serve = async (turns, clientOptions = ["tools"]) => {
  const model = ScriptedModel.make(turns)
  const clock = Tool.make("clock", {
    description: told.description,
    execute: () => Effect.succeed(told.time)
  })
  const helper = Agent.make({ id: "helper", model, tools: [clock] })
  const node = NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" })
  const quiet = Logger.remove(Logger.defaultLogger)
  const app = Layer.provideMerge(
    Http.layer({ agents: { helper }, clientOptions }),
    Layer.mergeAll(services, node, quiet)
  )
  const scope = Effect.runSync(Scope.make())
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const context = await Effect.runPromise(Layer.buildWithScope(app, scope))
  const url = await Effect.runPromise(
    Effect.provide(
      Effect.map(HttpServer.HttpServer, ({ address }) =>
        address._tag === "TcpAddress" ? `http://127.0.0.1:${address.port}` : ""
      ),
      context
    )
  )
  return { api: `${url}/api`, url, model }
}

export const faces: ReadonlyArray<readonly [face: string, serve: Serve]> = [
  ["promises", byPromises],
  ["effects", byEffects]
]
