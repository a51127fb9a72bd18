/** `replay: false` in the log, and through Effect: one reader, which holds the run and stops it when it leaves; nothing that was read is kept. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { describe, expect, it } from "@effect/vitest"
import { Agent, type Chunk, Errors, type ModelOutput, type Timeouts, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Deferred, Effect, Exit, FastCheck, Fiber, Option, Stream, TestClock } from "effect"
import * as RunLog from "../../src/output/RunLog.js"
import * as RunRecord from "../../src/output/RunRecord.js"
import { chunksOf, only, textOf, turns, types } from "../agent/kit.js"
import { expectGrammar } from "../support/grammar.js"
import { chunks, delta, finish, flush, refuseUnhandledRejections } from "../support/readers.js"
import { watchedModel } from "./watchedModel.js"

refuseUnhandledRejections()

const ignore = (): void => undefined

const cursorOf = (log: RunLog.RunLog): RunLog.Cursor => {
  const cursor = log.open()
  if (cursor instanceof RunLog.Cursor) return cursor
  throw cursor
}

const block = FastCheck.constantFrom("a", "b")

/** Chunks that the log keeps in different ways. */
const chunk: FastCheck.Arbitrary<Chunk.Chunk> = FastCheck.oneof(
  {
    weight: 6,
    arbitrary: FastCheck.tuple(block, FastCheck.string()).map(([id, text]) => chunks.text(id, text))
  },
  {
    weight: 3,
    arbitrary: FastCheck.tuple(block, FastCheck.string()).map(([id, text]) => chunks.reasoning(id, text))
  },
  { weight: 1, arbitrary: block.map(chunks.textStart) },
  { weight: 1, arbitrary: block.map(chunks.reasoningStart) },
  { weight: 1, arbitrary: block.map(chunks.toolCall) }
)

const batches = FastCheck.array(FastCheck.array(chunk, { minLength: 1, maxLength: 40, size: "max" }), {
  maxLength: 12,
  size: "max"
})

/** How many chunks a reader takes before it does something else; 0: it drains what is there. */
const appetites = FastCheck.array(FastCheck.nat(40), { minLength: 1, maxLength: 10 })

/** Writes a batch whenever there is demand, at once and on the stack of whoever wants it, as a run does. */
const play = (log: RunLog.RunLog, batches: ReadonlyArray<ReadonlyArray<Chunk.Chunk>>): void => {
  const rest = batches.values()
  const go = (): void => {
    while (log.hasDemand()) {
      const { value } = rest.next()
      if (value === undefined) return void log.close()
      log.append(value)
    }
    log.onDemand(go)
  }
  go()
}

/** Reads to the end; fails when the reader waits although nobody will ever call it. */
const readAll = (cursor: RunLog.Cursor, appetites: ReadonlyArray<number>): ReadonlyArray<Chunk.Chunk> => {
  const seen: Array<Chunk.Chunk> = []
  for (let turn = 0; !cursor.isDone(); turn++) {
    const appetite = appetites[turn % appetites.length] ?? 0
    const before = seen.length
    if (appetite === 0) {
      cursor.drain(32, chunk => seen.push(chunk))
    } else {
      // As an iterator does: it tells only now and then how far it is.
      for (let count = 0; count < appetite; count++) {
        const next = cursor.next()
        if (next === undefined) break
        seen.push(next)
      }
      if (seen.length > before && turn % 3 === 0) cursor.wantMore()
    }
    if (seen.length > before || cursor.isDone()) continue
    let isCalled = false
    cursor.wait(() => {
      isCalled = true
    })
    if (!isCalled) return expect.fail(`It waits for ever, after ${seen.length} chunks`)
  }
  return seen
}

