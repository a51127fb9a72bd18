/** Decisions count once, whoever makes them, in whatever order, and whatever happens to those who carry them out. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, Errors, RunStore, ThreadStore, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Context, Effect, Exit, Fiber, FastCheck as fc, Layer, Option, Stream, TestClock } from "effect"
import { conversationFaults } from "../support/conversationFaults.js"
import {
  asking,
  calling,
  guarded,
  reasonOf,
  reply,
  stores,
  suspended,
  textIn,
  told,
  toolCall,
  waitingIn
} from "./approvalKit.js"
import { chunksOf, errorOf, finishOf, inTime, only, read, settle, types } from "./kit.js"

const run = (toolCallId: string) => ({ runId: "r1", toolCallId })

const memory = { thread: "t1", resource: "u1" }

type Service = Context.Tag.Service<RunStore.RunStore>

/** The stores, some operations of the one of runs changed. */
const changedRuns = (change: (store: Service) => Partial<Service>) =>
  Layer.merge(
    Layer.map(RunStore.layerMemory, context => {
      const store = Context.get(context, RunStore.RunStore)
      return Context.make(RunStore.RunStore, { ...store, ...change(store) })
    }),
    ThreadStore.layerMemory
  )

const two = () => {
  const remove = guarded()
  const model = ScriptedModel.make([
    calling(toolCall("c1", "remove", { n: 1 }), toolCall("c2", "remove", { n: 2 })),
    reply("Done.")
  ])
  return { ...remove, model, agent: Agent.make({ id: "a", model, tools: [remove.tool] }) }
}

const all = { concurrency: "unbounded" } as const

describe("decisions at the same moment", () => {
  it.effect("about one call: one wins, and the others are told so", () =>
    Effect.gen(function* () {
      const { agent, executed } = two()
      yield* suspended(agent)
      const decide = () => Effect.exit(chunksOf(Agent.approveToolCall(agent, run("c1"))))
      const exits = yield* Effect.all([decide(), decide(), decide()], all)
      expect(exits.filter(Exit.isSuccess)).toHaveLength(1)
      for (const exit of exits) {
        if (Exit.isFailure(exit)) expect(exit.cause).toMatchObject({ error: { _tag: "ToolCallNotPending" } })
      }
      expect(executed).toEqual([1])
    }).pipe(Effect.provide(stores))
  )

  it.effect(
    "about different calls: both count, and the run goes on once, with a store that takes its time",
    () =>
      inTime(
        Effect.gen(function* () {
          const { agent, executed, model } = two()
          yield* suspended(agent)
          const legs = yield* Effect.all(
            [
              chunksOf(Agent.approveToolCall(agent, run("c2"))),
              chunksOf(Agent.declineToolCall(agent, { ...run("c1"), reason: "No." }))
            ],
            all
          )
          expect(legs.map(reasonOf).sort()).toEqual(["stop", "suspended"])
          expect(executed).toEqual([2])
          expect(model.unused()).toBe(0)
          expect(model.requests[1]?.messages.at(-1)).toMatchObject({
            content: [
              { toolCallId: "c1", output: { value: "No." } },
              { toolCallId: "c2", output: { value: { removed: 2 } } }
            ]
          })
        }).pipe(
          Effect.provide(
            changedRuns(store => ({
              save: (saved, revision) =>
                Effect.zipRight(Effect.sleep("3 seconds"), store.save(saved, revision))
            }))
          )
        )
      )
  )

  it.scoped("as soon as they are told, by a reader that has not seen the end", () =>
    Effect.gen(function* () {
      const { agent, executed } = two()
      const legs: Array<Fiber.Fiber<ReadonlyArray<string>, unknown>> = []
      const first = Agent.stream(agent, "go", { runId: "r1" }).pipe(
        Stream.tap(chunk =>
          chunk.type === "tool-call-approval"
            ? Effect.map(
                Effect.forkScoped(
                  Effect.map(chunksOf(Agent.approveToolCall(agent, run(chunk.payload.toolCallId))), types)
                ),
                fiber => void legs.push(fiber)
              )
            : Effect.void
        )
      )
      yield* Stream.runDrain(first)
      yield* Fiber.joinAll(legs)
      expect([...executed].sort()).toEqual([1, 2])
    }).pipe(Effect.provide(stores))
  )
})

