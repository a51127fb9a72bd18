/** What steps and workflows are: data that runs are made from. */
import type * as Effect from "effect/Effect"
import type { JsonValue } from "../protocol/safeJson.js"
import type { DataPart, RequestContext } from "../tool/ToolContext.js"
import type { Checked } from "./checking.js"

/** @since 0.1.0 @category symbols */
export const TypeId: unique symbol = Symbol.for("eddy/Step")

/** @since 0.1.0 @category symbols */
export type TypeId = typeof TypeId

/** What a step does. */
export type Body<R> =
  | {
      readonly _tag: "Leaf"
      /** Checks the input, executes, checks the output. */
      readonly execute: (input: JsonValue, context: StepContext) => Effect.Effect<JsonValue, unknown, R>
      readonly resume: Checked
      readonly suspend: Checked
    }
  | { readonly _tag: "Nested"; readonly graph: Graph<R> }

/** How often an attempt that failed is made again, and after how long. */
export interface Pace {
  readonly retries: number
  readonly delayMs: number
}

/**
 * A step that takes `In` and gives `Out`, both as JSON. It fails with `E`, and needs `R`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Step<out Id extends string, in In, out Out, out E = never, out R = never> {
  readonly [TypeId]: {
    readonly _In: (input: In) => void
    readonly _Out: () => Out
    readonly _E: () => E
  }
  readonly id: Id
  readonly description: string | undefined
  /** `undefined`: as the workflow says. */
  readonly retries: number | undefined
  readonly retryDelayMs: number | undefined
  /** Milliseconds that an attempt may take; `undefined`: any time. */
  readonly timeout: number | undefined
  readonly body: Body<R>
}

/** Any step. @since 0.1.0 @category models */
export type AnyStep = Step<string, never, unknown, unknown, unknown>

/** What a step gives. @since 0.1.0 @category models */
export type OutputOf<S> = S extends Step<string, never, infer Out, unknown, unknown> ? Out : never

/** What a step fails with. @since 0.1.0 @category models */
export type ErrorOf<S> = S extends Step<string, never, unknown, infer E, unknown> ? E : never

/** What a step needs. @since 0.1.0 @category models */
export type RequirementsOf<S> = S extends Step<string, never, unknown, unknown, infer R> ? R : never

/** Asks for what other steps of the same workflow returned. @since 0.1.0 @category models */
export interface StepResults {
  /** By the step itself, or by its id; `undefined` when it has not returned. */
  <S extends AnyStep>(step: S): OutputOf<S> | undefined
  (stepId: string): unknown
}

/** What steps, conditions and functions of a workflow are told of the run. @since 0.1.0 @category models */
export interface RunContext {
  readonly runId: string
  readonly workflowId: string
  /** Values of this request. They are not stored: of a run that goes on, those that it goes on with. */
  readonly requestContext: RequestContext
  readonly getStepResult: StepResults
}

/** What a condition, or a function between two steps, decides by. @since 0.1.0 @category models */
export interface DataContext<out Data, out Init> extends RunContext {
  /** What the step before returned. */
  readonly inputData: Data
  /** What the workflow was given. */
  readonly getInitData: () => Init
}

/** What decides whether a step is repeated. @since 0.1.0 @category models */
export interface RoundContext<out Data, out Init> extends DataContext<Data, Init> {
  /** Rounds that are done, from 1. */
  readonly iterationCount: number
}

/** The context of one attempt of a step. @since 0.1.0 @category models */
export interface StepContext<out Resume = unknown, in Suspend = unknown> extends RunContext {
  /** As in chunks: with the ids of the workflows around it, when it belongs to one that is a step. */
  readonly stepId: string
  /** From 1. */
  readonly attempt: number
  /** What the workflow was given. */
  readonly getInitData: () => unknown
  /** What the step was resumed with, after it had suspended; `undefined` before. */
  readonly resumeData: Resume | undefined
  /** What it had suspended with. */
  readonly suspendData: unknown
  /**
   * Lays the step aside until somebody resumes it with {@link resumeData}: it is stored with `data`, and the run ends when
   * nothing else of it can go on. Does not come back: when it is resumed, the step is executed again from its start.
   */
  readonly suspend: (data?: Suspend) => Effect.Effect<never>
  /** Fires when the attempt is stopped: it took too long, another step failed, or the run was aborted. */
  readonly abortSignal: AbortSignal
  /** Puts a `step-output` chunk on the stream, and waits as long as readers hold the run. Nothing after the attempt's end. */
  readonly write: (output: unknown) => Effect.Effect<void>
  /** Puts a `data-*` chunk on the stream, likewise. */
  readonly writeData: (part: DataPart) => Effect.Effect<void>
}

/** A yes or no, at once or later. */
export type Verdict = boolean | Effect.Effect<boolean>

/** One arm of a branch. */
export interface Arm<out R> {
  readonly when: (context: DataContext<never, never>) => Verdict
  readonly step: NodeStep<R>
}

/** A step as the graph holds it: what it takes and gives was compared when it was added. */
export type NodeStep<R> = Step<string, never, unknown, unknown, R>

/** One place of a workflow. */
export type Node<R> =
  | { readonly _tag: "One"; readonly step: NodeStep<R> }
  | { readonly _tag: "Parallel"; readonly steps: ReadonlyArray<NodeStep<R>> }
  | { readonly _tag: "Branch"; readonly place: string; readonly arms: ReadonlyArray<Arm<R>> }
  | { readonly _tag: "Foreach"; readonly step: NodeStep<R>; readonly concurrency: number }
  | {
      readonly _tag: "Repeat"
      readonly step: NodeStep<R>
      readonly goesOn: (context: RoundContext<never, never>) => Verdict
      /** What the verdict of the user means. */
      readonly until: boolean
    }

/** A workflow that is committed. */
export interface Graph<out R> {
  readonly id: string
  readonly nodes: ReadonlyArray<Node<R>>
  readonly input: Checked
  readonly output: Checked
  /** Of steps that say nothing. */
  readonly pace: Pace
}
