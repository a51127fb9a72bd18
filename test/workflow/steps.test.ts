/** What a workflow does with its steps, on the Effect face. */
import { describe, expect, it } from "@effect/vitest"
import { WorkflowStep as Step, Workflow } from "eddy"
import { Effect, Exit } from "effect"
import { add, Count, follow, outputOf, stored, story } from "./kit.js"

const inputData = { count: 1 }

describe("a workflow", () => {
  it.effect("hands on what each step gave, and tells of it in order", () =>
    Effect.gen(function* () {
      const workflow = Workflow.make("sum", { input: Count, success: Count })
        .andThen(add("one", 1))
        .andThen(add("ten", 10))
        .commit()
      const { chunks, exit } = yield* follow(Workflow.stream(workflow, { inputData }))
      expect(story(chunks)).toEqual([
        "start",
        "step-start one",
        "step-finish one success",
        "step-start ten",
        "step-finish ten success",
        "finish stop"
      ])
      expect(outputOf(chunks)["result"]).toEqual({ count: 12 })
      expect(Exit.isSuccess(exit)).toBe(true)
    }).pipe(stored)
  )

  it.effect("runs steps beside each other, in branches, for each item and again and again", () =>
    Effect.gen(function* () {
      const workflow = Workflow.make("all", { input: Count })
        .parallel([add("a", 1), add("b", 2)])
        .map(({ inputData: { a, b } }) => ({ count: a.count + b.count }))
        .branch([
          [({ inputData: { count } }) => count > 3, add("big", 100)],
          [({ inputData: { count } }) => count > 100, add("bigger", 1000)]
        ])
        .map(({ inputData: { big, bigger } }) => [big, bigger, { count: 7 }].filter(one => one !== undefined))
        .foreach(add("each", 1), { concurrency: 2 })
        .map(({ inputData: list }) => ({ count: list.reduce((sum, { count }) => sum + count, 0) }))
        .dountil(add("more", 50), ({ inputData: { count } }) => count > 200)
        .dowhile(
          add("less", -100),
          ({ inputData: { count }, iterationCount }) => count > 100 && iterationCount < 9
        )
        .commit()
      const { chunks } = yield* follow(Workflow.stream(workflow, { inputData }))
      // 2 + 3 = 5 → 105, 7 → 106, 8 → 114 → 164 → 214 → 114 → 14
      expect(outputOf(chunks)["result"]).toEqual({ count: 14 })
    }).pipe(stored)
  )

  it.effect("is a step of another one", () =>
    Effect.gen(function* () {
      const inner = Workflow.make("inner", { input: Count, success: Count }).andThen(add("inc", 1)).commit()
      const outer = Workflow.make("outer", { input: Count }).andThen(inner).andThen(add("two", 2)).commit()
      const { chunks } = yield* follow(Workflow.stream(outer, { inputData }))
      expect(story(chunks)).toEqual([
        "start",
        "step-start inner",
        "step-start inner.inc",
        "step-finish inner.inc success",
        "step-finish inner success",
        "step-start two",
        "step-finish two success",
        "finish stop"
      ])
      expect(outputOf(chunks)["result"]).toEqual({ count: 4 })
    })
  )

  it.effect("fails with what a step fails with, and interrupts the others", () =>
    Effect.gen(function* () {
      class Broken {
        readonly _tag = "Broken"
      }
      let interrupted = false
      const broken = Step.make("broken", { execute: () => Effect.fail(new Broken()) })
      const slow = Step.make("slow", {
        execute: () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => (interrupted = true)))
      })
      const workflow = Workflow.make("fails", { input: Count }).parallel([slow, broken]).commit()
      const { chunks, exit } = yield* follow(Workflow.stream(workflow, { inputData }))
      expect(story(chunks)).toEqual([
        "start",
        "step-start slow",
        "step-start broken",
        "step-finish broken failed",
        "step-finish slow aborted",
        "error",
        "finish error"
      ])
      expect(exit).toEqual(Exit.fail(new Broken()))
      expect(interrupted).toBe(true)
    }).pipe(stored)
  )
})