describe("a store of runs", () => {
  it.effect("that fails when a run is laid aside fails the run, and nothing is announced", () =>
    Effect.gen(function* () {
      const { agent, executed } = two()
      const { chunks, exit } = yield* read(Agent.stream(agent, "go", { runId: "r1", memory }))
      expect(Exit.isFailure(exit)).toBe(true)
      expect(errorOf(chunks)).toBeInstanceOf(Errors.StorageError)
      expect(waitingIn(chunks)).toEqual([])
      expect(only(chunks, "tool-error")).toHaveLength(2)
      expect(executed).toEqual([])
      const threads = yield* ThreadStore.ThreadStore
      const messages = (yield* threads.messages("t1")).map(({ message }) => message)
      expect(conversationFaults(messages, () => false)).toEqual([])
      expect(JSON.stringify(messages)).not.toContain("waits")
    }).pipe(
      Effect.provide(
        changedRuns(() => ({
          save: () => Effect.fail(new Errors.StorageError({ operation: "RunStore.save", message: "No." }))
        }))
      )
    )
  )

  it.effect("holds up no abort, and keeps nothing of a run that was stopped meanwhile", () =>
    Effect.gen(function* () {
      const { agent } = two()
      const controller = new AbortController()
      const fiber = yield* Effect.fork(
        read(Agent.stream(agent, "go", { runId: "r1", abortSignal: controller.signal }))
      )
      yield* settle
      controller.abort("enough")
      yield* settle
      const { chunks } = yield* Fiber.join(fiber)
      expect(reasonOf(chunks)).toBe("aborted")
      expect(waitingIn(chunks)).toEqual([])
      yield* TestClock.adjust("1 minute")
      const runs = yield* RunStore.RunStore
      expect(Option.isNone(yield* runs.get("r1"))).toBe(true)
    }).pipe(
      Effect.provide(
        changedRuns(store => ({
          save: (...given) => Effect.zipRight(Effect.sleep("3 seconds"), store.save(...given))
        }))
      )
    )
  )

  it.effect("that holds what nobody can read says so", () =>
    Effect.gen(function* () {
      const { agent } = two()
      const runs = yield* RunStore.RunStore
      yield* runs.save({ runId: "r1", agentId: "a", snapshot: { version: 2 } }, undefined)
      const error = yield* Effect.flip(Stream.runDrain(Agent.approveToolCall(agent, run("c1"))))
      expect(error).toBeInstanceOf(Errors.StorageError)
    }).pipe(Effect.provide(stores))
  )
})

/** What a process has left that died while it carried out a decision. */
const claimedByTheDead = Effect.gen(function* () {
  const runs = yield* RunStore.RunStore
  const { agentId, revision, runId, snapshot } = Option.getOrThrow(yield* runs.get("r1"))
  const { calls, ...rest } = snapshot as { readonly calls: ReadonlyArray<{ readonly toolCallId: string }> }
  const claimed = calls.map(call => (call.toolCallId === "c1" ? { ...call, claim: { owner: "dead" } } : call))
  yield* runs.save({ runId, agentId, snapshot: { ...rest, calls: claimed } }, revision, {
    owner: "dead",
    duration: "1 minute"
  })
})

