/** Retries, time limits, aborts, interruption and claims. */
import { describe, expect, it } from "@effect/vitest"
import { Chunk, Errors, WorkflowStep as Step, Workflow } from "eddy"
import { Deferred, Effect, Exit, Fiber, Schema, Stream, TestClock } from "effect"
import { inTime } from "../agent/kit.js"
import { expectWorkflow } from "../support/workflowGrammar.js"
import { add, Count, follow, outputOf, stored, story } from "./kit.js"

const inputData = { count: 1 }

/** A step that fails so often before it succeeds. */
const flaky = (failures: number, options: { readonly retries?: number } = {}) => {
  const times: Array<number> = []
  const step = Step.make("flaky", {
    input: Count,
    ...options,
    execute: (count, { attempt }) =>
      Effect.flatMap(Effect.clock, clock =>
        Effect.flatMap(clock.currentTimeMillis, now => {
          times.push(now)
          return attempt <= failures ? Effect.fail(`attempt ${attempt}`) : Effect.succeed(count)
        })
      )
  })
  return { step, times }
}

describe("attempts of a step", () => {
  it.effect("are made again after a while that doubles, and no more often than it says", () =>
    Effect.gen(function* () {
      const { step, times } = flaky(2, { retries: 2 })
      const workflow = Workflow.make("w", { input: Count }).andThen(step).commit()
      const { chunks } = yield* inTime(follow(Workflow.stream(workflow, { inputData })))
      expect(times).toEqual([0, 1000, 3000])
      expect(story(chunks)).toEqual(["start", "step-start flaky", "step-finish flaky success", "finish stop"])

      const lost = flaky(9)
      const again = Workflow.make("w", { input: Count, retries: 1, retryDelay: "10 seconds" })
        .andThen(lost.step)
        .commit()
      const { exit } = yield* inTime(follow(Workflow.stream(again, { inputData })))
      expect(lost.times).toEqual([3000, 13000])
      expect(exit).toEqual(Exit.fail("attempt 2"))
    }).pipe(stored)
  )

  it.effect("are stopped when they take too long, also when they ignore their signal", () =>
    Effect.gen(function* () {
      const signals: Array<AbortSignal> = []
      const slow = Step.make("slow", {
        timeout: "2 seconds",
        retries: 1,
        retryDelay: 0,
        execute: (_, { abortSignal }) => {
          signals.push(abortSignal)
          return Effect.never
        }
      })
      const workflow = Workflow.make("w").andThen(slow).commit()
      const { chunks, exit } = yield* inTime(follow(Workflow.stream(workflow, { inputData: null })))
      expect(exit).toMatchObject(Exit.fail({ _tag: "StepTimedOut", stepId: "slow", milliseconds: 2000 }))
      expect(signals.map(({ aborted }) => aborted)).toEqual([true, true])
      expect(outputOf(chunks)["result"]).toBeUndefined()
    }).pipe(stored)
  )

  it.effect(
    "fail with StepFailed when they die or interrupt themselves, and wrong values are told apart",
    () =>
      Effect.gen(function* () {
        const end = (step: Step.Step<string, unknown, unknown, unknown>) =>
          Effect.map(
            follow(Workflow.stream(Workflow.make("w").andThen(step).commit(), { inputData: 7 })),
            ({ exit }) => exit
          )
        expect(yield* end(Step.make("dies", { execute: () => Effect.die("oh") }))).toMatchObject(
          Exit.fail({ _tag: "StepFailed", stepId: "dies", cause: "oh" })
        )
        expect(yield* end(Step.make("stops", { execute: () => Effect.interrupt }))).toMatchObject(
          Exit.fail({ _tag: "StepFailed", stepId: "stops" })
        )
        const picky = Step.make("picky", { input: Schema.String, retries: 3, execute: Effect.succeed })
        expect(yield* end(picky as never)).toMatchObject(
          Exit.fail({ _tag: "InvalidStepInput", stepId: "picky" })
        )
        const liar = Step.make("liar", { success: Schema.Int, execute: () => Effect.succeed(0.5) })
        expect(yield* end(liar)).toMatchObject(Exit.fail({ _tag: "InvalidStepOutput", stepId: "liar" }))
      }).pipe(stored)
  )
})

/** A step that waits until it is interrupted. */
const waiting = Effect.gen(function* () {
  const started = yield* Deferred.make<void>()
  const stopped = yield* Deferred.make<void>()
  const step = Step.make("waits", {
    execute: () =>
      Effect.zipRight(Deferred.succeed(started, undefined), Effect.never).pipe(
        Effect.onInterrupt(() => Deferred.succeed(stopped, undefined))
      )
  })
  return { started, stopped, step }
})

