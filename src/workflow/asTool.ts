/** A workflow as a tool of an agent. */
import * as Effect from "effect/Effect"
import type { RunSuspended } from "../protocol/Errors.js"
import { lazily } from "../protocol/lazily.js"
import { type BackgroundOptions, backgroundOf } from "../tool/background.js"
import * as Tool from "../tool/Tool.js"
import type { ToolContext } from "../tool/ToolContext.js"
import type { Workflow } from "./Draft.js"
import type { ResumeError, WorkflowError } from "./failures.js"

/** Loaded when a model calls the first workflow. */
const calls = lazily(() => import("./toolCall.js"))
const resumed = lazily(() => import("./resumedTool.js"))

/** How a workflow is offered to an agent. @since 0.1.0 @category models */
export interface ToolOptions {
  /** The name of the tool. Default: `workflow-` and the workflow's id, with hyphens for what a name may not have. */
  readonly name?: string
  /** Default: the workflow's own. */
  readonly description?: string
  /** How it runs in the background, beside the conversation. Default: it does not. */
  readonly background?: BackgroundOptions
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
    Effect.flatMap(calls, ({ called }) => called(workflow, input, context))
  const tool = Tool.make(toolName, {
    description: description ?? workflow.description ?? `Runs the workflow ${workflow.id}.`,
    execute
  })
  return {
    ...withInput(tool, workflow, toolName, execute),
    readResumeData: (data, suspendData) =>
      Effect.flatMap(resumed, ({ readResumed }) => readResumed(graph, toolName)(data, suspendData)),
    background: background === undefined ? undefined : backgroundOf(background),
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
