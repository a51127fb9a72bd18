/** An agent as a tool of another one. */
import { inherited } from "../background/resolution.js"
import * as Tool from "../tool/Tool.js"
import type { Agent } from "./definition.js"
import { readNested, runNested } from "./nesting.js"
import type { RunOptions } from "./RunOptions.js"

/** How an agent is offered to another one. @since 0.1.0 @category models */
export interface SubAgentOptions {
  /** The name of the tool. Default: `agent-` and the agent's id, with hyphens for what a name may not have. */
  readonly name?: string
  /** Default: the agent's own, or its name. */
  readonly description?: string
  /** What its runs are told beside the prompt. Threads are the caller's affair: they have none. */
  readonly options?: Omit<
    RunOptions<[], undefined>,
    "tools" | "memory" | "resource" | "requestContext" | "abortSignal" | "runId" | "untilIdle"
  >
}

/** What the model writes to call an agent. */
const input = {
  type: "object",
  properties: {
    prompt: { type: "string", description: "What the agent is to do, with everything it has to know." }
  },
  required: ["prompt"],
  additionalProperties: false
} as const

const promptOf = (args: unknown): string =>
  typeof args === "object" && args !== null && "prompt" in args && typeof args.prompt === "string"
    ? args.prompt
    : ""

/**
 * An agent as a tool: the other agent's model calls it with a `prompt`, every chunk of its run comes as a `tool-output` of
 * the call, and its text is the result. Deeper agents come nested, one `tool-output` in another: `Nesting.unnest` takes them
 * apart. What it uses is counted into the step that called it. A run of it that fails is a `tool-error`; what stops the
 * caller stops it too. A run of it that waits for somebody lays the call aside, and is stored: its calls are told as calls that wait
 * of the run above, by the id of the call and their own, with `/` between, and whoever decides about one of them goes on with
 * both runs. Where a tool of it would run in the background, the whole call does, unless the caller says otherwise;
 * its own tools then run in it. It shares the caller's request context and resource, and knows nothing of its thread.
 *
 * Throws `InvalidConfiguration` when the name is none that providers take.
 *
 * @since 0.1.0
 * @category constructors
 */
export const asTool = <R>(agent: Agent<R>, settings: SubAgentOptions = {}): Tool.Tool<string, R> => {
  const { description, name, options } = settings
  const toolName = name ?? `agent-${agent.id.replace(/[^A-Za-z0-9_-]/g, "-")}`
  const tool = Tool.make(toolName, {
    description: description ?? agent.description ?? `Calls the agent ${agent.name}.`,
    input,
    execute: (args, { requestContext, resourceId, resumeData, suspend, suspendData }) =>
      runNested(
        agent,
        { name: toolName, prompt: promptOf(args), resumeData, suspendData, suspend, beginsAgain: false },
        { ...options, requestContext, ...(resourceId === undefined ? {} : { resource: resourceId }) }
      ),
    toModelOutput: ({ text }) => text
  })
  return {
    ...tool,
    readResumeData: readNested(toolName),
    background: inherited(
      agent.backgroundTasks,
      typeof agent.tools === "function" ? [] : agent.tools.values()
    ),
    aliases: [toolName.replace(/^agent-/, ""), agent.id]
  }
}
