/** Runs that wait, as both faces list them, for a server. Pure. */
import type { SuspendedFilter, SuspendedRun } from "../agent/Agent.js"
import type { HostSuspendedFilter, HostSuspendedRun } from "./Host.js"

/** The filter, as agents have it. */
export const suspendedIn = ({ resourceId, runId, threadId }: HostSuspendedFilter): SuspendedFilter => ({
  resource: resourceId,
  runId,
  threadId
})

/** A run as hosts show it. */
export const toHostRun = ({ agentId: _, calls, ...run }: SuspendedRun): HostSuspendedRun => ({
  ...run,
  toolCalls: calls.map(({ kind, suspendData, ...call }) => ({
    ...call,
    requiresApproval: kind === "approval",
    ...(suspendData === undefined ? {} : { suspendPayload: suspendData })
  }))
})
