/** The output of a run as effects and streams: readers that come and go, how far the run goes by itself, and its scope. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, Errors } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Chunk as Batch, Effect, Exit, Fiber, Scope, Stream } from "effect"
import { countingModel, delta, finish, flush, latch, pausingModel, typesOf } from "../support/readers.js"

const flushed = (turns: number) => Effect.promise(() => flush(turns))

const numbers = (count: number): string => Array.from({ length: count }, (_, index) => `${index} `).join("")

const collected = <A, E>(stream: Stream.Stream<A, E>) =>
  Effect.map(Stream.runCollect(stream), Batch.toReadonlyArray)

describe("readers", () => {
  it.scoped("see the same, early and late, and one that leaves affects no other", () =>
    Effect.gen(function* () {
      const gate = latch()
      const model = pausingModel([
        delta("a", "one "),
        gate,
        delta("a", "two "),
        delta("b", "three"),
        finish("stop")
      ])
      const output = yield* Agent.run(Agent.make({ id: "hand", model }), "Go!")
      const early = yield* Effect.fork(collected(output.fullStream))
      const texts = yield* Effect.fork(collected(output.textStream))
      expect(yield* collected(Stream.take(output.textStream, 1))).toEqual(["one "])
      const waiting = yield* Effect.fork(Stream.runDrain(output.fullStream))
      yield* flushed(2)
      yield* Fiber.interrupt(waiting)
      gate.open()
      const whole = yield* Fiber.join(early)
      expect(yield* Fiber.join(texts)).toEqual(["one ", "two ", "three"])
      expect(yield* collected(output.fullStream)).toEqual(whole)
      expect(typesOf(whole).at(-1)).toBe("finish")
    })
  )

  it.scoped("a failure comes after the chunks, for each of them", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([[delta("a", "Half"), { type: "error", error: "overloaded" }]])
      const output = yield* Agent.run(Agent.make({ id: "hand", model }), "Go!")
      for (const _ of ["early", "late"]) {
        const seen: Array<string> = []
        const error = yield* Stream.runForEach(output.fullStream, ({ type }) =>
          Effect.sync(() => seen.push(type))
        ).pipe(Effect.flip)
        expect(seen.slice(-2)).toEqual(["error", "finish"])
        expect(error).toBeInstanceOf(Errors.ModelError)
        expect(yield* Effect.flip(output.text)).toBe(error)
      }
    })
  )
})

describe("how far a run goes by itself", () => {
  it.scoped("nobody reads: it waits; one that leaves, or asks for a value, lets it go on", () =>
    Effect.gen(function* () {
      const model = countingModel(5000)
      const output = yield* Agent.run(Agent.make({ id: "hand", model }), "Go!")
      yield* flushed(50)
      expect(model.pulled()).toBeGreaterThan(64)
      expect(model.pulled()).toBeLessThanOrEqual(128 + 8)
      expect(yield* output.status).toBe("running")
      expect(yield* output.text).toBe(numbers(5000))
      expect(yield* output.status).toBe("success")

      const left = countingModel(5000)
      const other = yield* Agent.run(Agent.make({ id: "hand", model: left }), "Go!")
      yield* Stream.runDrain(Stream.take(other.textStream, 1))
      expect(yield* other.finishReason).toBe("stop")
      expect(left.pulled()).toBe(5001)
    })
  )

  it.scoped("a reader that pauses holds it", () =>
    Effect.gen(function* () {
      const model = countingModel(5000)
      const output = yield* Agent.run(Agent.make({ id: "hand", model }), "Go!")
      let seen = 0
      const hold = latch()
      const reading = yield* Effect.fork(
        Stream.runForEach(output.textStream, () =>
          ++seen === 500 ? Effect.promise(() => hold.wait) : Effect.void
        )
      )
      yield* flushed(80)
      expect(seen).toBe(500)
      // A reader takes a batch of 64 at once.
      expect(model.pulled()).toBeLessThanOrEqual(500 + 64 + 128 + 8)
      hold.open()
      yield* Fiber.join(reading)
      expect(seen).toBe(5000)
    })
  )

  it.scoped("someone who asks and is interrupted leaves nothing broken", () =>
    Effect.gen(function* () {
      const gate = latch()
      const model = pausingModel([delta("a", "one "), gate, delta("a", "two"), finish("stop")])
      const output = yield* Agent.run(Agent.make({ id: "hand", model }), "Go!")
      const asking = yield* Effect.fork(output.text)
      yield* flushed(2)
      expect(Exit.isInterrupted(yield* Fiber.interrupt(asking))).toBe(true)
      gate.open()
      expect(yield* output.text).toBe("one two")
    })
  )
})

describe("stopping", () => {
  it.effect("the end of its scope aborts the run, and everything settles", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([[delta("a", "Half"), ScriptedModel.hang]])
      const scope = yield* Scope.make()
      const output = yield* Scope.extend(Agent.run(Agent.make({ id: "hand", model }), "Go!"), scope)
      const text = yield* Effect.fork(Effect.flip(output.text))
      expect(yield* collected(Stream.take(output.textStream, 1))).toEqual(["Half"])
      yield* Scope.close(scope, Exit.void)
      expect(yield* output.status).toBe("aborted")
      expect(yield* Fiber.join(text)).toBeInstanceOf(Errors.RunAborted)
      expect(typesOf(yield* collected(output.fullStream)).slice(-2)).toEqual(["abort", "finish"])
      expect(yield* output.fullOutput).toMatchObject({ text: "Half", finishReason: "aborted" })
    })
  )

  it.scoped("the first abort counts", () =>
    Effect.gen(function* () {
      const model = countingModel(5000)
      const output = yield* Agent.run(Agent.make({ id: "hand", model }), "Go!")
      yield* flushed(20)
      yield* output.abort("first")
      yield* output.abort("second")
      expect(yield* Effect.flip(output.drain)).toMatchObject({ message: "The run was aborted: first" })
      expect(model.isCancelled()).toBe(true)
      yield* output.abort("third")
      expect(yield* output.fullOutput).toMatchObject({ error: { cause: "first" } })
    })
  )
})
