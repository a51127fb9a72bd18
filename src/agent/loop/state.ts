/** The states of a run. */
import type { Asked } from "./asking.js"
import type { Decision } from "./decision.js"
import type { RunEnd } from "./ending.js"
import type { Execution } from "./execution.js"
import type { StepPlan } from "./planning.js"
import type { Waiting } from "./waiting.js"

/** Where a run is. */
export type State<R> =
  | { readonly _tag: "Opening" }
  /** Another step begins. */
  | { readonly _tag: "Asking" }
  | { readonly _tag: "Answering"; readonly plan: StepPlan<R>; readonly asked: Asked }
  | { readonly _tag: "Executing"; readonly asked: Asked; readonly execution: Execution<R> }
  /** What somebody has decided about a call is carried out. */
  | { readonly _tag: "Deciding"; readonly decision: Decision<R> }
  | Waiting<State<R>>
  | { readonly _tag: "Ending"; readonly end: RunEnd }
  | { readonly _tag: "Ended"; readonly end: RunEnd }

/** Where every run begins. */
export const start: Extract<State<never>, { readonly _tag: "Opening" }> = { _tag: "Opening" }

/** Only a run that has asked somebody has something to wait for. */
export const mustWait = <R>(state: State<R>): boolean =>
  state._tag === "Answering" ||
  state._tag === "Executing" ||
  state._tag === "Deciding" ||
  state._tag === "Waiting"
