/** What a run has to do with being laid aside: before, while it is, and after. */
import type * as Effect from "effect/Effect"
import type { Message } from "../../protocol/Message.js"
import type * as Usage from "../../protocol/tokens.js"
import type { Tool } from "../../tool/Tool.js"
import type { Claim } from "./claiming.js"
import type { Store } from "./savedRuns.js"
import type { KeptOptions, Snapshot, WaitingCall } from "./snapshot.js"

/** What somebody has decided about one call. */
export type Decided =
  | { readonly _tag: "Approved" }
  | { readonly _tag: "Declined"; readonly reason: string | undefined }
  | { readonly _tag: "Resumed"; readonly data: unknown }

/** What a run goes on from that was suspended: one call of it was decided. */
export interface Leg<R> {
  /** The run as it is stored, at the time of the decision. */
  readonly snapshot: Snapshot
  /** The prompt that was answered with the call. */
  readonly prompt: ReadonlyArray<Message>
  readonly call: WaitingCall
  readonly decided: Decided
  /** Nothing is executed without: only a call that was declined needs none. */
  readonly tool: Tool<string, R> | undefined
  /** Of this process, on the call. */
  readonly claim: Claim
}

/** What came before this leg of a run. */
export interface Earlier {
  readonly usage: Usage.Usage
  /** Answers of a model that were told as steps, but for those that this leg tells. */
  readonly steps: number
  /** Of these, those up to the answer that was judged last. */
  readonly judgedSteps: number
  readonly text: string
}

/** Of a run. */
export interface RunSuspension<in out R> {
  /** Where suspended runs are kept; `undefined`: nowhere. */
  readonly store: Store | undefined
  /** Options that hold for what follows, whoever goes on with it. */
  readonly options: KeptOptions
  earlier: Earlier
  /** Of a run that goes on. Set before it begins. */
  leg: Leg<R> | undefined
  /** What is to be done when the run is left as it is: somebody has claimed a call, and nobody carries that out. */
  leave: (() => Effect.Effect<unknown>) | undefined
}

/** A run that is made ready again, as it was laid aside. */
export interface Resumption {
  readonly runId: string
  readonly snapshot: Snapshot
}

/** Nothing came before. */
export const atFirst: Earlier = { usage: {}, steps: 0, judgedSteps: 0, text: "" }
