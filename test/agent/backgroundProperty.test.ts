/** Whatever happens to calls in the background and to the runs that made them: the next prompt can be sent, and says it. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks, TaskStore, ThreadStore, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Context, Deferred, Effect, FastCheck as fc, Layer, Stream } from "effect"
import { conversationFaults } from "../support/conversationFaults.js"
import { violationsOf } from "../support/grammar.js"
import { calls, manager, outcomesIn, type Stores, stores, taskOf, tasks } from "./backgroundKit.js"
import { turn, turns } from "./kit.js"
import { messagesOf, nextPrompt, reply, toolCall, whole } from "./memoryKit.js"

/** What a call does: waits in the background, is done there at once, fails there, or runs here; or it is a wrong call. */
const kinds = ["dig", "now", "broken", "quick", "wrong", "brought back"] as const

type Kind = (typeof kinds)[number]

/** How a task that waits ends. */
type End = "result" | "failure" | "cancel"

interface Turn {
  readonly answers: ReadonlyArray<ReadonlyArray<Kind>>
  /** How the run is stopped, after so many chunks. */
  readonly stop: { readonly way: "signal" | "leaving"; readonly after: number } | undefined
  /** A task ends at these chunks, the oldest first, and so many do before the next turn. */
  readonly during: ReadonlyArray<readonly [at: number, end: End]>
  readonly after: ReadonlyArray<End>
}

const end = fc.constantFrom<End>("result", "result", "failure", "cancel")

const turnOf: fc.Arbitrary<Turn> = fc.record({
  answers: fc.array(fc.array(fc.constantFrom(...kinds), { minLength: 1, maxLength: 3 }), { maxLength: 3 }),
  stop: fc.option(
    fc.record({
      way: fc.constantFrom("signal" as const, "leaving" as const),
      after: fc.integer({ min: 2, max: 25 })
    }),
    { nil: undefined }
  ),
  during: fc.array(fc.tuple(fc.integer({ min: 1, max: 25 }), end), { maxLength: 3 }),
  after: fc.array(end, { maxLength: 2 })
})

const strict = () => false

/** Stores that take their time, before and after they do what they are asked: so many turns of the event loop, in turn. */
const slow = (delays: ReadonlyArray<number>): Layer.Layer<Stores> => {
  let asked = 0
  const delay = Effect.suspend(() => turns(delays[asked++ % delays.length] ?? 0))
  const slowly = <A, E>(effect: Effect.Effect<A, E>) => Effect.zipLeft(Effect.zipRight(delay, effect), delay)
  return Layer.map(stores, context => {
    const made = Context.get(context, TaskStore.TaskStore)
    const held = Context.get(context, ThreadStore.ThreadStore)
    return Context.make(TaskStore.TaskStore, {
      ...made,
      create: (task, owner) => slowly(made.create(task, owner)),
      update: (id, expected, change) => slowly(made.update(id, expected, change))
    }).pipe(
      Context.add(ThreadStore.ThreadStore, {
        ...held,
        append: (id, messages) => slowly(held.append(id, messages)),
        messages: (id, options) => slowly(held.messages(id, options)),
        replaceOutcome: (id, part) => slowly(held.replaceOutcome(id, part))
      })
    )
  })
}