describe("a log that keeps nothing", () => {
  it.prop(
    "its reader sees what the reader of another log does, and never waits in vain",
    [batches, appetites],
    ([batches, appetites]) => {
      const kept = RunLog.make("run-1")
      const unkept = RunLog.make("run-1", () => expect.fail("nobody has left"))
      for (const log of [kept, unkept]) play(log, structuredClone(batches))
      const seen = readAll(cursorOf(unkept), appetites)
      expect(seen).toStrictEqual(batches.flat())
      expect(readAll(cursorOf(kept), appetites)).toStrictEqual(seen)
    }
  )

  it.prop(
    "the writer is less than 16 entries and one batch ahead",
    [
      FastCheck.integer({ min: 1, max: 70 }),
      FastCheck.array(FastCheck.nat(40), { minLength: 1, maxLength: 30 })
    ],
    ([size, counts]) => {
      expect(RunLog.aheadUnkept).toBe(16)
      const log = RunLog.make("run-1", ignore)
      let written = 0
      const go = (): void => {
        while (log.hasDemand()) {
          log.append(Array.from({ length: size }, () => chunks.toolCall("c")))
          written += size
        }
        log.onDemand(go)
      }
      go()
      const cursor = cursorOf(log)
      let read = 0
      for (const count of counts) {
        read += cursor.drain(count, ignore)
        expect(written - read).toBeLessThan(16 + size)
        // It is woken in time: what there is never runs out.
        expect(written - read).toBeGreaterThanOrEqual(Math.min(1, size))
      }
    }
  )

  it("lets go of what was read", async () => {
    setFlagsFromString("--expose-gc")
    const gc: () => void = runInNewContext("gc")
    const left = async (log: RunLog.RunLog): Promise<number> => {
      const refs: Array<WeakRef<Chunk.Chunk>> = []
      const write = (count: number) => {
        const batch = Array.from({ length: count }, (_, index) => chunks.toolCall(`${index}`))
        refs.push(...batch.map(one => new WeakRef<Chunk.Chunk>(one)))
        log.append(batch)
      }
      write(100)
      const cursor = cursorOf(log)
      cursor.drain(90, ignore)
      await flush(1)
      gc()
      expect(cursor.isDone()).toBe(false)
      return refs.filter(ref => ref.deref() !== undefined).length
    }
    expect(await left(RunLog.make("run-1", ignore))).toBe(10)
    expect(await left(RunLog.make("run-1"))).toBe(100)
  })

  it("has one reader; the error says what to do", () => {
    const log = RunLog.make("run-1", ignore)
    const cursor = cursorOf(log)
    expect(log.open()).toMatchObject({ _tag: "InvalidConfiguration", field: "replay" })
    expect(String(log.open())).toContain("Leave `replay` out")
    log.append([chunks.start])
    expect(cursor.next()).toStrictEqual(chunks.start)
    cursor.close()
    expect(log.open()).toMatchObject({ field: "replay" })
  })

  it("tells once that its reader has left, and not when that has read everything", () => {
    for (const count of [0, 1, 2]) {
      let lefts = 0
      const log = RunLog.make("run-1", () => lefts++)
      const cursor = cursorOf(log)
      log.append([chunks.start, chunks.stepStart()])
      log.close()
      cursor.drain(count, ignore)
      cursor.close()
      cursor.close()
      expect(lefts).toBe(count === 2 ? 0 : 1)
    }
  })

  it("whose reader has left keeps nothing of what still comes, and holds nobody", () => {
    let lefts = 0
    const log = RunLog.make("run-1", () => {
      lefts++
      // The run is told before it goes on.
      expect(resumed).toBe(0)
    })
    let resumed = 0
    log.append(Array.from({ length: 100 }, () => chunks.toolCall("c")))
    log.onDemand(() => resumed++)
    const cursor = cursorOf(log)
    expect(resumed).toBe(0)
    cursor.close()
    expect([lefts, resumed]).toEqual([1, 1])
    log.append(Array.from({ length: 100 }, () => chunks.toolCall("c")))
    expect(log.hasDemand()).toBe(true)
    expect([...log.read()]).toEqual([])
  })
})

describe("a record that keeps nothing", () => {
  it("a run that ends without a finish says so", () => {
    const record = RunRecord.make("run-1", undefined, { textLimit: 100, onLeft: ignore })
    record.write([chunks.start, chunks.stepStart(), chunks.text("a", "said")])
    record.end(Exit.die(new Error("broken")))
    expect(record.settled).toMatchObject({ status: "failed", error: { message: "broken" } })
    // What was said is not kept, so that nobody takes this for a whole text.
    expect(record.settled).toMatchObject({ text: "", isTruncated: true })
    const cursor = cursorOf(record.log)
    expect(cursor.drain(10, ignore)).toBe(3)
    expect(cursor.isDone()).toBe(true)
  })
})

