/**
 * Background tasks in an Effect application: the stores, the tasks and what a tool needs are layers. A call suspends until
 * somebody approves; the service `BackgroundTasks` watches and finds tasks beside the runs.
 *
 * Run it: npm run example -- effect-tasks
 *
 * It prints the two answers of the agent, what was stored between them, and what happened to the task:
 *
 *     clerk: Your notice waits for approval.
 *     publish is suspended: {"awaiting":"approval"}
 *     clerk: It is out, on page 7.
 *     running, suspended, resumed, completed
 */
import { Agent, BackgroundTasks, type Chunk, LibSqlStore, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Console, Context, Effect, Fiber, Layer, Schema, Stream } from "effect"
import { pickLanguageModel } from "./support/languageModel.js"

class Press extends Context.Tag("Press")<Press, (text: string, by: string) => Effect.Effect<string>>() {
  static readonly layer = Layer.succeed(Press, () => Effect.delay(Effect.succeed("page 7"), "200 millis"))
}

const Approval = Schema.Struct({ by: Schema.String })

const publish = Tool.make("publish", {
  description: "Publishes a notice, once a human has approved it.",
  input: Schema.Struct({ draft: Schema.String }),
  resume: Approval,
  background: { enabled: true, timeout: "1 minute", retries: 2 },
  execute: Effect.fn(function* ({ draft }, { resumeData, suspend }) {
    // `suspend` does not come back: the call is executed from its start again, with what it is resumed with.
    if (!Schema.is(Approval)(resumeData)) return yield* suspend({ awaiting: "approval" })
    const print = yield* Press
    return { printedOn: yield* print(draft, resumeData.by) }
  })
})

const { finish, reply, toolCall } = ScriptedModel
const script = ScriptedModel.make([
  [toolCall("c1", "publish", { draft: "Closed on Monday." }), finish("tool-calls")],
  reply("Your notice waits for approval."),
  reply("It is out, on page 7.")
])
const clerk = Agent.make({ id: "clerk", model: await pickLanguageModel(script), tools: [publish] })
const options = { memory: { thread: "notices", resource: "ada" }, untilIdle: true } as const

const tell = (chunk: Chunk.Chunk) =>
  chunk.type === "step-finish" && chunk.payload.output.text !== ""
    ? Console.log(`clerk: ${chunk.payload.output.text}`)
    : Effect.void

const program = Effect.gen(function* () {
  const tasks = yield* BackgroundTasks.BackgroundTasks
  const happened = yield* tasks.stream({ agentId: clerk.id }).pipe(
    Stream.map(({ type }) => type.replace("background-task-", "")),
    Stream.takeUntil(type => type === "completed"),
    Stream.runCollect,
    Effect.fork
  )
  const suspended = yield* Agent.stream(clerk, "We are closed on Monday.", options).pipe(
    Stream.tap(tell),
    Stream.filter(chunk => chunk.type === "background-task-suspended"),
    Stream.runLast,
    Effect.flatten
  )
  const { runId, taskId, toolCallId } = suspended.payload
  const { status, suspendData } = yield* Effect.flatten(tasks.get(taskId))
  yield* Console.log(`${suspended.payload.toolName} is ${status}: ${JSON.stringify(suspendData)}`)

  const resumed = Agent.resumeStream(clerk, { by: "ada" }, { ...options, runId, toolCallId })
  yield* Stream.runForEach(resumed, tell)
  yield* Console.log(Array.from(yield* Fiber.join(happened)).join(", "))
})

// In an application { url: "file:eddy.db" }, so that tasks survive the process.
const Stores = LibSqlStore.layer({ url: ":memory:" })
const Tasks = BackgroundTasks.layer({ globalConcurrency: 4 }).pipe(Layer.provideMerge(Stores))

await Effect.runPromise(Effect.provide(program, Layer.merge(Tasks, Press.layer)))
