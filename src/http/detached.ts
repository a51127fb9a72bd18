/** The runs that go on while nobody reads them: each is bounded, and so is how many there are. */
import * as Effect from "effect/Effect"
import { Refusal } from "./refusal.js"
import type { ServerSettings } from "./settings.js"
import { Tally } from "./tally.js"

/** Why a run is stopped that was left when there were too many. */
export const tooManyDetached = "Its reader has left, and too many runs go on without one."

/** What is known of a run here. */
interface Run {
  readonly principalId: string | undefined
}

export class Detached {
  private readonly runs = new Set<Run>()
  private readonly tally: Tally

  constructor(settings: Pick<ServerSettings, "detachedPerPrincipal" | "detachedTotal">) {
    this.tally = new Tally({ total: settings.detachedTotal, each: settings.detachedPerPrincipal })
  }

  get size(): number {
    return this.runs.size
  }

  /** Refuses a run that may be left, while there is no place for it. */
  admit(principalId: string | undefined): Effect.Effect<void, Refusal> {
    const full = this.tally.full(principalId)
    if (full === undefined) return Effect.void
    const whose = full === "own" ? "of your runs" : "runs"
    return new Refusal({
      status: full === "own" ? 429 : 503,
      message: `Too many ${whose} go on without a reader. Read or stop some, or send "x-on-disconnect: abort".`,
      retryAfter: 5
    })
  }

  /** A run is left. Whether it may go on: those that came together may all have been admitted. */
  add(run: Run): boolean {
    if (this.runs.has(run)) return true
    if (this.tally.full(run.principalId) !== undefined) return false
    this.runs.add(run)
    this.tally.add(run.principalId)
    return true
  }

  /** A run is over, or has a reader again. */
  delete(run: Run): void {
    if (this.runs.delete(run)) this.tally.remove(run.principalId)
  }
}
