/** A suspended run, and what decisions about its calls make of it. Pure: the store is asked elsewhere. */
import { jsonObject, type PendingCall, type Suspension } from "../../output/PendingCall.js"
import type { ToolResultPart } from "../../protocol/Message.js"
import * as Usage from "../../protocol/tokens.js"
import type { Snapshot as SnapshotSchema } from "./snapshotSchema.js"

export type Snapshot = typeof SnapshotSchema.Type
export type SavedCall = Snapshot["calls"][number]
export type KeptOptions = Snapshot["options"]
export type WaitingCall = Extract<SavedCall, { readonly status: "waiting" }>

/** The owners that have a lease on the run, as the store gave them with the snapshot. */
export type Holders = ReadonlyArray<string>

/** Whether no decision about the call is being carried out. A claim ends with the lease of its owner. */
const isFree = ({ claim }: WaitingCall, holders: Holders): boolean =>
  claim === undefined || !holders.includes(claim.owner)

/** The calls that wait for a decision. */
export const pendingCalls = ({ calls }: Snapshot, holders: Holders): ReadonlyArray<WaitingCall> =>
  calls.filter((call): call is WaitingCall => call.status === "waiting" && isFree(call, holders))

/** The calls that have no outcome, those about which a decision is being carried out included. */
export const waitingCalls = (snapshot: Snapshot): ReadonlyArray<WaitingCall> => pendingCalls(snapshot, [])

/** What separates the ids of the calls that lead to a call of a run below. */
const separator = "/"

/** The ids by which somebody may decide about a call: its own, or those of the calls below that it waits for. */
export const decidableIds = ({ nested, toolCallId }: WaitingCall): ReadonlyArray<string> =>
  nested === undefined ? [toolCallId] : nested.map(below => `${toolCallId}${separator}${below.toolCallId}`)

/** A call that somebody may decide about. */
export interface Found {
  readonly call: WaitingCall
  /** Of a call that waits for calls below: which of them. */
  readonly nestedId: string | undefined
}

const foundIn = (call: WaitingCall, id: string): Found | undefined => {
  const { nested, toolCallId } = call
  if (nested === undefined) return id === toolCallId ? { call, nestedId: undefined } : undefined
  const [only, ...others] = nested
  // There is nothing else that it could mean.
  if (id === toolCallId && only !== undefined && others.length === 0)
    return { call, nestedId: only.toolCallId }
  const below = nested.find(each => id === `${toolCallId}${separator}${each.toolCallId}`)
  return below === undefined ? undefined : { call, nestedId: below.toolCallId }
}

/** The call of this id that waits for a decision; without an id, the only one that does. */
export const find = (snapshot: Snapshot, id: string | undefined, holders: Holders): Found | undefined => {
  const pending = pendingCalls(snapshot, holders)
  if (id !== undefined) {
    for (const call of pending) {
      const found = foundIn(call, id)
      if (found !== undefined) return found
    }
    return undefined
  }
  const [call, ...others] = pending
  if (call === undefined || others.length > 0) return undefined
  const [only, ...more] = decidableIds(call)
  return only === undefined || more.length > 0 ? undefined : foundIn(call, only)
}

/** Whether a call of this id has no outcome in the run, also when its decision is being carried out. */
export const isOpen = ({ calls }: Snapshot, id: string): boolean =>
  calls.some(
    ({ status, toolCallId }) =>
      status === "waiting" && (toolCallId === id || id.startsWith(`${toolCallId}${separator}`))
  )

const withCall = (snapshot: Snapshot, id: string, change: (call: SavedCall) => SavedCall): Snapshot => ({
  ...snapshot,
  calls: snapshot.calls.map(call => (call.toolCallId === id ? change(call) : call))
})

/** The call that somebody who has claimed it still has; `undefined` when it is not theirs any more. */
const claimed = ({ calls }: Snapshot, id: string, owner: string): WaitingCall | undefined => {
  const call = calls.find(each => each.toolCallId === id)
  return call?.status === "waiting" && call.claim?.owner === owner ? call : undefined
}

/** A decision is carried out by this owner. `undefined` when the call does not wait for one. */
export const claim = (
  snapshot: Snapshot,
  id: string,
  owner: string,
  holders: Holders
): Snapshot | undefined =>
  pendingCalls(snapshot, holders).some(({ toolCallId }) => toolCallId === id)
    ? withCall(snapshot, id, call => ({ ...call, claim: { owner } }))
    : undefined

