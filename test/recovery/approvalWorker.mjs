/**
 * A process that makes runs wait, or decides about what waits, until it is killed. Arguments: the folder of the built library, the
 * address of the database, the journal, and how many runs it makes; with none it decides until nothing waits, and ends by
 * itself.
 *
 * The journal has a line for each thing that the test asks for afterwards: what was executed, and which outcome was told.
 */
import { appendFileSync } from "node:fs"
import { pathToFileURL } from "node:url"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

const [library, url, journal, count] = process.argv.slice(2)
const { Agent, LibSqlStore, Tool } = await import(pathToFileURL(`${library}/index.js`).href)
const { ScriptedModel } = await import(pathToFileURL(`${library}/testing.js`).href)

const note = (...words) => {
  appendFileSync(journal, `${words.join(" ")}\n`)
  console.log(words[0])
}

const guarded = Tool.make("guarded", {
  input: Schema.Struct({ key: Schema.String }),
  requireApproval: true,
  execute: ({ key }) =>
    Effect.gen(function* () {
      note("executed", key, process.pid)
      yield* Effect.sleep(5)
      return { key }
    })
})

const callsOf = (run, prefix) => [
  ...["a", "b", "c"].map(id =>
    ScriptedModel.toolCall(`${prefix}${id}`, "guarded", { key: `${run}/${prefix}${id}` })
  ),
  ScriptedModel.finish("tool-calls")
]

const agentOf = turns => Agent.make({ id: "worker", model: ScriptedModel.make(turns), tools: [guarded] })

const memoryOf = run => ({ thread: `thread-${run}`, resource: "test" })

const make = Effect.gen(function* () {
  for (let run = 0; run < Number(count); run++) {
    const agent = agentOf([callsOf(`r${run}`, "")])
    yield* Stream.runDrain(Agent.stream(agent, "Go", { runId: `r${run}`, memory: memoryOf(`r${run}`) }))
  }
})

/** Everything that waits, at the same time, and one run after the other. */
const decide = Effect.gen(function* () {
  console.log("ready")
  for (;;) {
    const agent = agentOf([ScriptedModel.reply("Done.")])
    const [first] = yield* Agent.listSuspendedRuns(agent)
    if (first === undefined) return
    const { calls, runId } = first
    yield* Effect.forEach(
      calls,
      ({ toolCallId }) =>
        Agent.approveToolCall(agent, { runId, toolCallId }).pipe(
          Stream.runForEach(chunk =>
            Effect.sync(() => {
              if (chunk.type === "tool-result") note("told", `${runId}/${chunk.payload.toolCallId}`)
              if (chunk.type === "tool-error") note("failed", `${runId}/${chunk.payload.toolCallId}`)
              if (chunk.type === "finish") note("finish", runId, chunk.payload.stepResult.reason)
            })
          ),
          // Another process was faster.
          Effect.catchTag("ToolCallNotPending", () => Effect.void),
          Effect.catchTag("RunNotFound", () => Effect.void)
        ),
      { concurrency: "unbounded" }
    )
    if (calls.length === 0) yield* Effect.sleep(20)
  }
})

const work = Number(count) > 0 ? make : decide
await Effect.runPromise(Effect.scoped(Effect.provide(work, LibSqlStore.layer({ url }))))
