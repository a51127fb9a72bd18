/** Keeps one run on its shelf while it goes on: what has been done is stored before it is told, and nobody else goes on with it. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type StorageError, WorkflowRunLost } from "../protocol/Errors.js"
import type { Shelf } from "./shelf.js"
import type { Snapshot } from "./state.js"

/** A lease that was not renewed for so long has ended: others may go on with the run. */
const leaseMs = 15_000

/** What a run is, but for its claim and status. */
export type Contents = Omit<Snapshot, "version" | "status" | "claim">

const snapshotOf = (contents: Contents, status: Snapshot["status"]): Snapshot => ({
  version: 1,
  status,
  ...contents
})

/** Saves a run that this owner goes on with, and renews the owner's lease on it. The new revision, as `Shelf.save` gives it. */
export const saveRunning = (
  shelf: Shelf,
  runId: string,
  owner: string,
  contents: Contents,
  expected: number | undefined
): ReturnType<Shelf["save"]> =>
  shelf.save(runId, { ...snapshotOf(contents, "running"), claim: { owner } }, expected, {
    owner,
    duration: leaseMs
  })

/** One run, kept by the one who goes on with it. */
export class Keeper {
  /** Changes that somebody has asked to be saved, and those that are. */
  private asked = 0
  private saved = 0
  private readonly lock = Effect.unsafeMakeSemaphore(1)
  private isLost = false
  /** Whether it waits, or is over: then nothing more is stored of it. */
  private isSettled = false

  constructor(
    readonly shelf: Shelf,
    private readonly workflowId: string,
    private readonly runId: string,
    private readonly owner: string,
    /** Of the run as it is kept; `undefined`: it is not. */
    private revision: number | undefined,
    private readonly contents: () => Contents
  ) {}

  /** Saves what has been done. One write saves whatever has come together while another one went on. */
  get done(): Effect.Effect<void, StorageError | WorkflowRunLost> {
    if (!this.shelf.isDurable) return Effect.void
    return Effect.suspend(() => {
      const wanted = ++this.asked
      return this.alone(Effect.suspend(() => (this.saved >= wanted ? Effect.void : this.write("running"))))
    })
  }

  /** Saves that it waits for somebody, and lets go of it. */
  get waits(): Effect.Effect<void, StorageError | WorkflowRunLost> {
    return this.alone(
      Effect.map(this.write("suspended"), () => {
        this.isSettled = true
      })
    )
  }

  /** Lets go of a run that has not ended: whoever comes next goes on with it. */
  get released(): Effect.Effect<void, StorageError | WorkflowRunLost> {
    return this.alone(
      Effect.suspend(() =>
        this.isLost || this.isSettled || this.revision === undefined ? Effect.void : this.write("released")
      )
    )
  }

  /** The run has ended: nothing of it is kept. */
  get over(): Effect.Effect<void, StorageError> {
    return this.alone(
      Effect.suspend(() => {
        const { revision } = this
        this.revision = undefined
        return revision === undefined || this.isLost
          ? Effect.void
          : Effect.asVoid(this.shelf.remove(this.runId, revision))
      })
    )
  }

  /** Says again and again that it goes on. Ends only when it cannot. */
  get heartbeat(): Effect.Effect<never, StorageError | WorkflowRunLost> {
    if (!this.shelf.isDurable) return Effect.never
    return Effect.forever(Effect.zipRight(Effect.sleep(leaseMs / 3), this.done))
  }

  /** A write that was begun is waited for: it says which revision the run has. */
  private alone<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return this.lock.withPermits(1)(Effect.uninterruptible(effect))
  }

  private write(
    as: "running" | "suspended" | "released"
  ): Effect.Effect<void, StorageError | WorkflowRunLost> {
    return Effect.gen(this, function* () {
      const covered = this.asked
      const contents = this.contents()
      const revision = yield* as === "running"
        ? saveRunning(this.shelf, this.runId, this.owner, contents, this.revision)
        : this.shelf.save(
            this.runId,
            snapshotOf(contents, as === "suspended" ? as : "running"),
            this.revision
          )
      if (Option.isNone(revision)) {
        this.isLost = true
        return yield* new WorkflowRunLost({
          workflowId: this.workflowId,
          runId: this.runId,
          message: `Run "${this.runId}" does not belong to this process any more: another one has taken it over, or it was deleted. Follow it there.`
        })
      }
      this.revision = revision.value
      this.saved = covered
    })
  }
}
