/** Who a run works for: the tool call of another run, a step of a workflow, or nobody. */
import * as Context from "effect/Context"
import type { Usage } from "../protocol/tokens.js"
import type { ThreadTurn } from "../storage/ThreadStore.js"

/** What a run needs to know of the tool call that started it. */
export interface CallerInfo {
  /** The call itself, or the step that is the agent; `undefined` for nobody. */
  readonly call: { readonly runId: string; readonly toolCallId: string } | undefined
  /** Runs above this one. */
  readonly depth: number
  /** How many there may be. */
  readonly maxDepth: number
  /** The turns of the runs that the call is of, in their threads: who works for them does not wait for them. */
  readonly turns: ReadonlyArray<ThreadTurn>
  /** Fires when the call is stopped, before its fiber hears of it; `undefined` for nobody. */
  readonly signal: () => AbortSignal | undefined
  /** What the run has used so far counts into the step of the caller, whenever that is told. */
  readonly counts: (used: () => Usage) => void
  /** Tells something on the stream of the caller, as `tool-output`. Does nothing after the call has ended. */
  readonly tell: (output: unknown) => void
  /** Whether the readers of the caller want more; when not, `resume` is called once, as soon as they do. */
  readonly mayGoOn: (resume: () => void) => boolean
}

/** A run that serves no call. */
const nobody: CallerInfo = {
  call: undefined,
  depth: 0,
  maxDepth: Number.POSITIVE_INFINITY,
  turns: [],
  signal: () => undefined,
  counts: () => undefined,
  tell: () => undefined,
  mayGoOn: () => true
}

/** The call that the current fiber works for. A run that an agent starts in a tool finds its caller here. */
export class Caller extends Context.Reference<Caller>()("eddy/Caller", {
  defaultValue: (): CallerInfo => nobody
}) {}