describe("whoever carries out a decision", () => {
  it.effect("and dies blocks the call for a minute, and not for ever", () =>
    Effect.gen(function* () {
      const { agent, executed } = two()
      yield* suspended(agent)
      yield* claimedByTheDead
      const [listed] = yield* Agent.listSuspendedRuns(agent)
      expect(listed?.calls.map(({ toolCallId }) => toolCallId)).toEqual(["c2"])
      const early = yield* Effect.flip(Stream.runDrain(Agent.approveToolCall(agent, run("c1"))))
      expect(early).toMatchObject({ _tag: "ToolCallNotPending", pending: ["c2"] })
      yield* TestClock.adjust("61 seconds")
      yield* told(Agent.approveToolCall(agent, run("c1")), ["c1", "c2"])
      expect(executed).toEqual([1])
    }).pipe(Effect.provide(stores))
  )

  it.effect("and has lost its claim changes neither the run nor its thread", () =>
    Effect.gen(function* () {
      const [started, opened] = [yield* Effect.makeLatch(), yield* Effect.makeLatch()]
      let isFrozen = false
      let executed = 0
      const slow = Tool.make("slow", {
        requireApproval: true,
        execute: () =>
          Effect.suspend(() => {
            if (++executed > 1) return Effect.succeed("of the second")
            return started.open.pipe(Effect.zipRight(opened.await), Effect.as("of the first"))
          })
      })
      const model = ScriptedModel.make([
        calling(toolCall("c1", "slow", {}), toolCall("c2", "slow", {})),
        reply("Done.")
      ])
      const agent = Agent.make({ id: "a", model, tools: [slow] })
      yield* suspended(agent, { memory })
      const { runs, threads } = yield* Effect.all({
        runs: RunStore.RunStore,
        threads: ThreadStore.ThreadStore
      })
      // A process that is frozen renews nothing.
      const frozen: Service = {
        ...runs,
        save: (...given) => (isFrozen ? Effect.never : runs.save(...given))
      }
      const leg = yield* Effect.fork(
        Effect.exit(read(Agent.approveToolCall(agent, run("c1")))).pipe(
          Effect.provideService(RunStore.RunStore, frozen)
        )
      )
      yield* started.await
      isFrozen = true
      yield* TestClock.adjust("2 minutes")
      yield* settle
      yield* chunksOf(Agent.approveToolCall(agent, run("c1")))
      const before = yield* Effect.all([runs.get("r1"), threads.messages("t1")])
      isFrozen = false
      yield* opened.open
      const exit = yield* Fiber.join(leg)
      expect(executed).toBe(2)
      expect(JSON.stringify(exit)).toContain("was not renewed for 60000 ms")
      expect(yield* Effect.all([runs.get("r1"), threads.messages("t1")])).toEqual(before)
      expect(JSON.stringify(before)).toContain("of the second")
    }).pipe(Effect.provide(stores))
  )

  it.effect("keeps the call for as long as it takes", () =>
    Effect.gen(function* () {
      let executed = 0
      const slow = Tool.make("slow", {
        requireApproval: true,
        execute: () =>
          Effect.delay(
            Effect.sync(() => ++executed),
            "10 minutes"
          )
      })
      const model = ScriptedModel.make([calling(toolCall("c1", "slow", {})), reply("Done.")])
      const agent = Agent.make({ id: "a", model, tools: [slow] })
      yield* suspended(agent)
      const leg = yield* Effect.fork(chunksOf(Agent.approveToolCall(agent, run("c1"))))
      for (let minute = 0; minute < 9; minute++) {
        yield* settle
        yield* TestClock.adjust("1 minute")
        yield* settle
        const error = yield* Effect.flip(Stream.runDrain(Agent.approveToolCall(agent, run("c1"))))
        expect(error).toMatchObject({ _tag: "ToolCallNotPending" })
      }
      yield* TestClock.adjust("2 minutes")
      expect(reasonOf(yield* Fiber.join(leg))).toBe("stop")
      expect(executed).toBe(1)
    }).pipe(Effect.provide(stores))
  )

  for (const stop of ["abort", "interruption"] as const) {
    it.effect(`and is stopped leaves a call that has failed: ${stop}`, () =>
      Effect.gen(function* () {
        let executed = 0
        const endless = Tool.make("endless", {
          requireApproval: true,
          execute: () =>
            Effect.zipRight(
              Effect.sync(() => ++executed),
              Effect.never
            )
        })
        const model = ScriptedModel.make([
          calling(toolCall("c1", "endless", {}), toolCall("c2", "endless", {})),
          reply("Anything else?")
        ])
        const agent = Agent.make({ id: "a", model, tools: [endless] })
        yield* suspended(agent, { memory })
        const controller = new AbortController()
        const leg = yield* Effect.fork(
          read(Agent.approveToolCall(agent, { ...run("c1"), abortSignal: controller.signal }))
        )
        yield* settle
        expect(executed).toBe(1)
        if (stop === "abort") {
          controller.abort("enough")
          const { chunks } = yield* Fiber.join(leg)
          expect(reasonOf(chunks)).toBe("aborted")
          expect(only(chunks, "tool-error")).toHaveLength(1)
          expect(conversationFaults(finishOf(chunks).messages.all, () => false)).toEqual([])
        } else {
          yield* Fiber.interrupt(leg)
        }
        const [listed] = yield* Agent.listSuspendedRuns(agent)
        expect(listed?.calls.map(({ toolCallId }) => toolCallId)).toEqual(["c2"])
        const late = yield* Effect.flip(Stream.runDrain(Agent.approveToolCall(agent, run("c1"))))
        expect(late).toMatchObject({ _tag: "ToolCallNotPending" })
        const declined = yield* told(Agent.declineToolCall(agent, run("c2")), ["c2"])
        expect(textIn(declined)).toBe("Anything else?")
        expect(executed).toBe(1)
        const threads = yield* ThreadStore.ThreadStore
        const messages = (yield* threads.messages("t1")).map(({ message }) => message)
        expect(conversationFaults(messages, () => false)).toEqual([])
        expect(JSON.stringify(messages)).not.toContain("waits for")
      }).pipe(Effect.provide(stores))
    )
  }

  it.effect("and is stopped before it has begun gives the call back", () =>
    Effect.gen(function* () {
      const { agent, executed } = two()
      yield* suspended(agent)
      const controller = new AbortController()
      controller.abort("no")
      const stopped = yield* chunksOf(
        Agent.approveToolCall(agent, { ...run("c1"), abortSignal: controller.signal })
      )
      expect(types(stopped)).toEqual(["start", "abort", "finish"])
      expect(executed).toEqual([])
      yield* told(Agent.approveToolCall(agent, run("c1")), ["c1", "c2"])
      expect(executed).toEqual([1])
    }).pipe(Effect.provide(stores))
  )
})

