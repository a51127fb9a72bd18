/** An agent as a step. */
import * as Effect from "effect/Effect"
import { Caller } from "../agent/caller.js"
import type { Agent } from "../agent/definition.js"
import { drive } from "../agent/loop/driving.js"
import type { RunEnd } from "../agent/loop/ending.js"
import { type Run, RunControl } from "../agent/loop/run.js"
import { prepare } from "../agent/prepare.js"
import type { RunOptions } from "../agent/RunOptions.js"
import { blockedBy, suspendedBy } from "../output/RunFold.js"
import { type AgentError, RunAborted, type RunBlocked, type RunSuspended } from "../protocol/Errors.js"
import { isRecord } from "../protocol/safeJson.js"
import { checked } from "./checking.js"
import type { Step } from "./definition.js"
import { ofBody } from "./ofBody.js"
import { wrongInput } from "./wrong.js"

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
    "tools" | "memory" | "requestContext" | "abortSignal" | "runId" | "untilIdle"
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

/**
 * What the run came to. One that waits for a decision has nothing to give: its step fails with `RunSuspended`, which names the
 * run.
 */
const outcome = <R>(run: Run<R>, end: RunEnd): Effect.Effect<AgentStepOutput, AgentStepError> => {
  switch (end._tag) {
    case "Success":
      return Effect.succeed({ text: run.fold.snapshot().text })
    case "Failure":
      return Effect.fail(end.error)
    case "Aborted":
      return Effect.fail(new RunAborted({ message: end.error.message }))
    case "Tripwire":
      return Effect.fail(blockedBy(end.tripwire))
    case "Suspended":
      return Effect.fail(suspendedBy(run.runId))
  }
}

/** Runs an agent for the step that the fiber works for: its chunks are the step's output, its usage is the step's. */
const runAgent = <R>(
  agent: Agent<R>,
  prompt: string,
  options: RunOptions<[], undefined>
): Effect.Effect<AgentStepOutput, AgentStepError, R> =>
  Effect.flatMap(Caller, caller =>
    Effect.acquireUseRelease(
      prepare<R, [], undefined>(agent, prompt, options, new RunControl()),
      run =>
        Effect.flatMap(
          drive(run, {
            write: chunks => {
              for (const chunk of chunks) caller.tell(chunk)
            },
            mayGoOn: resume => caller.mayGoOn(resume)
          }),
          end => outcome(run, end)
        ),
      run => run.close()
    )
  )

/** An agent as a step: see `WorkflowStep.fromAgent`. @since 0.1.0 @category constructors */
export const agentStep = <R, const Id extends string = string>(
  agent: Agent<R>,
  { description = agent.description, id, options, retries }: AgentStepOptions<Id> = {}
): Step<Id, AgentStepInput, AgentStepOutput, AgentStepError, R> => {
  const unchecked = checked(undefined, "agent")
  return ofBody(
    (id ?? agent.id) as Id,
    { description, retries },
    {
      _tag: "Leaf",
      resume: unchecked,
      suspend: unchecked,
      execute: (input, context) => {
        const prompt = isRecord(input) ? input["prompt"] : undefined
        if (typeof prompt !== "string") {
          return Effect.fail(wrongInput(context, "An agent takes { prompt }, a string."))
        }
        const { requestContext } = context
        return Effect.map(runAgent(agent, prompt, { ...options, requestContext }), ({ text }) => ({ text }))
      }
    }
  )
}
