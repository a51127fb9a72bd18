/** Calls that somebody has to decide about: whether they are, and what they wait for. */
import * as Effect from "effect/Effect"
import type { AnsweredCall } from "../../model/Answer.js"
import { jsonObject } from "../../output/PendingCall.js"
import { InvalidConfiguration, type InvalidToolArguments, ToolFailed } from "../../protocol/Errors.js"
import type { Message } from "../../protocol/Message.js"
import { toJson } from "../../protocol/safeJson.js"
import { asked } from "../../tool/approval.js"
import type { Tool } from "../../tool/Tool.js"
import { NestedWait } from "../suspension/nestedWait.js"
import type { WaitsFor } from "../suspension/snapshot.js"
import type { Run } from "./run.js"

/** What a call that waits for approval is decided with. */
const approvalSchema = {
  type: "object",
  properties: {
    approved: { type: "boolean", description: "Whether the call may be executed." },
    reason: { type: "string", description: "Why not, for the model." }
  },
  required: ["approved"],
  additionalProperties: false
} as const

export const forApproval: WaitsFor = { kind: "approval", resumeSchema: approvalSchema }

/** What a call waits for whose tool has suspended it. */
export const waitsFor = <R>(tool: Tool<string, R>, data: unknown): WaitsFor => {
  const schema = tool.resumeSchema?.()
  return {
    kind: "suspension",
    ...(data === undefined ? {} : { suspendData: toJson(data) }),
    ...(schema === undefined ? {} : { resumeSchema: jsonObject(schema) }),
    ...(data instanceof NestedWait ? { nested: data.calls } : {})
  }
}

/**
 * Whether somebody has to approve a call; `undefined`: nobody has, and nobody is asked. Fails when the arguments are wrong:
 * nobody approves what cannot be executed.
 */
export const approvalGate = <R>(
  { agentId, requestContext, resourceId, runId, settings, thread }: Run<R>,
  tool: Tool<string, R>,
  call: AnsweredCall,
  messages: ReadonlyArray<Message>
): Effect.Effect<boolean, InvalidToolArguments> | undefined => {
  const own = tool.requireApproval
  const policy = settings.requireToolApproval
  if (own === undefined && (policy === undefined || policy === false)) return undefined
  if (own === false) return undefined
  const { input } = call
  const { toolCallId, toolName } = call.chunk.payload
  if (own === true || (own === undefined && policy === true)) return Effect.as(tool.check(input), true)
  if (own !== undefined) {
    return own(input, {
      runId,
      agentId,
      toolCallId,
      toolName,
      threadId: thread?.id,
      resourceId,
      requestContext,
      messages
    })
  }
  if (typeof policy !== "function") return undefined
  const state = { toolName, toolCallId, args: call.chunk.payload.args ?? {}, requestContext }
  return Effect.zipRight(
    tool.check(input),
    asked(() => policy(state))
  )
}

/** There is no place where the run could wait. */
export const nowhere = (agentId: string, toolName: string): InvalidConfiguration =>
  new InvalidConfiguration({
    field: "storage",
    message: `A call of "${toolName}" is to wait for somebody, and agent "${agentId}" has nowhere to keep its run meanwhile. Give its container a store, for example new Eddy({ agents, storage: new InMemoryStore() }); with Effect provide RunStore.`
  })

/** Why a call that was left to the client is not told to it. */
export const beside = (toolName: string): ToolFailed =>
  new ToolFailed({
    toolName,
    message: `Tool "${toolName}" was not executed: the client executes it, and other calls of the same step waited for somebody. Call it again.`
  })
