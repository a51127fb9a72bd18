/** An agent as a step. */
import * as Effect from "effect/Effect"
import { Caller, type CallerInfo } from "../agent/caller.js"
import type { Agent } from "../agent/definition.js"
import { readNested, runNested } from "../agent/nesting.js"
import type { RunOptions } from "../agent/RunOptions.js"
import type { AgentError, RunBlocked, RunSuspended } from "../protocol/Errors.js"
import { isRecord } from "../protocol/safeJson.js"
import { InvalidValue } from "../tool/ToolSchema.js"
import { type Checked, checked } from "./checking.js"
import type { Step, StepContext } from "./definition.js"
import { ofBody } from "./ofBody.js"
import { wrongInput } from "./wrong.js"

const unchecked = checked(undefined, "agent")

/** How an agent is a step. @since 0.1.0 @category models */
export interface AgentStepOptions<Id extends string = string> {
  /** Default: the agent's. */
  readonly id?: Id
  /** Default: the agent's. */
  readonly description?: string
  /** How often it is run again after it has failed. Default: the workflow's, which is 0. */
  readonly retries?: number
  /** What its runs are told beside the prompt. They have no thread. */
  readonly options?: Omit<
    RunOptions<[], undefined>,
    "tools" | "memory" | "resource" | "requestContext" | "abortSignal" | "runId" | "untilIdle"
  >
}

/** What an agent needs to know to work. @since 0.1.0 @category models */
export interface AgentStepInput {
  readonly prompt: string
}

/** What an agent said. @since 0.1.0 @category models */
export interface AgentStepOutput {
  readonly text: string
}

/** What a step fails with that is an agent. @since 0.1.0 @category models */
export type AgentStepError = AgentError | RunBlocked | RunSuspended

/** What a step that waits is resumed with: what somebody has decided about a call of its agent. */
const decisionOf = (name: string): Checked => {
  const read = readNested(name)
  return {
    ...unchecked,
    decode: (data, suspendData) =>
      Effect.mapError(read(data, suspendData), ({ message }) => new InvalidValue({ message }))
  }
}

/** The step that an agent works for. A run of it that waits is decided by the step only. */
const callerOf = (caller: CallerInfo, { runId, stepId }: StepContext): CallerInfo => ({
  ...caller,
  call: { runId, toolCallId: stepId }
})

/** An agent as a step: see `WorkflowStep.fromAgent`. @since 0.1.0 @category constructors */
export const agentStep = <R, const Id extends string = string>(
  agent: Agent<R>,
  { description = agent.description, id, options, retries }: AgentStepOptions<Id> = {}
): Step<Id, AgentStepInput, AgentStepOutput, AgentStepError, R> => {
  const name = id ?? agent.id
  return ofBody(
    name as Id,
    { description, retries },
    {
      _tag: "Leaf",
      resume: decisionOf(name),
      suspend: unchecked,
      execute: (input, context) => {
        const prompt = isRecord(input) ? input["prompt"] : undefined
        if (typeof prompt !== "string") {
          return Effect.fail(wrongInput(context, "An agent takes { prompt }, a string."))
        }
        const { requestContext, resumeData, suspend, suspendData } = context
        return Effect.flatMap(Caller, caller =>
          runNested(
            agent,
            { name, prompt, resumeData, suspendData, suspend, beginsAgain: true },
            { ...options, requestContext }
          ).pipe(
            Effect.map(({ text }) => ({ text })),
            Effect.provideService(Caller, callerOf(caller, context))
          )
        )
      }
    }
  )
}
