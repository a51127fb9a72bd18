/** Runs that wait, as both faces list them, for a server. Pure. */
import type { SuspendedRun } from "../agent/Agent.js"
import type { HostSuspendedFilter, HostSuspendedRun } from "./Host.js"

/** What agents can look for themselves: a thread of a resource. */
export const suspendedIn = ({ resourceId, threadId }: HostSuspendedFilter) =>
  threadId === undefined || resourceId === undefined
    ? {}
    : { memory: { thread: threadId, resource: resourceId } }

const toHostRun = ({ agentId: _, calls, ...run }: SuspendedRun): HostSuspendedRun => ({
  ...run,
  toolCalls: calls.map(({ kind, suspendData, ...call }) => ({
    ...call,
    requiresApproval: kind === "approval",
    ...(suspendData === undefined ? {} : { suspendPayload: suspendData })
  }))
})

/** Those that a filter asks for. */
export const toHostRuns =
  ({ resourceId, runId, threadId }: HostSuspendedFilter) =>
  (runs: ReadonlyArray<SuspendedRun>): ReadonlyArray<HostSuspendedRun> =>
    runs
      .filter(
        run =>
          (runId === undefined || run.runId === runId) &&
          (threadId === undefined || run.threadId === threadId) &&
          (resourceId === undefined || run.resourceId === resourceId)
      )
      .map(toHostRun)
