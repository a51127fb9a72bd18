/** Who carries out a decision has claimed its call, and renews its lease on the run as long as that takes. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { StorageError } from "../../protocol/Errors.js"
import { logWarning } from "../../protocol/logging.js"
import { change, notPending, type Store } from "./savedRuns.js"
import { claim, isClaimedBy, isSettled, release, type Snapshot } from "./snapshot.js"

/** A lease that was not renewed for so long has ended: others may decide about the call again. */
const leaseMs = 60_000

/** The claim of one owner on one call of a run. */
export interface Claim {
  readonly store: Store
  readonly runId: string
  readonly toolCallId: string
  readonly owner: string
}

const never = (): boolean => false

const leaseOf = ({ owner }: Claim) => ({ owner, duration: leaseMs })

/**
 * Claims a call of a run that was read before. Fails with `ToolCallNotPending` when another decision was faster, also when the run
 * is over by then. The run as it is then.
 */
export const claimCall = (call: Claim, before: Snapshot) => {
  const { owner, runId, store, toolCallId } = call
  return change(
    store,
    runId,
    (snapshot, holders) => {
      const claimed = claim(snapshot, toolCallId, owner, holders)
      return claimed === undefined
        ? Either.left(notPending(runId, toolCallId, snapshot, holders))
        : Either.right(claimed)
    },
    never,
    leaseOf(call)
  ).pipe(
    Effect.catchTag("RunNotFound", () =>
      Effect.fail(notPending(runId, toolCallId, { ...before, calls: [] }, []))
    )
  )
}

/** Gives a claim back: nothing was done. */
export const releaseCall = ({ owner, runId, store, toolCallId }: Claim) =>
  change(store, runId, snapshot => Either.right(release(snapshot, toolCallId, owner) ?? snapshot), isSettled)

export const claimLost = (toolCallId: string): StorageError =>
  new StorageError({
    operation: "RunStore.save",
    message: `The outcome of call "${toolCallId}" is not kept: the lease of this process was not renewed for ${leaseMs} ms, and another decision about the call was made. List the suspended runs for what waits now.`
  })

/** Renews the lease of a claim. Fails when the call is no longer this owner's. */
export const renewCall = (call: Claim) => {
  const { owner, runId, store, toolCallId } = call
  return change(
    store,
    runId,
    snapshot =>
      isClaimedBy(snapshot, toolCallId, owner) ? Either.right(snapshot) : Either.left(claimLost(toolCallId)),
    never,
    leaseOf(call)
  )
}

/** Renews the lease of a claim again and again, until it is interrupted. */
export const renewing = (call: Claim): Effect.Effect<void> =>
  Effect.sleep(leaseMs / 3).pipe(
    Effect.zipRight(renewCall(call)),
    Effect.catchAllCause(cause =>
      logWarning(`The claim on call ${call.toolCallId} of run ${call.runId} could not be renewed.`, cause)
    ),
    Effect.forever
  )