const check = Effect.fnUntraced(function* (script: ReadonlyArray<Turn>, waitTimeout: number | undefined) {
  const service = yield* BackgroundTasks.BackgroundTasks
  const open: Array<{ readonly taskId: string; readonly gate: Deferred.Deferred<string, string> }> = []
  const background = { enabled: true, ...(waitTimeout === undefined ? {} : { waitTimeout }) }
  const input = { type: "object", properties: { id: { type: "string" } }, required: ["id"] } as const
  const tools = [
    Tool.make("dig", {
      input,
      background,
      execute: (_, { taskId = "" }) =>
        Effect.flatMap(Deferred.make<string, string>(), gate => {
          open.push({ taskId, gate })
          return Deferred.await(gate)
        })
    }),
    Tool.make("now", { input, background, execute: args => Effect.succeed(args) }),
    Tool.make("broken", { input, background, execute: () => Effect.fail("broken") }),
    Tool.make("quick", { input, execute: args => Effect.succeed(args) })
  ]
  const settleOne = Effect.fnUntraced(function* (how: End) {
    const next = open.shift()
    if (next === undefined) return
    if (how === "result") yield* Deferred.succeed(next.gate, "dug")
    else if (how === "failure") yield* Deferred.fail(next.gate, "not dug")
    else yield* Effect.ignore(service.cancel(next.taskId))
  })
  const callOf = (kind: Kind, id: string) => {
    if (kind === "wrong") return toolCall(id, "dig", {})
    if (kind === "brought back") return toolCall(id, "now", { id, _background: { enabled: false } })
    return toolCall(id, kind, { id })
  }
  for (const [index, { after, answers, during, stop }] of script.entries()) {
    const model = ScriptedModel.make([
      ...answers.map((made, step) =>
        calls(...made.map((kind, at) => callOf(kind, `${index}-${step}-${at}`)))
      ),
      ...Array.from({ length: 6 }, () => reply("ok"))
    ])
    const agent = Agent.make({ id: "kit", model, tools })
    const controller = new AbortController()
    const left = yield* Deferred.make<void>()
    let count = 0
    const chunks = yield* Agent.stream(agent, `question ${index}`, {
      memory: whole,
      abortSignal: controller.signal
    }).pipe(
      Stream.tap(() =>
        Effect.gen(function* () {
          count++
          for (const [at, how] of during) if (at === count) yield* settleOne(how)
          if (stop?.after !== count) return
          if (stop.way === "signal") controller.abort("stopped")
          else yield* Deferred.succeed(left, undefined)
        })
      ),
      Stream.interruptWhenDeferred(left),
      Stream.runCollect,
      Effect.map(read => [...read])
    )
    const last = chunks.at(-1)
    if (last?.type === "finish") {
      expect(violationsOf(chunks)).toStrictEqual([])
      expect(conversationFaults(last.payload.messages.all, strict)).toStrictEqual([])
    }
    for (const { messages } of model.requests) expect(conversationFaults(messages, strict)).toStrictEqual([])
    expect(conversationFaults(yield* nextPrompt(`between ${index}`), strict)).toStrictEqual([])
    for (const how of after) yield* settleOne(how)
  }
  while (open.length > 0) yield* settleOne("result")
  const isGoing = Effect.map(tasks, made =>
    made.some(({ status }) => status === "pending" || status === "running")
  )
  const isToBeTold = Effect.gen(function* () {
    const held = yield* messagesOf()
    return (yield* tasks).some(({ status, toolCallId }) =>
      outcomesIn(held, toolCallId).some(
        ({ providerOptions }) => (taskOf(providerOptions) as { readonly status?: string })?.status !== status
      )
    )
  })
  for (let count = 0; count < 300 && ((yield* isGoing) || (yield* isToBeTold)); count++) {
    while (open.length > 0) yield* settleOne("result")
    yield* Effect.promise(turn)
  }
  const prompt = yield* nextPrompt("at last")
  for (const { id, status, toolCallId } of yield* tasks) {
    expect(
      outcomesIn(prompt, toolCallId).map(({ providerOptions }) => taskOf(providerOptions))
    ).toStrictEqual([{ taskId: id, status }])
  }
  return new Set((yield* tasks).map(({ status }) => status))
})

describe("any conversation with calls in the background", () => {
  it("can be gone on with, and holds what each task came to, once", async () => {
    const seen = new Set<string>()
    await fc.assert(
      fc.asyncProperty(
        fc.array(turnOf, { minLength: 1, maxLength: 3 }),
        fc.option(fc.constant(2), { nil: undefined }),
        fc.constantFrom("queue" as const, "reject" as const, "fallback-sync" as const),
        fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 7 }),
        async (script, waitTimeout, backpressure, delays) => {
          // Two at once: some find no slot. What runs in the foreground instead waits for nobody here.
          const limit = backpressure === "fallback-sync" ? 100 : 2
          const options = { backpressure, globalConcurrency: limit }
          const statuses = await Effect.runPromise(
            Effect.provide(check(script, waitTimeout), manager(options, slow(delays)))
          )
          for (const status of statuses) seen.add(status)
        }
      ),
      { numRuns: 60, timeout: 10_000 }
    )
    expect([...seen].sort()).toStrictEqual(["cancelled", "completed", "failed"])
  }, 60_000)
})
