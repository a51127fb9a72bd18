/** What somebody may decide about a call, in words of the caller, and what that comes to. Pure. */
import * as Either from "effect/Either"
import type { PendingCall } from "../../output/PendingCall.js"
import { InvalidResumeData } from "../../protocol/Errors.js"
import { isRecord } from "../../protocol/safeJson.js"
import type { Decided } from "./runSuspension.js"
import type { Found } from "./snapshot.js"

/** A decision, as it is asked for. */
export type Decision =
  | { readonly _tag: "Approve" }
  | { readonly _tag: "Decline"; readonly reason: string | undefined }
  | { readonly _tag: "Resume"; readonly data: unknown }

/** The same, as a task is resumed. */
export const answerOf = (decision: Decision): unknown => {
  switch (decision._tag) {
    case "Approve":
      return { approved: true }
    case "Decline":
      return { approved: false, ...(decision.reason === undefined ? {} : { reason: decision.reason }) }
    case "Resume":
      return decision.data
  }
}

const invalid = (toolName: string, what: string): InvalidResumeData =>
  new InvalidResumeData({ toolName, message: `Tool "${toolName}" cannot be resumed with this: ${what}` })

/** An answer to a call that waits for approval. */
const approvalIn = (data: unknown): Decided | undefined => {
  if (!isRecord(data) || typeof data["approved"] !== "boolean") return undefined
  const { approved, reason } = data
  if (approved) return { _tag: "Approved" }
  return { _tag: "Declined", reason: typeof reason === "string" ? reason : undefined }
}

/** What a decision says about a call below, as the call above it is resumed. */
const passedOn = (toolCallId: string, decision: Decision): unknown => {
  switch (decision._tag) {
    case "Approve":
      return { toolCallId, approved: true }
    case "Decline":
      return {
        toolCallId,
        approved: false,
        ...(decision.reason === undefined ? {} : { reason: decision.reason })
      }
    case "Resume":
      return { toolCallId, data: decision.data }
  }
}

/** What a decision comes to. */
export const decidedBy = (
  { call, nestedId }: Found,
  decision: Decision
): Either.Either<Decided, InvalidResumeData> => {
  if (nestedId !== undefined) return Either.right({ _tag: "Resumed", data: passedOn(nestedId, decision) })
  if (decision._tag === "Decline") return Either.right({ _tag: "Declined", reason: decision.reason })
  if (call.kind === "approval") {
    if (decision._tag === "Approve") return Either.right({ _tag: "Approved" })
    const decided = approvalIn(decision.data)
    return decided === undefined
      ? Either.left(
          invalid(
            call.toolName,
            "the call waits for approval. Give { approved: true }, or { approved: false, reason }."
          )
        )
      : Either.right(decided)
  }
  return Either.right({
    _tag: "Resumed",
    data: decision._tag === "Approve" ? { approved: true } : decision.data
  })
}

/** A decision about a call of an agent below. */
export interface NestedDecision {
  readonly toolCallId: string
  readonly decision: Decision
}

const named = (data: unknown, calls: ReadonlyArray<PendingCall>): NestedDecision | undefined => {
  if (!isRecord(data)) return undefined
  const { toolCallId, ...rest } = data
  if (typeof toolCallId !== "string" || !calls.some(call => call.toolCallId === toolCallId)) return undefined
  if ("data" in rest) return { toolCallId, decision: { _tag: "Resume", data: rest["data"] } }
  const approval = approvalIn(rest)
  if (approval?._tag === "Approved") return { toolCallId, decision: { _tag: "Approve" } }
  if (approval?._tag === "Declined")
    return { toolCallId, decision: { _tag: "Decline", reason: approval.reason } }
  return { toolCallId, decision: { _tag: "Resume", data: rest } }
}

/**
 * Which of the calls of an agent below a decision is about: the one that it names, `{ toolCallId, approved }` or
 * `{ toolCallId, data }`, or the only one there is.
 */
export const nestedDecision = (
  toolName: string,
  data: unknown,
  calls: ReadonlyArray<PendingCall>
): Either.Either<NestedDecision, InvalidResumeData> => {
  const found = named(data, calls)
  if (found !== undefined) return Either.right(found)
  const [only, ...others] = calls
  const ids = calls.map(({ toolCallId }) => toolCallId).join(", ")
  if (isRecord(data) && typeof data["toolCallId"] === "string") {
    // One that comes late is for no other call.
    return Either.left(
      invalid(toolName, `its call "${data["toolCallId"]}" does not wait. Calls that wait: ${ids}.`)
    )
  }
  if (only !== undefined && others.length === 0) {
    return Either.right({ toolCallId: only.toolCallId, decision: { _tag: "Resume", data } })
  }
  return Either.left(
    invalid(
      toolName,
      `several of its calls wait (${ids}). Say which: { toolCallId, approved } or { toolCallId, data }.`
    )
  )
}
