/** A workflow as a tool of an agent. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Caller } from "../agent/caller.js"
import { isCancellation } from "../background/cancellation.js"
import type { RunSuspended } from "../protocol/Errors.js"
import { isRecord } from "../protocol/safeJson.js"
import type { BackgroundOptions } from "../tool/background.js"
import * as Tool from "../tool/Tool.js"
import type { ToolContext } from "../tool/ToolContext.js"
import { restart, resume, shelfOf, start } from "./beginning.js"
import type { Workflow } from "./Draft.js"
import type { Graph } from "./definition.js"
import { drive } from "./executing.js"
import type { ResumeError, WorkflowError } from "./failures.js"
import { resultOf, type WorkflowResult } from "./result.js"
import { readResumed, resumeDataOf } from "./resumedTool.js"
import { WorkflowControl } from "./run.js"

/** How a workflow is offered to an agent. @since 0.1.0 @category models */
export interface ToolOptions {
  /** The name of the tool. Default: `workflow-` and the workflow's id, with hyphens for what a name may not have. */
  readonly name?: string
  /** Default: the workflow's own. */
  readonly description?: string
  /** How it runs in the background, beside the conversation. Default: it does not. */
  readonly background?: BackgroundOptions
}

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

/** A workflow as a tool of an agent: see `Workflow.asTool`. @since 0.1.0 @category conversions */
export const asTool = <Id extends string, In, Out, E, R>(
  workflow: Workflow<Id, In, Out, E, R>,
  { background, description, name }: ToolOptions = {}
): Tool.Tool<string, R> => {
  const { graph } = workflow.body
  const toolName = name ?? `workflow-${workflow.id.replace(/[^A-Za-z0-9_-]/g, "-")}`
  const execute = (
    input: unknown,
    context: ToolContext
  ): Effect.Effect<unknown, E | WorkflowError | ResumeError | RunSuspended, R> =>
    Effect.flatMap(Caller, caller =>
      Effect.matchEffect(beginInTime(graph, input, context), {
        // What it was resumed with changes nothing: it waits for something else.
        onFailure: error =>
          isWrongData(error)
            ? context.suspend({ ...waitOf(context), workflowId: workflow.id, error: error.message })
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
  const tool = Tool.make(toolName, {
    description: description ?? workflow.description ?? `Runs the workflow ${workflow.id}.`,
    ...(background === undefined ? {} : { background }),
    execute
  })
  return {
    ...withInput(tool, workflow, toolName, execute),
    readResumeData: readResumed(graph, toolName),
    background: tool.background,
    aliases: [toolName.replace(/^workflow-/, ""), workflow.id]
  }
}

/** The arguments are what the workflow takes: it checks them itself, and not what became of them. */
const withInput = <R>(
  tool: Tool.Tool<string, R>,
  { inputSource }: { readonly inputSource: Workflow<string, never, unknown>["inputSource"] },
  name: string,
  call: NonNullable<Tool.Tool<string, R>["call"]>
): Tool.Tool<string, R> => {
  if (inputSource === undefined) return { ...tool, call }
  const { check, definition } = Tool.make(name, { input: inputSource })
  const { description } = tool.definition
  return {
    ...tool,
    definition: { ...definition, ...(description === undefined ? {} : { description }) },
    check,
    call: (args, context) => Effect.zipRight(check(args), call(args, context))
  }
}
