/** Who carries out a decision has claimed its call, and says again and again that this takes longer. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { logWarning } from "../../protocol/logging.js"
import { change, notPending, type Store } from "./savedRuns.js"
import { claim, isSettled, release, renew, type Snapshot } from "./snapshot.js"

/** A claim that was not renewed for so long is none: its process is gone, and somebody may decide about the call again. */
export const leaseMs = 60_000

const never = (): boolean => false

/** Claims a call. Fails with `ToolCallNotPending` when somebody else was faster. */
export const claimCall = (store: Store, runId: string, toolCallId: string, owner: string) =>
  change(
    store,
    runId,
    (snapshot, now) => {
      const claimed = claim(snapshot, toolCallId, owner, now, now + leaseMs)
      return claimed === undefined
        ? Either.left(notPending(runId, toolCallId, snapshot, now))
        : Either.right(claimed)
    },
    never
  )

/** Gives a claim back: nothing was done. */
export const releaseCall = (store: Store, runId: string, toolCallId: string, owner: string) =>
  change(store, runId, snapshot => Either.right(release(snapshot, toolCallId, owner) ?? snapshot), isSettled)

const renewed = (store: Store, runId: string, toolCallId: string, owner: string) =>
  change<never>(
    store,
    runId,
    (snapshot: Snapshot, now) => Either.right(renew(snapshot, toolCallId, owner, now + leaseMs) ?? snapshot),
    never
  )

/** Says again and again that it takes longer, until it is interrupted. */
export const renewing = (
  store: Store,
  runId: string,
  toolCallId: string,
  owner: string
): Effect.Effect<void> =>
  Effect.sleep(leaseMs / 3).pipe(
    Effect.zipRight(renewed(store, runId, toolCallId, owner)),
    Effect.catchAllCause(cause =>
      logWarning(`The claim on call ${toolCallId} of run ${runId} could not be renewed.`, cause)
    ),
    Effect.forever
  )
