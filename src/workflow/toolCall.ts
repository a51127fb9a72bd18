/** A call of a workflow that is the tool of an agent: its run, begun or gone on with. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Caller } from "../agent/caller.js"
import { isCancellation } from "../background/cancellation.js"
import type { RunSuspended } from "../protocol/Errors.js"
import { isRecord } from "../protocol/safeJson.js"
import type { ToolContext } from "../tool/ToolContext.js"
import { restart, resume, shelfOf, start } from "./beginning.js"
import { WorkflowControl } from "./control.js"
import type { Workflow } from "./Draft.js"
import type { Graph } from "./definition.js"
import { drive } from "./executing.js"
import type { ResumeError, WorkflowError } from "./failures.js"
import { resultOf, type WorkflowResult } from "./result.js"
import { resumeDataOf } from "./resumedTool.js"

/** What one call has of a run: a call that is executed again goes on with it. */
const runIdOf = (graph: Graph<unknown>, context: ToolContext): string => {
  const { runId, suspendData, taskId, toolCallId } = context
  if (isRecord(suspendData) && suspendData["workflowId"] === graph.id) {
    const { runId: stored } = suspendData
    if (typeof stored === "string") return stored
  }
  return `${graph.id}-${taskId ?? `${runId}-${toolCallId}`}`
}

/** How long a run may be somebody else's that a process has left: as long as its claim holds. */
const patience = { pause: 1000, times: 16 }

/** The run of a call: the one that it has left behind, or a new one. */
const begin = Effect.fnUntraced(function* <R>(graph: Graph<R>, inputData: unknown, context: ToolContext) {
  const { requestContext, resumeData } = context
  const runId = runIdOf(graph, context)
  // A task that is executed again goes on with the run; one that is cancelled is not.
  const control = new WorkflowControl(reason => context.taskId !== undefined && !isCancellation(reason))
  const shelf = yield* shelfOf(graph)
  const kept = yield* shelf.get(runId)
  if (Option.isNone(kept)) {
    return yield* start(graph, { inputData, runId, requestContext }, control)
  }
  // Whoever was resumed before, and has died, has told the run with what.
  if (resumeData === undefined || kept.value.snapshot.status === "running") {
    return yield* restart(graph, { runId, requestContext }, control)
  }
  return yield* resume(graph, { runId, requestContext, ...resumeDataOf(resumeData) }, control)
})

/** The same, when its process has died a moment ago. */
const beginInTime = <R>(
  graph: Graph<R>,
  inputData: unknown,
  context: ToolContext,
  times = patience.times
): ReturnType<typeof begin<R>> =>
  Effect.catchTag(begin(graph, inputData, context), "WorkflowRunBusy", error =>
    times === 0
      ? Effect.fail(error)
      : Effect.zipRight(
          Effect.sleep(patience.pause),
          Effect.suspend(() => beginInTime(graph, inputData, context, times - 1))
        )
  )

/** What the call has waited for until now. */
const waitOf = ({ suspendData }: ToolContext): object => (isRecord(suspendData) ? suspendData : {})

const isWrongData = (error: { readonly _tag: string }): boolean =>
  error._tag === "InvalidStepResumeData" || error._tag === "StepNotSuspended"

/** What a call came to. One whose run waits is suspended, and lets it go on when it is resumed. */
const outcome = (
  result: WorkflowResult<unknown>,
  { suspend }: ToolContext
): Effect.Effect<unknown, unknown> => {
  switch (result.status) {
    case "success":
      return Effect.succeed(result.result)
    case "suspended":
      return suspend({ runId: result.runId, workflowId: result.workflowId, suspended: result.suspended })
    default:
      return Effect.fail(result.error)
  }
}

/** What a call of a workflow comes to. Its chunks are told to whoever called it. */
export const called = <Id extends string, In, Out, E, R>(
  { body, id }: Workflow<Id, In, Out, E, R>,
  input: unknown,
  context: ToolContext
): Effect.Effect<unknown, E | WorkflowError | ResumeError | RunSuspended, R> =>
  Effect.flatMap(Caller, caller =>
    Effect.matchEffect(beginInTime(body.graph, input, context), {
      // What it was resumed with changes nothing: it waits for something else.
      onFailure: error =>
        isWrongData(error)
          ? context.suspend({ ...waitOf(context), workflowId: id, error: error.message })
          : Effect.fail(error),
      onSuccess: begun =>
        Effect.flatMap(
          drive(begun, {
            write: chunks => {
              for (const chunk of chunks) caller.tell(chunk)
            },
            mayGoOn: resume => caller.mayGoOn(resume)
          }),
          // What steps fail with is what their types say.
          () => outcome(resultOf(begun.run), context) as Effect.Effect<unknown, E | WorkflowError>
        )
    })
  )