describe("whatever is decided, in whatever order, however often and at once", () => {
  interface Scenario {
    readonly calls: ReadonlyArray<"remove" | "ask">
    readonly decisions: ReadonlyArray<{
      readonly call: number
      readonly approve: boolean
      readonly together: boolean
    }>
  }
  const scenario: fc.Arbitrary<Scenario> = fc.record({
    calls: fc.array(fc.constantFrom("remove" as const, "ask" as const), { minLength: 1, maxLength: 4 }),
    decisions: fc.array(fc.record({ call: fc.nat(3), approve: fc.boolean(), together: fc.boolean() }), {
      maxLength: 10
    })
  })

  it.effect.prop(
    "each call is executed at most once and has one outcome, and the run ends once",
    { scenario },
    ({ scenario: { calls, decisions } }) =>
      Effect.gen(function* () {
        const remove = guarded()
        const ask = asking()
        const ids = calls.map((_, index) => `c${index}`)
        const model = ScriptedModel.make([
          calling(...calls.map((name, index) => toolCall(`c${index}`, name, { n: index }))),
          reply("Done.")
        ])
        const agent = Agent.make({ id: "a", model, tools: [remove.tool, ask.tool] })
        yield* suspended(agent, { memory })
        const decide = (call: number, approve: boolean) => {
          const options = run(`c${call}`)
          const stream = !approve
            ? Agent.declineToolCall(agent, options)
            : calls[call] === "ask"
              ? Agent.resumeStream(agent, { answer: "so" }, options)
              : Agent.approveToolCall(agent, options)
          return Effect.exit(told(stream, ids))
        }
        // At last, everything is decided.
        const asked = [
          ...decisions.map(({ approve, call, together }) => ({
            call: call % calls.length,
            approve,
            together
          })),
          ...calls.map((_, call) => ({ call, approve: true, together: false }))
        ]
        const exits: Array<Exit.Exit<ReadonlyArray<{ readonly type: string }>, unknown>> = []
        let batch: Array<ReturnType<typeof decide>> = []
        for (const { approve, call, together } of asked) {
          batch.push(decide(call, approve))
          if (together) continue
          exits.push(...(yield* Effect.all(batch, all)))
          batch = []
        }
        const legs = exits.flatMap(exit => (Exit.isSuccess(exit) ? [exit.value] : []))
        expect(legs).toHaveLength(calls.length)
        for (const exit of exits) {
          if (Exit.isSuccess(exit)) continue
          expect(["ToolCallNotPending", "RunNotFound"]).toContain(
            (exit.cause as { readonly error?: { readonly _tag: string } }).error?._tag
          )
        }
        expect(legs.filter(leg => leg.some(({ type }) => type === "text-delta"))).toHaveLength(1)
        expect(model.unused()).toBe(0)
        expect(new Set(remove.executed).size).toBe(remove.executed.length)
        const outcomes = legs.flatMap(leg =>
          leg.filter(({ type }) => ["tool-result", "tool-error", "tool-output-denied"].includes(type))
        )
        expect(outcomes).toHaveLength(calls.length)
        const content = model.requests[1]?.messages.at(-1)?.content as ReadonlyArray<{
          readonly toolCallId: string
        }>
        expect(content.map(({ toolCallId }) => toolCallId)).toEqual(ids)
        expect(JSON.stringify(content)).not.toContain("waits for")
        const runs = yield* RunStore.RunStore
        expect((yield* runs.list()).total).toBe(0)
        const threads = yield* ThreadStore.ThreadStore
        const messages = (yield* threads.messages("t1")).map(({ message }) => message)
        expect(conversationFaults(messages, () => false)).toEqual([])
        expect(JSON.stringify(messages)).not.toContain("waits for")
      }).pipe(Effect.provide(Layer.fresh(stores))),
    { fastCheck: { numRuns: 40 } }
  )
})
