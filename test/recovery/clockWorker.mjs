/**
 * A process whose clock is wrong. Arguments: the folder of the built library, the store and its address, the journal, a name, how
 * many milliseconds its clock is ahead, and what it works on: `tasks`, `workflow` or `approval`.
 *
 * The process `A` starts the work, and holds it until the gate is open, or for ever. The process `B` tries again and again to do
 * the same work, and does it at once when it gets it.
 */
import { appendFileSync, existsSync } from "node:fs"
import { pathToFileURL } from "node:url"

const [library, store, url, journal, name, ahead, what] = process.argv.slice(2)

const Wall = Date
globalThis.Date = class extends Wall {
  constructor(...given) {
    if (given.length === 0) super(Wall.now() + Number(ahead))
    else super(...given)
  }
  static now() {
    return Wall.now() + Number(ahead)
  }
}

const { Cause, Effect, Schema, Stream } = await import("effect")
const { Agent, BackgroundTasks, LibSqlStore, PostgresStore, Tool, Workflow, WorkflowStep } = await import(
  pathToFileURL(`${library}/index.js`).href
)
const { ScriptedModel } = await import(pathToFileURL(`${library}/testing.js`).href)

const note = (...words) => appendFileSync(journal, `${words.join(" ")} ${name}\n`)

const isFirst = name === "A"

/** In the first process until the gate is there. */
const held = key =>
  Effect.gen(function* () {
    note("begun", key)
    while (isFirst && !existsSync(`${journal}.${key.split("-")[0]}`)) yield* Effect.sleep(20)
    note("done", key)
    return { key }
  })

const Key = Schema.Struct({ key: Schema.String })

const callsOf = keys => [
  ...keys.map(key => ScriptedModel.toolCall(key, "hold", { key })),
  ScriptedModel.finish("tool-calls")
]

/** Tries again as long as another process has the work. */
const trying = (attempt, isBusy) =>
  Effect.gen(function* () {
    for (;;) {
      const exit = yield* Effect.exit(attempt)
      if (exit._tag === "Success") return
      if (!isBusy(Cause.squash(exit.cause))) return yield* exit
      note("busy", what)
      yield* Effect.sleep(100)
    }
  })

const tasks = Effect.gen(function* () {
  const tool = Tool.make("hold", {
    input: Key,
    background: { enabled: true, retries: 5 },
    execute: ({ key }) => held(key)
  })
  const turns = [
    ["one-a", "one-b", "one-c"],
    ["two-a", "two-b"]
  ].flatMap(keys => [callsOf(keys), ScriptedModel.reply("Started.")])
  const agent = Agent.make({ id: "worker", model: ScriptedModel.make(turns), tools: [tool] })
  const work = Effect.gen(function* () {
    yield* Agent.register(agent)
    const background = yield* BackgroundTasks.BackgroundTasks
    if (!isFirst) {
      // Its manager looks several times for what is left.
      for (;;) {
        yield* Effect.sleep(400)
        note("busy", what)
      }
    }
    yield* Stream.runDrain(Agent.stream(agent, "Start."))
    for (;;) {
      const { total } = yield* background.list({ status: "completed", perPage: 0 })
      if (total === 3) break
      yield* Effect.sleep(20)
    }
    yield* Stream.runDrain(Agent.stream(agent, "Start again."))
    return yield* Effect.never
  })
  yield* Effect.provide(work, BackgroundTasks.layer({ lease: 3000 }))
})

const workflow = Effect.suspend(() => {
  const step = WorkflowStep.make("hold", { input: Key, success: Key, execute: ({ key }) => held(key) })
  const flow = Workflow.make("w", { input: Key }).andThen(step).commit()
  return isFirst
    ? Stream.runDrain(Workflow.stream(flow, { inputData: { key: "two" }, runId: "r" }))
    : trying(
        Stream.runDrain(Workflow.restartStream(flow, { runId: "r" })),
        ({ _tag }) => _tag === "WorkflowRunBusy"
      )
})

const approval = Effect.gen(function* () {
  const tool = Tool.make("hold", { input: Key, requireApproval: true, execute: ({ key }) => held(key) })
  const turns = isFirst ? [callsOf(["two"])] : [ScriptedModel.reply("Done.")]
  const agent = Agent.make({ id: "worker", model: ScriptedModel.make(turns), tools: [tool] })
  if (isFirst) yield* Stream.runDrain(Agent.stream(agent, "Start.", { runId: "r" }))
  const approve = Stream.runDrain(Agent.approveToolCall(agent, { runId: "r", toolCallId: "two" }))
  yield* trying(approve, ({ _tag }) => _tag === "ToolCallNotPending")
})

const stores = store === "libsql" ? LibSqlStore.layer({ url }) : PostgresStore.layer({ url })
const work = { tasks, workflow, approval }[what]
await Effect.runPromise(Effect.scoped(Effect.provide(work, stores)))