const agentOf = (model: Parameters<typeof Agent.make>[0]["model"]) => Agent.make({ id: "hand", model })

const run = (model: Parameters<typeof Agent.make>[0]["model"], options: { readonly runId?: string } = {}) =>
  Agent.run(agentOf(model), "Go!", { ...options, replay: false })

const numbers = (count: number): string => Array.from({ length: count }, (_, index) => `${index} `).join("")

const refused = (output: ModelOutput.ModelOutput) =>
  Effect.gen(function* () {
    for (const stream of [Stream.runDrain(output.fullStream), Stream.runDrain(output.textStream)]) {
      const error = yield* Effect.flip(stream)
      expect(error).toMatchObject({ _tag: "InvalidConfiguration", field: "replay" })
    }
  })

const textsOf = <E>(stream: Stream.Stream<string, E>) =>
  Effect.map(Stream.runCollect(stream), all => [...all].join(""))

describe("one reader of the Effect face", () => {
  it.scoped("sees every chunk once, in order, to the finish", () =>
    Effect.gen(function* () {
      const model = () =>
        ScriptedModel.make([
          [...ScriptedModel.reasoning("Hm."), ScriptedModel.toolCall("c1", "look", {}), finish("tool-calls")],
          [...Array.from({ length: 300 }, (_, index) => delta("a", `${index} `)), finish("stop")]
        ])
      const tool = Tool.make("look", { execute: () => Effect.succeed("found") })
      const read = (replay: boolean) =>
        Effect.gen(function* () {
          const agent = Agent.make({ id: "hand", model: model(), tools: [tool] })
          const output = yield* Agent.run(agent, "Look!", { replay, runId: "run-1" })
          const seen = yield* chunksOf(output.fullStream)
          expectGrammar(seen)
          expect(yield* output.text).toBe(textOf(seen))
          expect((yield* output.steps).length).toBe(2)
          const steps = only(seen, "step-finish").map(({ payload }) => payload.output)
          return [types(seen), textOf(seen), steps, only(seen, "tool-result"), only(seen, "reasoning-delta")]
        })
      expect(yield* read(false)).toStrictEqual(yield* read(true))
    })
  )

  it.scoped("of a run that failed gets its error after the finish", () =>
    Effect.gen(function* () {
      const output = yield* run(
        ScriptedModel.make([[delta("a", "Half"), { type: "error", error: "overloaded" }]])
      )
      const seen: Array<Chunk.Chunk> = []
      const exit = yield* Effect.exit(
        Stream.runForEach(output.fullStream, chunk => Effect.sync(() => seen.push(chunk)))
      )
      expect(types(seen).slice(-2)).toEqual(["error", "finish"])
      expect(exit).toMatchObject(Exit.fail({ _tag: "ModelError", message: "overloaded" }))
      expect((yield* output.fullOutput).text).toBe("Half")
    })
  )

  it.scoped("another one is refused and does not disturb it", () =>
    Effect.gen(function* () {
      const { model, stopped } = watchedModel(1000)
      const output = yield* run(model)
      const isOpen = yield* Deferred.make<void>()
      const mayGoOn = yield* Deferred.make<void>()
      const reading = yield* Effect.fork(
        textsOf(
          Stream.tap(output.textStream, text =>
            text === "5 "
              ? Effect.zipRight(Deferred.succeed(isOpen, undefined), Deferred.await(mayGoOn))
              : Effect.void
          )
        )
      )
      yield* Deferred.await(isOpen)
      yield* refused(output)
      expect(yield* output.status).toBe("running")
      yield* Deferred.succeed(mayGoOn, undefined)
      expect(yield* reading).toBe(numbers(1000))
      expect(stopped).toEqual([])
      yield* refused(output)
      expect(yield* output.text).toBe(numbers(1000))
    })
  )

  it.scoped("one that comes after values were asked is refused", () =>
    Effect.gen(function* () {
      const output = yield* run(watchedModel(1000).model)
      const text = yield* Effect.fork(output.text)
      yield* turns(2)
      yield* refused(output)
      expect(yield* text).toBe(numbers(1000))
    })
  )

  it.scoped("values asked beside it, before or after, do not count", () =>
    Effect.gen(function* () {
      for (const isFirst of [true, false]) {
        const output = yield* run(watchedModel(1000).model)
        const reading = textsOf(output.textStream)
        const both = isFirst ? [output.text, reading] : [reading, output.text]
        expect(yield* Effect.all(both, { concurrency: "unbounded" })).toEqual([numbers(1000), numbers(1000)])
      }
    })
  )

  it.scoped("values alone let the run go to its end", () =>
    Effect.gen(function* () {
      for (const pick of [
        (output: ModelOutput.ModelOutput): Effect.Effect<unknown, unknown> => output.text,
        (output: ModelOutput.ModelOutput) => output.drain,
        (output: ModelOutput.ModelOutput) => output.fullOutput,
        (output: ModelOutput.ModelOutput) => output.finishReason
      ]) {
        const { model, pulled } = watchedModel(1000)
        const output = yield* run(model)
        yield* pick(output)
        expect(pulled()).toBe(1001)
        expect(yield* output.status).toBe("success")
      }
      const full = yield* Agent.generate(agentOf(watchedModel(1000).model), "Go!", { replay: false })
      expect(full.text).toBe(numbers(1000))
    })
  )
})