/** Whether the call is still this owner's. */
export const isClaimedBy = (snapshot: Snapshot, id: string, owner: string): boolean =>
  claimed(snapshot, id, owner) !== undefined

/** Nothing was done: the call waits as before. */
export const release = (snapshot: Snapshot, id: string, owner: string): Snapshot | undefined => {
  const call = claimed(snapshot, id, owner)
  if (call === undefined) return undefined
  const { claim: _, ...waiting } = call
  return withCall(snapshot, id, () => waiting)
}

/** What a call waits for that waits again. */
export type WaitsFor = Pick<WaitingCall, "kind" | "suspendData" | "resumeSchema" | "nested">

/** The call waits again, for something else. */
export const waitAgain = (
  snapshot: Snapshot,
  id: string,
  owner: string,
  waits: WaitsFor,
  used: Usage.Usage
): Snapshot | undefined => {
  const call = claimed(snapshot, id, owner)
  if (call === undefined) return undefined
  const { claim: _, kind: __, nested: ___, resumeSchema: ____, suspendData: _____, ...rest } = call
  return withCall({ ...snapshot, usage: Usage.combine(snapshot.usage, used) }, id, () => ({
    ...rest,
    ...waits
  }))
}

/** The call has its outcome. */
export const settle = (
  snapshot: Snapshot,
  id: string,
  owner: string,
  part: ToolResultPart,
  used: Usage.Usage
): Snapshot | undefined =>
  claimed(snapshot, id, owner) &&
  withCall({ ...snapshot, usage: Usage.combine(snapshot.usage, used) }, id, () => ({
    status: "settled",
    toolCallId: id,
    part
  }))

/** Whether nothing is waited for any more. */
export const isSettled = ({ calls }: Snapshot): boolean => calls.every(({ status }) => status === "settled")

/** What a call that was laid aside waits for, as it is told, one by one. */
export const waitsOf = (call: WaitingCall): ReadonlyArray<PendingCall> => {
  const { input, kind, nested, resumeSchema, suspendData, toolCallId, toolName } = call
  if (nested !== undefined) {
    return nested.map(below => ({ ...below, toolCallId: `${toolCallId}${separator}${below.toolCallId}` }))
  }
  return [
    {
      toolCallId,
      toolName,
      kind,
      args: jsonObject(input),
      ...(suspendData === undefined ? {} : { suspendData }),
      ...(resumeSchema === undefined ? {} : { resumeSchema })
    }
  ]
}

/** The chunk that tells of a call that waits. */
const suspensionChunk = (runId: string, waits: PendingCall): Suspension => {
  const { args, kind, resumeSchema, suspendData, toolCallId, toolName } = waits
  const payload = { toolCallId, toolName, args, ...(resumeSchema === undefined ? {} : { resumeSchema }) }
  return kind === "approval"
    ? { type: "tool-call-approval", runId, from: "AGENT", payload }
    : {
        type: "tool-call-suspended",
        runId,
        from: "AGENT",
        payload: { ...payload, ...(suspendData === undefined ? {} : { suspendData }) }
      }
}

/** The chunks that tell which calls wait for a decision. */
export const suspensionsOf = (
  snapshot: Snapshot,
  runId: string,
  holders: Holders
): ReadonlyArray<Suspension> =>
  pendingCalls(snapshot, holders)
    .flatMap(waitsOf)
    .map(waits => suspensionChunk(runId, waits))

/** What the conversation holds of a call that waits, until it has its outcome. */
export const waitingPart = (
  toolCallId: string,
  toolName: string,
  kind: WaitingCall["kind"]
): ToolResultPart => ({
  type: "tool-result",
  toolCallId,
  toolName,
  output: {
    type: "text",
    value:
      kind === "approval"
        ? "This call waits for somebody to approve it. It was not executed yet: do not make it again."
        : "This call waits for somebody to answer. It has no result yet: do not make it again."
  },
  providerOptions: { eddy: { waitsFor: kind } }
})

/** The outcomes of the last answer, in call order. */
export const outcomeParts = ({ calls }: Snapshot): ReadonlyArray<ToolResultPart> =>
  calls.map(call =>
    call.status === "settled" ? call.part : waitingPart(call.toolCallId, call.toolName, call.kind)
  )
