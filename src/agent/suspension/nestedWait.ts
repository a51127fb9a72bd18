/** What a call that is an agent suspends with, when that agent's own run is suspended. */
import type { PendingCall } from "../../output/PendingCall.js"

export class NestedWait {
  /** Why a decision changed nothing. Not there otherwise: this is stored. */
  declare readonly error?: string

  constructor(
    /** The run below, and whose it is. */
    readonly runId: string,
    readonly agentId: string,
    /** What it waits for. */
    readonly calls: ReadonlyArray<PendingCall>,
    error?: string
  ) {
    if (error !== undefined) this.error = error
  }
}
