/** Runs of a workflow that have not ended. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type StorageError, WorkflowRunBusy } from "../protocol/Errors.js"
import { shelfOf } from "./beginning.js"
import type { AnyWorkflow } from "./Draft.js"
import { isClaimed, type Kept } from "./shelf.js"
import { type SuspendedStep, suspendedSteps } from "./state.js"

/** A run that has not ended. @since 0.1.0 @category models */
export interface UnfinishedRun {
  readonly runId: string
  /** `running`: somebody goes on with it. `suspended`: it waits to be resumed. `interrupted`: it waits to be restarted. */
  readonly status: "running" | "suspended" | "interrupted"
  readonly suspended: ReadonlyArray<SuspendedStep>
}

/** A page of them. @since 0.1.0 @category models */
export interface UnfinishedRunPage {
  readonly runs: ReadonlyArray<UnfinishedRun>
  readonly total: number
}

/** Which of them. @since 0.1.0 @category models */
export interface ListOptions {
  /** From 0, which is the default. */
  readonly page?: number
  /** Default 100. */
  readonly perPage?: number
}

const statusOf = (kept: Kept): UnfinishedRun["status"] => {
  if (isClaimed(kept)) return "running"
  return kept.snapshot.status === "suspended" ? "suspended" : "interrupted"
}

/**
 * The runs of a workflow that have not ended: those that go on, that wait to be resumed, and that wait to be restarted, the
 * oldest first. Without a store, those of this process that wait.
 *
 * @since 0.1.0
 * @category storage
 */
export const list = (
  workflow: AnyWorkflow,
  { page = 0, perPage = 100 }: ListOptions = {}
): Effect.Effect<UnfinishedRunPage, StorageError> =>
  Effect.gen(function* () {
    const shelf = yield* shelfOf(workflow.body.graph)
    const { runs, total } = yield* shelf.list(page, perPage)
    return {
      runs: runs.map(kept => ({
        runId: kept.runId,
        status: statusOf(kept),
        suspended: suspendedSteps(new Map(Object.entries(kept.snapshot.steps)))
      })),
      total
    }
  })

/**
 * Deletes a run that waits, so that nobody goes on with it. Whether there was one. Fails with `WorkflowRunBusy` when it goes on:
 * abort it where it does.
 *
 * @since 0.1.0
 * @category storage
 */
export const remove = (
  workflow: AnyWorkflow,
  runId: string
): Effect.Effect<boolean, StorageError | WorkflowRunBusy> =>
  Effect.gen(function* () {
    const { graph } = workflow.body
    const shelf = yield* shelfOf(graph)
    const found = yield* shelf.get(runId)
    if (Option.isNone(found)) return false
    if (isClaimed(found.value)) {
      return yield* new WorkflowRunBusy({
        workflowId: graph.id,
        runId,
        message: `Run "${runId}" goes on, and is not deleted. Abort it where it does.`
      })
    }
    return yield* shelf.remove(runId, found.value.revision)
  })
