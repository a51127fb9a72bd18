/** What a call that is an agent suspends with, when that agent's own run is suspended. */
import type { NestedCall } from "./snapshot.js"

export class NestedWait {
  constructor(
    /** The run below, and whose it is. */
    readonly runId: string,
    readonly agentId: string,
    /** What it waits for. */
    readonly calls: ReadonlyArray<NestedCall>
  ) {}
}