/**
 * Parts that the provider may be ahead: fewer than 16 entries of the log and the inbox of 16 that came on top of them, the
 * inbox of 64 that has filled since, the part that is being handed over, and the 64 chunks that a reader takes at once.
 */
const ahead = 15 + 16 + 16 + 1 + 64

describe("how far the provider is ahead of the Effect face", () => {
  it.scoped("so many parts at every chunk, also when values were asked", () =>
    Effect.gen(function* () {
      const { model, pulled } = watchedModel(3000)
      const output = yield* run(model)
      yield* turns(50)
      expect(pulled()).toBeLessThanOrEqual(ahead - 64)
      let read = 0
      let most = 0
      const text = yield* Deferred.make<string, Errors.AgentError>()
      yield* Stream.runForEach(output.textStream, () =>
        Effect.gen(function* () {
          read++
          if (read === 1000) yield* Effect.forkScoped(Deferred.complete(text, output.text))
          if (read % 7 === 0) yield* turns(4)
          most = Math.max(most, pulled() - read)
        })
      )
      expect(read).toBe(3000)
      expect(most).toBeGreaterThan(16)
      expect(most).toBeLessThanOrEqual(ahead)
      expect(yield* Deferred.await(text)).toBe(numbers(3000))
    })
  )
})

describe("a reader of the Effect face that leaves", () => {
  const ways: Readonly<Record<string, (output: ModelOutput.ModelOutput) => Effect.Effect<unknown, unknown>>> =
    {
      "has taken enough": ({ textStream }) => Stream.runDrain(Stream.take(textStream, 3)),
      fails: ({ fullStream }) => Effect.exit(Stream.runForEach(fullStream, () => Effect.fail("mine"))),
      "is interrupted while it works": ({ fullStream }) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.fork(Stream.runForEach(fullStream, () => Effect.never))
          yield* turns(4)
          yield* Fiber.interrupt(fiber)
        }),
      "is interrupted while it waits": ({ fullStream }) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.fork(Stream.runDrain(fullStream))
          yield* turns(20)
          yield* Fiber.interrupt(fiber)
        }),
      "closes its scope": ({ fullStream }) =>
        Effect.scoped(Effect.flatMap(Stream.toPull(fullStream), pull => pull))
    }

  it.scoped.each(Object.entries(ways))("stops the run: %s", ([, leave]) =>
    Effect.gen(function* () {
      const { model, stopped } = watchedModel(100, { isSilent: true })
      const output = yield* run(model)
      yield* turns(20)
      const text = yield* Effect.fork(Effect.exit(output.text))
      yield* leave(output)
      // A few turns of the event loop, far less than the 100 ms that are promised.
      yield* turns(4)
      expect(stopped).toEqual(["signal", "cancelled"])
      expect(yield* output.status).toBe("aborted")
      const exit = yield* text
      expect(exit).toMatchObject(Exit.fail({ _tag: "RunAborted", cause: "Its reader has left." }))
      const full = yield* output.fullOutput
      expect(full.status).toBe("aborted")
      expect(full.text).not.toBe("")
      expect(numbers(100).startsWith(full.text)).toBe(true)
      yield* refused(output)
    })
  )

  it.scoped("after the finish stops nothing", () =>
    Effect.gen(function* () {
      const output = yield* run(watchedModel(10).model)
      const finish = yield* Stream.runHead(Stream.filter(output.fullStream, ({ type }) => type === "finish"))
      expect(Option.isSome(finish)).toBe(true)
      expect(yield* output.text).toBe(numbers(10))
    })
  )
})

