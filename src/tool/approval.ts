/** Whether somebody has to approve a call before it is executed: as it is given, and as it is asked. */

import * as Effect from "effect/Effect"
import type { InvalidToolArguments } from "../protocol/Errors.js"
import { callUser } from "../protocol/foreignValue.js"
import { logWarning } from "../protocol/logging.js"
import { wrongValue } from "../protocol/options.js"
import type { ToolContext } from "./ToolContext.js"

/** What a policy is told of the call. @since 0.1.0 @category models */
export type ApprovalContext = Pick<
  ToolContext,
  "runId" | "agentId" | "toolCallId" | "toolName" | "threadId" | "resourceId" | "requestContext" | "messages"
>

/** Says whether a call with these arguments has to be approved. @since 0.1.0 @category models */
export type ApprovalPolicy<Input> = (
  args: Input,
  context: ApprovalContext
) => boolean | Effect.Effect<boolean, unknown>

/** The same, asked with arguments as the model has written them. Wrong ones fail: nobody is asked about them. */
export type Approval =
  | boolean
  | ((args: unknown, context: ApprovalContext) => Effect.Effect<boolean, InvalidToolArguments>)

/** What a policy says; one that fails, throws or dies, or says neither, means that somebody is asked. */
export const asked = (policy: () => unknown): Effect.Effect<boolean> =>
  callUser<unknown, unknown>(policy).pipe(
    Effect.map(verdict => verdict !== false),
    Effect.catchAllCause(cause =>
      Effect.as(
        logWarning("A policy of approvals failed: the call waits for somebody to approve it.", cause),
        true
      )
    )
  )

/** Throws `InvalidConfiguration`. */
export const approvalOf = <Input>(
  given: boolean | ApprovalPolicy<Input> | undefined,
  read: (args: unknown) => Effect.Effect<Input, InvalidToolArguments>
): Approval | undefined => {
  if (given === undefined || typeof given === "boolean") return given
  if (typeof given !== "function") {
    throw wrongValue(
      "requireApproval",
      given,
      "Give true, false, or a function of the arguments that decides."
    )
  }
  return (args, context) => Effect.flatMap(read(args), input => asked(() => given(input, context)))
}
