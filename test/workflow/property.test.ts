/** Random workflows do what a plain interpreter does, and do it once, wherever the process dies. */
import { type Chunk, Errors, RunStore, Workflow } from "eddy"
import { Effect, Exit, Logger, LogLevel, TestClock, TestContext } from "effect"
import * as fc from "effect/FastCheck"
import { describe, expect, it } from "vitest"
import { follow, outputOf } from "./kit.js"
import { anyPlan, reference, workflowOf } from "./plans.js"

const inputData = { count: 1 }

const run = <A, E>(effect: Effect.Effect<A, E, RunStore.RunStore>): Promise<A> =>
  Effect.runPromise(
    effect.pipe(
      Effect.provide(RunStore.layerMemory),
      Logger.withMinimumLogLevel(LogLevel.None),
      Effect.provide(TestContext.TestContext)
    )
  )

/** Leaves whose end was told, and leaves that began: with the round of those that are repeated. */
const leaves = (chunks: ReadonlyArray<Chunk.Chunk>) => {
  const name = (stepId: unknown, iteration: unknown) => `${stepId}#${iteration ?? 1}`
  const begun: Array<string> = []
  const done: Array<string> = []
  for (const chunk of chunks) {
    if (chunk.type === "step-start") {
      const { iteration, stepId } = chunk.payload.request
      if (
        String(stepId)
          .split(".")
          .some(part => part.startsWith("leaf"))
      )
        begun.push(name(stepId, iteration))
    }
    if (chunk.type === "step-finish" && chunk.payload.metadata["status"] === "success") {
      done.push(name(chunk.payload.id, chunk.payload.metadata["iteration"]))
    }
  }
  return { begun, done }
}

/** A process whose store is gone from this write on: before it is done, or after. */
const dying = (store: RunStore.RunStore["Type"], at: number, isDone: boolean) => {
  let writes = 0
  const gone = new Errors.StorageError({ operation: "RunStore.save", message: "The process is dead." })
  const write = <A>(effect: Effect.Effect<A, Errors.StorageError>): Effect.Effect<A, Errors.StorageError> =>
    Effect.suspend(() => {
      writes++
      if (writes < at) return effect
      return writes === at && isDone ? Effect.zipRight(effect, gone) : gone
    })
  const service: RunStore.RunStore["Type"] = {
    ...store,
    save: (...given) => write(store.save(...given)),
    delete: (runId, expected) => write(store.delete(runId, expected))
  }
  return { service, count: () => writes }
}

describe("random workflows", () => {
  it("come to what a plain interpreter comes to", () =>
    fc.assert(
      fc.asyncProperty(anyPlan, plan =>
        run(
          Effect.gen(function* () {
            const workflow = workflowOf(plan, () => undefined)
            const { chunks } = yield* follow(Workflow.stream(workflow, { inputData }))
            expect(outputOf(chunks)["result"]).toEqual({ count: reference(plan, 1) })
            expect((yield* Workflow.list(workflow)).total).toBe(0)
          })
        )
      ),
      { numRuns: 25 }
    ))

  it("go on where a process has died, and do nothing twice", () =>
    fc.assert(
      fc.asyncProperty(anyPlan, fc.integer({ min: 1, max: 30 }), fc.boolean(), (plan, at, isDone) =>
        run(
          Effect.gen(function* () {
            const store = yield* RunStore.RunStore
            const { service } = dying(store, at, isDone)
            const workflow = workflowOf(plan, () => undefined)
            const options = { inputData, runId: "r" }
            const first = yield* follow(Workflow.stream(workflow, options)).pipe(
              Effect.provideService(RunStore.RunStore, service),
              Effect.catchAllCause(() => Effect.succeed({ chunks: [], exit: Exit.void }))
            )
            // The dead process has the run until its claim is over.
            const early = yield* Workflow.list(workflow)
            expect(early.runs.filter(({ status }) => status !== "running")).toEqual([])
            yield* TestClock.adjust("16 seconds")
            const { runs } = yield* Workflow.list(workflow)
            const finished = first.chunks.some(
              chunk => chunk.type === "finish" && chunk.payload.stepResult.reason === "stop"
            )
            if (runs.length === 0) {
              expect(finished || at === 1).toBe(true)
              return
            }
            expect(runs).toMatchObject([{ runId: "r", status: "interrupted" }])
            const second = yield* follow(Workflow.restartStream(workflow, { runId: "r" }))
            expect(outputOf(second.chunks)["result"]).toEqual({ count: reference(plan, 1) })
            const before = new Set(leaves(first.chunks).done)
            expect(leaves(second.chunks).begun.filter(step => before.has(step))).toEqual([])
            expect((yield* Workflow.list(workflow)).total).toBe(0)
          })
        )
      ),
      { numRuns: 40 }
    ))
})