describe("what stops a run whose reader is slow", () => {
  /** A run whose reader has read one chunk and reads no more. */
  const paused = (timeouts: Timeouts = {}) =>
    Effect.gen(function* () {
      const watched = watchedModel(10_000)
      const output = yield* Agent.run(agentOf(watched.model), "Go!", { timeouts, replay: false })
      const pull = yield* Stream.toPull(output.fullStream)
      yield* pull
      yield* turns(20)
      expect(yield* output.status).toBe("running")
      return { ...watched, output, pull }
    })

  it.scoped("abort", () =>
    Effect.gen(function* () {
      const { output, pull, stopped } = yield* paused()
      yield* output.abort("enough")
      expect((yield* output.fullOutput).status).toBe("aborted")
      expect(stopped).toEqual(["signal", "cancelled"])
      // The reader goes on and sees how it ended.
      const rest = yield* Stream.runCollect(Stream.repeatEffectChunkOption(pull))
      expect(types([...rest]).slice(-2)).toEqual(["abort", "finish"])
      expect(only([...rest], "abort")[0]?.payload).toEqual({ reason: "enough" })
    })
  )

  it.effect("the end of its scope", () =>
    Effect.gen(function* () {
      const { output, stopped } = yield* Effect.scoped(paused())
      expect(yield* output.status).toBe("aborted")
      expect(stopped).toEqual(["signal", "cancelled"])
    })
  )

  it.scoped.each(["run", "step"] as const)("timeouts.%s", limit =>
    Effect.gen(function* () {
      const { output, stopped } = yield* paused({ [limit]: "5 seconds" })
      yield* TestClock.adjust("6 seconds")
      const exit = yield* Effect.exit(output.drain)
      expect(exit).toMatchObject(Exit.fail({ _tag: "RunTimedOut", limit }))
      expect(stopped).toEqual(["signal", "cancelled"])
    })
  )
})

describe("an answer that is longer than what is kept", () => {
  const kept = 2 ** 20

  it.scoped("is told; its text and reasoning are refused, everything else is there", () =>
    Effect.gen(function* () {
      const say = () => delta("a", "x".repeat(2 ** 16))
      const output = yield* run(watchedModel(17, { say }).model)
      const seen = yield* chunksOf(output.fullStream)
      expect(textOf(seen)).toHaveLength(17 * 2 ** 16)
      expect(only(seen, "step-finish")[0]?.payload.output.isTruncated).toBe(true)
      expect(only(seen, "finish")[0]?.payload.output.isTruncated).toBe(true)
      for (const value of [output.text, output.reasoning, output.reasoningText]) {
        const error = yield* Effect.flip<unknown, Errors.AgentError, never>(value)
        expect(error).toBeInstanceOf(Errors.InvalidConfiguration)
        expect(error).toMatchObject({ field: "replay" })
      }
      expect(yield* output.finishReason).toBe("stop")
      expect(yield* output.steps).toHaveLength(1)
      expect(yield* output.fullOutput).toMatchObject({ isTruncated: true, text: "x".repeat(kept) })
      yield* output.drain
    })
  )

  it.scoped("exactly as much is whole", () =>
    Effect.gen(function* () {
      const say = () => delta("a", "x".repeat(2 ** 16))
      const output = yield* run(watchedModel(16, { say }).model)
      expect(yield* output.text).toHaveLength(kept)
      expect((yield* output.fullOutput).isTruncated).toBeUndefined()
    })
  )
})
