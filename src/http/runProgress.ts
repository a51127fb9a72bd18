/** How far a run that is served has come, as its chunks say, and what the end of its stream means. Plain code. */

import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import type { Chunk } from "../protocol/Chunk.js"
import { squash } from "../protocol/foreignValue.js"
import { runFailed } from "./masking.js"
import type { End } from "./replayLog.js"

/** Reasons of a `finish` that say why a run did not end by itself. */
const earlyEnds: ReadonlySet<string> = new Set(["aborted", "error", "suspended", "tripwire"])

/** A stream has one turn, or several with waits between them (until idle), or tells of one task only. */
export class RunProgress {
  /** Whether a turn has started, and has not finished. */
  private isInTurn = false
  /** Whether the last turn has sent why it did not end by itself. */
  private isEarlyEndSent = false
  /** Whether the server waits for the next chunk. */
  private isWaiting = true
  /** Why the run was stopped while its stream was open between two turns. */
  private stoppedWaiting: string | undefined

  /** Chunks have come. */
  took(): void {
    this.isWaiting = false
  }

  /** Those that came are in the log, and there is room for more. */
  waits(): void {
    this.isWaiting = true
  }

  see(chunk: Chunk): void {
    if (chunk.type === "start") this.isInTurn = true
    if (chunk.type !== "finish") return
    this.isInTurn = false
    this.isEarlyEndSent = earlyEnds.has(chunk.payload.stepResult.reason)
  }

  /** The run is stopped. Inside of a turn it sends so itself; between two, its stream just ends. */
  stopped(reason: string): void {
    if (this.isWaiting && !this.isInTurn) this.stoppedWaiting ??= reason
  }

  /** What the end of the stream is to readers: one that comes before the end of the work is never like one that comes after it. */
  endOf(exit: Exit.Exit<unknown, unknown>, shuttingDown: string): End {
    if (Exit.isFailure(exit) && !(this.isEarlyEndSent && !this.isInTurn)) {
      const message = Cause.isInterruptedOnly(exit.cause) ? shuttingDown : runFailed(squash(exit.cause))
      return { _tag: "Broken", message }
    }
    if (this.isInTurn) return { _tag: "Broken", message: "The run ended before it had finished." }
    if (this.stoppedWaiting === undefined || this.isEarlyEndSent) return { _tag: "Told" }
    return { _tag: "Broken", message: this.stoppedWaiting }
  }
}