describe("a run that is stopped", () => {
  it.effect("by its signal ends with abort, and nothing of it is kept", () =>
    Effect.gen(function* () {
      const { started, stopped, step } = yield* waiting
      const workflow = Workflow.make("w", { input: Count })
        .andThen(add("one", 1))
        .parallel([step, add("two", 2)])
        .commit()
      const controller = new AbortController()
      const fiber = yield* Effect.fork(
        follow(Workflow.stream(workflow, { inputData, abortSignal: controller.signal }))
      )
      yield* Deferred.await(started)
      controller.abort("enough")
      const { chunks, exit } = yield* Fiber.join(fiber)
      yield* Deferred.await(stopped)
      expect(story(chunks).slice(-3)).toEqual(["step-finish waits aborted", "abort", "finish aborted"])
      expect(Exit.isSuccess(exit)).toBe(true)
      expect((yield* Workflow.list(workflow)).total).toBe(0)
    }).pipe(stored)
  )

  it.effect("by interruption stays in the store, and goes on from there at once", () =>
    Effect.gen(function* () {
      const executed: Array<string> = []
      const { started, stopped, step } = yield* waiting
      const first = Step.make("first", { execute: () => Effect.sync(() => executed.push("first")) })
      let isBlocked = true
      const second = Step.make("second", {
        execute: () =>
          Effect.suspend(() =>
            isBlocked
              ? Deferred.succeed(started, undefined).pipe(
                  Effect.zipRight(Effect.never),
                  Effect.onInterrupt(() => Deferred.succeed(stopped, undefined))
                )
              : Effect.succeed("done")
          )
      })
      expect(step.id).toBe("waits")
      const workflow = Workflow.make("w").andThen(first).andThen(second).commit()
      const fiber = yield* Effect.fork(
        Stream.runDrain(Workflow.stream(workflow, { inputData: null, runId: "r" }))
      )
      yield* Deferred.await(started)
      const busy = yield* Effect.flip(Stream.runDrain(Workflow.restartStream(workflow, { runId: "r" })))
      expect(busy).toMatchObject({ _tag: "WorkflowRunBusy" })
      yield* Fiber.interrupt(fiber)
      yield* Deferred.await(stopped)
      expect((yield* Workflow.list(workflow)).runs).toMatchObject([{ runId: "r", status: "interrupted" }])
      isBlocked = false
      const { chunks } = yield* follow(Workflow.restartStream(workflow, { runId: "r" }))
      expect(story(chunks)).toEqual([
        "start",
        "step-start second",
        "step-finish second success",
        "finish stop"
      ])
      expect(executed).toEqual(["first"])
    }).pipe(stored)
  )

  it.effect("is gone on with by one of two that try, when its process is not heard of any more", () =>
    Effect.gen(function* () {
      const { started, step } = yield* waiting
      const workflow = Workflow.make("w").andThen(step).commit()
      const options = { inputData: null, runId: "r" }
      const fiber = yield* Effect.fork(Stream.runDrain(Workflow.stream(workflow, options)))
      yield* Deferred.await(started)
      // It says that it is there: minutes later nobody may go on with it.
      yield* TestClock.adjust("2 minutes")
      const tries = Effect.exit(Stream.runHead(Workflow.restartStream(workflow, { runId: "r" })))
      expect(yield* tries).toMatchObject(Exit.fail({ _tag: "WorkflowRunBusy" }))
      yield* Fiber.interrupt(fiber)
      const both = yield* Effect.all([tries, tries], { concurrency: 2 })
      expect(both.filter(Exit.isSuccess)).toHaveLength(1)
      expect(yield* Effect.exit(Stream.runDrain(Workflow.stream(workflow, options)))).toMatchObject(
        Exit.fail({ _tag: "InvalidConfiguration", field: "runId" })
      )
      expect(yield* Workflow.remove(workflow, "r")).toBe(true)
      expect(yield* Workflow.remove(workflow, "r")).toBe(false)
    }).pipe(stored)
  )
})

/** A step that asks somebody. */
const ask = <const Id extends string>(id: Id) =>
  Step.make(id, {
    resume: Schema.Struct({ answer: Schema.String }),
    execute: (_, { resumeData, suspend }) =>
      resumeData === undefined ? suspend({ question: id }) : Effect.succeed(resumeData.answer)
  })

