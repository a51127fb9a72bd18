/**
 * A process that works on background tasks until it is killed. Arguments: the folder of the built library, the address of the
 * database, the journal, a name for what it dispatches, how many turns it makes, and `drain` when it is to end by itself.
 *
 * The journal has a line for each thing that the test asks for afterwards: what was begun, and what was acknowledged.
 */
import { appendFileSync } from "node:fs"
import { pathToFileURL } from "node:url"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

const [library, store, url, journal, name, turns, mode] = process.argv.slice(2)
const { Agent, BackgroundTasks, LibSqlStore, PostgresStore, Tool } = await import(
  pathToFileURL(`${library}/index.js`).href
)
const { ScriptedModel } = await import(pathToFileURL(`${library}/testing.js`).href)

const note = (...words) => {
  appendFileSync(journal, `${words.join(" ")}\n`)
  console.log(words[0])
}

const begun = context => Effect.sync(() => note("begun", context.taskId, process.pid))

const tool = (toolName, retries, work) =>
  Tool.make(toolName, {
    input: Schema.Struct({ key: Schema.String }),
    background: { enabled: true, retries },
    execute: ({ key }, context) => Effect.zipRight(begun(context), work(key, context))
  })

const tools = [
  tool("instant", 1000, key => Effect.succeed({ key })),
  tool("slow", 1000, key => Effect.as(Effect.sleep(30), { key })),
  tool("once", 0, key => Effect.as(Effect.sleep(10), { key })),
  tool("failing", 1, () => Effect.fail(new Error("not this time"))),
  tool("asking", 1000, (key, context) =>
    context.resumeData === undefined
      ? context.suspend({ key })
      : Effect.succeed({ key, ...context.resumeData })
  )
]

const callAll = turn => [
  ...tools.map(({ name: toolName }) =>
    ScriptedModel.toolCall(`${name}-${turn}-${toolName}`, toolName, { key: `${name}-${turn}` })
  ),
  ScriptedModel.finish("tool-calls")
]

const model = ScriptedModel.make(
  Array.from({ length: Number(turns) }).flatMap((_, turn) => [callAll(turn), ScriptedModel.reply("Started.")])
)
const agent = Agent.make({ id: "worker", model, tools })

const work = Effect.gen(function* () {
  yield* Agent.register(agent)
  console.log("ready")
  for (let turn = 0; turn < Number(turns); turn++) {
    yield* Agent.stream(agent, `Turn ${turn}`, {
      memory: { thread: `thread-${name}`, resource: "test" }
    }).pipe(
      Stream.runForEach(chunk =>
        Effect.sync(() => {
          if (chunk.type === "background-task-started") note("dispatched", chunk.payload.taskId)
        })
      )
    )
  }
  const tasks = yield* BackgroundTasks.BackgroundTasks
  if (mode !== "drain") return yield* Effect.never
  for (;;) {
    const suspended = yield* tasks.list({ status: "suspended", perPage: 1000 })
    for (const { id } of suspended.tasks) yield* Effect.ignore(tasks.resume(id, { by: "drain" }))
    const left = yield* tasks.list({ status: ["pending", "running", "suspended"], perPage: 0 })
    if (left.total === 0) return
    yield* Effect.sleep(20)
  }
})

const stores = store === "libsql" ? LibSqlStore.layer({ url }) : PostgresStore.layer({ url })
const failing = { maxRetries: 0, retryDelay: 5 }
const live = BackgroundTasks.layer({ lease: 300, defaultRetries: failing, globalConcurrency: 8 }).pipe(
  Layer.provideMerge(stores)
)
await Effect.runPromise(Effect.scoped(Effect.provide(work, live)))
note("drained", process.pid)
