/** A run that is laid aside: what of it is stored, and what is told then. */
import * as Effect from "effect/Effect"
import type { Answer } from "../../model/Answer.js"
import type { Suspension } from "../../output/PendingCall.js"
import type { AgentError } from "../../protocol/Errors.js"
import { logWarning } from "../../protocol/logging.js"
import { create } from "../suspension/savedRuns.js"
import { type SavedCall, type Snapshot, suspensionsOf } from "../suspension/snapshot.js"
import { storeAdded } from "../thread.js"
import { usageWith } from "./ending.js"
import { notesOf } from "./planning.js"
import { forkToEnd, judgedStepsOf, type Run, stepNumberOf } from "./run.js"

/** The run, as it goes on. The outcomes of its last answer are with its calls. */
const snapshotOf = <R>(run: Run<R>, answer: Answer, calls: ReadonlyArray<SavedCall>): Snapshot => {
  const { added, caller, fold, input, suspension } = run
  const said = added.at(-1)?.role === "tool" ? added.slice(0, -1) : added
  const { earlier, options } = suspension
  const judgedSteps = judgedStepsOf(run)
  return {
    version: 1,
    ...(caller.call === undefined ? {} : { caller: caller.call }),
    messages: [...input, ...said],
    notes: notesOf(run).map(({ after, message }) => ({ message, after: after - said.length })),
    calls,
    usage: usageWith(run, answer),
    steps: stepNumberOf(run) + 1,
    ...(judgedSteps === 0 ? {} : { judgedSteps }),
    text: earlier.text + fold.finishedSteps.map(({ text }) => text).join("") + answer.text,
    options
  }
}

/** A store that does not answer holds up no run that is over. */
const patience = "5 seconds"

/** A run that is being laid aside. */
export class Suspending<R> {
  private isStored = false

  constructor(
    private readonly run: Run<R>,
    private readonly answer: Answer,
    private readonly calls: ReadonlyArray<SavedCall>
  ) {}

  /** Stores what was said, and the run. What waits, when both are stored; interrupted, nothing of the run is left. */
  get store(): Effect.Effect<ReadonlyArray<Suspension>, AgentError> {
    const { answer, calls, run } = this
    const { agentId, resourceId, runId, suspension, thread } = run
    const { store } = suspension
    const snapshot = snapshotOf(run, answer, calls)
    const place = {
      ...(thread === undefined ? {} : { threadId: thread.id }),
      ...(resourceId === undefined ? {} : { resourceId })
    }
    const stored = store === undefined ? Effect.void : create(store, { runId, agentId, ...place }, snapshot)
    const whole = Effect.onInterrupt(stored, () => this.removed)
    return Effect.gen(this, function* () {
      if (thread !== undefined) yield* storeAdded(run, thread)
      yield* whole
      this.isStored = true
      return suspensionsOf(snapshot, runId, [])
    })
  }

  /** The run was stopped meanwhile: nobody is to go on with it. */
  abandon(): void {
    if (this.isStored) forkToEnd(this.run, this.removed)
  }

  private get removed(): Effect.Effect<void> {
    const { runId, suspension } = this.run
    if (suspension.store === undefined) return Effect.void
    return suspension.store.delete(runId).pipe(
      Effect.disconnect,
      Effect.interruptible,
      Effect.timeout(patience),
      Effect.catchAllCause(cause =>
        logWarning(`Run ${runId} was stopped, and is still stored as one that waits.`, cause)
      ),
      Effect.asVoid
    )
  }
}