describe("steps that wait", () => {
  it.effect("beside each other are resumed in any order, each once, and usage and results stay", () =>
    Effect.gen(function* () {
      const inner = Workflow.make("inner").andThen(ask("deep")).commit()
      const workflow = Workflow.make("w")
        .parallel([ask("a"), inner, add("plain", 1) as never])
        .map(({ inputData: { a, inner: deep } }) => `${a} ${deep}`)
        .commit()
      const run = yield* follow(Workflow.stream(workflow, { inputData: { count: 1 }, runId: "r" }))
      expect(outputOf(run.chunks)["suspended"]).toEqual([
        { stepId: "a", suspendData: { question: "a" } },
        { stepId: "inner.deep", suspendData: { question: "deep" } }
      ])
      const resume = (step: string, answer: unknown) =>
        follow(Workflow.resumeStream(workflow, { runId: "r", step, resumeData: { answer } }))
      expect((yield* resume("inner.deep", 7)).exit).toMatchObject(
        Exit.fail({ _tag: "InvalidStepResumeData" })
      )
      expect((yield* follow(Workflow.resumeStream(workflow, { runId: "r" }))).exit).toMatchObject(
        Exit.fail({ _tag: "StepNotSuspended", suspended: ["a", "inner.deep"] })
      )
      const second = yield* resume("inner.deep", "two")
      expect(story(second.chunks)).toEqual([
        "start",
        "step-start inner",
        "step-start inner.deep",
        "step-finish inner.deep success",
        "step-finish inner success",
        "finish suspended"
      ])
      expect((yield* resume("inner.deep", "two")).exit).toMatchObject(Exit.fail({ _tag: "StepNotSuspended" }))
      const third = yield* resume("a", "one")
      expect(outputOf(third.chunks)["result"]).toBe("one two")
      expect((yield* resume("a", "one")).exit).toMatchObject(Exit.fail({ _tag: "WorkflowRunNotFound" }))
    }).pipe(stored)
  )

  it.effect("in a list and in rounds are resumed too", () =>
    Effect.gen(function* () {
      let rounds = 0
      const again = Step.make("again", {
        execute: (_, { resumeData, suspend }) =>
          Effect.suspend(() => (resumeData === undefined ? suspend() : Effect.succeed(++rounds)))
      })
      const workflow = Workflow.make("w")
        .map(() => [1, 2])
        .foreach(ask("each"))
        .dountil(again, ({ inputData: count }) => count === 2)
        .commit()
      const resume = (resumeData: unknown, step?: string) =>
        Effect.map(
          follow(
            Workflow.resumeStream(workflow, {
              runId: "r",
              resumeData,
              ...(step === undefined ? {} : { step })
            })
          ),
          ({ chunks }) => outputOf(chunks)
        )
      const run = yield* follow(Workflow.stream(workflow, { inputData: null, runId: "r" }))
      expect(outputOf(run.chunks)["suspended"]).toMatchObject([{ stepId: "each.0" }, { stepId: "each.1" }])
      yield* resume({ answer: "second" }, "each.1")
      expect((yield* resume({ answer: "first" }))["suspended"]).toEqual([{ stepId: "again" }])
      expect((yield* resume("go"))["suspended"]).toEqual([{ stepId: "again" }])
      expect((yield* resume("go"))["result"]).toBe(2)
    }).pipe(stored)
  )
})

describe("a hot run", () => {
  it.scoped("has readers, a result, and ends with its scope", () =>
    Effect.gen(function* () {
      const workflow = Workflow.make("w", { input: Count }).andThen(add("one", 1)).commit()
      const output = yield* Workflow.run(workflow, { inputData })
      expect(yield* output.result).toEqual({ count: 2 })
      const [first, second] = yield* Effect.all([
        Stream.runCollect(output.fullStream),
        Stream.runCollect(output.fullStream)
      ])
      expect([...first]).toEqual([...second])
      expectWorkflow([...first])
      expect((yield* output.fullOutput).status).toBe("success")
      for (const chunk of first) {
        const encoded = yield* Chunk.encode(chunk)
        expect(yield* Chunk.decode(JSON.parse(JSON.stringify(encoded)))).toEqual(chunk)
      }
      const failing = Workflow.make("w")
        .andThen(Step.make("no", { execute: () => Effect.fail("no") }))
        .commit()
      const broken = yield* Workflow.run(failing, { inputData: null })
      expect(yield* Effect.flip(broken.result)).toBe("no")
      expect(yield* Effect.flip(Stream.runDrain(broken.fullStream))).toBe("no")
      const aborted = yield* Effect.flip(
        Workflow.generate(workflow, { inputData, abortSignal: AbortSignal.abort() })
      )
      expect(aborted).toBeInstanceOf(Errors.RunAborted)
    }).pipe(stored)
  )
})
