/**
 * A web page, live: a chat with an agent that works in the background, asks before it deletes anything, and loses nothing when the
 * page is reloaded. One server has the files of the page and the routes of eddy; the browser needs no build and no library.
 *
 * Run it: npm run example -- page
 *
 * It prints where the page is, and serves it until Ctrl-C. `PORT` chooses another port than 3000.
 *
 *     Open http://127.0.0.1:3000
 */
import { createServer } from "node:http"
import * as HttpServer from "@effect/platform/HttpServer"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Agent, BackgroundTasks, RunStore, TaskStore, ThreadStore, Tool } from "eddy"
import { Config, Console, Effect, Layer, Option, Schema } from "effect"
import { app } from "./page/app.js"
import { concierge } from "./page/concierge.js"
import { pickLanguageModel } from "./support/languageModel.js"

const steps = ["Reading", "Asking the library", "Comparing sources", "Checking figures", "Writing it up"]

const research = Tool.make("research", {
  description: "Researches a topic thoroughly. Takes some seconds.",
  input: Schema.Struct({ topic: Schema.String }),
  // Each call is a task: the agent talks on, and is called again when the result is there.
  background: { enabled: true },
  execute: Effect.fn(function* ({ topic }, { write }) {
    for (const [index, note] of steps.entries()) {
      yield* write({ progress: index / steps.length, note })
      yield* Effect.sleep("1200 millis")
    }
    return { finding: `Four sources agree about ${topic}, and one of them is worth reading.`, sources: 4 }
  })
})

const deleteReports = Tool.make("delete_reports", {
  description: "Deletes old reports for good.",
  input: Schema.Struct({ folder: Schema.String, olderThan: Schema.String }),
  // The run waits, over reloads and restarts, until somebody has decided.
  requireApproval: true,
  execute: () => Effect.succeed("3 reports are gone.")
})

const guide = Agent.make({
  id: "guide",
  instructions: "Be brief and friendly. Plain text, no markup. Use the tools when they help.",
  model: await pickLanguageModel(concierge()),
  tools: [research, deleteReports]
})

const Stores = Layer.mergeAll(ThreadStore.layerMemory, TaskStore.layerMemory, RunStore.layerMemory)
const Tasks = BackgroundTasks.layer({ shutdown: { grace: "200 millis" } }).pipe(Layer.provideMerge(Stores))

const serveAt = (port: number) =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      yield* HttpServer.serveEffect(yield* app({ guide }))
      yield* HttpServer.addressFormattedWith(url => Console.log(`Open ${url}`))
    })
  ).pipe(Layer.provide([Tasks, NodeHttpServer.layer(createServer, { port, host: "127.0.0.1" })]))

const main = Effect.gen(function* () {
  const port = yield* Config.option(Config.integer("PORT"))
  if (Option.isSome(port)) return yield* Layer.launch(serveAt(port.value))
  const elsewhere = Layer.unwrapEffect(
    Effect.as(Console.log("Port 3000 is taken, so another one:"), serveAt(0))
  )
  return yield* Layer.launch(Layer.orElse(serveAt(3000), () => elsewhere))
})

const isTaken = ({ cause }: { readonly cause: unknown }) =>
  Effect.zipRight(
    Console.error(`${cause}. Choose another port with PORT.`),
    Effect.sync(() => process.exit(1))
  )

NodeRuntime.runMain(Effect.catchTag(main, "ServeError", isTaken))
