/**
 * A workflow that is being written: node after node, until it is committed.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { callUser } from "../protocol/foreignValue.js"
import { toJson } from "../protocol/safeJson.js"
import type * as ToolSchema from "../tool/ToolSchema.js"
import { type Checked, checked, type Given } from "./checking.js"
import type {
  AnyStep,
  Arm,
  DataContext,
  ErrorOf,
  Graph,
  Node,
  NodeStep,
  OutputOf,
  Pace,
  RequirementsOf,
  RoundContext,
  Step,
  Verdict
} from "./definition.js"
import { stepsOf } from "./graph.js"
import { isStep, ofBody } from "./ofBody.js"

/** What the items of a list are; a list is what a `foreach` needs before it. @since 0.1.0 @category models */
export type ItemOf<Data> =
  Data extends ReadonlyArray<infer Item> ? Item : { readonly "foreach needs a list before it": never }

/** What steps beside each other give. @since 0.1.0 @category models */
export type Together<S extends AnyStep> = { readonly [One in S as One["id"]]: OutputOf<One> }

/** What a branch gives: of each step that was chosen. @since 0.1.0 @category models */
export type Chosen<S extends AnyStep> = { readonly [One in S as One["id"]]?: OutputOf<One> }

/** Nothing, when what the last step gives fits the output schema of the workflow. @since 0.1.0 @category models */
export type Fitting<Data, Wanted> = [Data] extends [Wanted]
  ? []
  : [{ readonly "the last step gives": Data; readonly "the workflow is to give": Wanted }]

/** A condition decides by what the step before gave. @since 0.1.0 @category models */
export type Condition<Data, Init> = (context: DataContext<Data, Init>) => Verdict

/** Decides after each round by what the step gave in it. @since 0.1.0 @category models */
export type RoundCondition<Data, Init> = (context: RoundContext<Data, Init>) => Verdict

/** @since 0.1.0 @category models */
export interface ForeachOptions {
  /** Items that are worked on at the same time. Default 1. */
  readonly concurrency?: number
}

/** @since 0.1.0 @category models */
export interface MapOptions {
  /** What it is called in chunks. Default: `map-` and a number. */
  readonly id?: string
}

/**
 * A workflow, which is a step: it takes `In` and gives `Out`, fails with `E`, and needs `R`. Made by `Workflow.make`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Workflow<out Id extends string, in In, out Out, out E = never, out R = never>
  extends Step<Id, In, Out, E, R> {
  readonly body: { readonly _tag: "Nested"; readonly graph: Graph<R> }
  /** The schema of its input: tells a model what to call it with. */
  readonly inputSource: ToolSchema.Source | undefined
}

/** Any workflow. @since 0.1.0 @category models */
export type AnyWorkflow = Workflow<string, never, unknown, unknown, unknown>

/** What a workflow is, but for its nodes. */
export interface Head {
  readonly id: string
  readonly description: string | undefined
  readonly input: Checked
  readonly inputSource: ToolSchema.Source | undefined
  readonly output: Checked
  readonly pace: Pace
}

const noStep = (field: string): InvalidConfiguration =>
  new InvalidConfiguration({
    field,
    message: `\`${field}\` is no step. Make it with Step.make or createStep. A workflow has no steps before it is committed: nobody can wait for it.`
  })

/**
 * A workflow that is being written. `Init` is what it was given, `Data` what its last node gives, `Success` its output schema. Every method gives a new draft.
 *
 * @since 0.1.0
 * @category models
 */
export class Draft<Id extends string, In, Init, Data, Success extends ToolSchema.Source, E, R> {
  /** Made by `Workflow.make`. */
  constructor(
    private readonly head: Head,
    private readonly nodes: ReadonlyArray<Node<R>>
  ) {}

  /** The next step takes what the one before gave. */
  andThen<Next, E2, R2>(
    step: Step<string, Data, Next, E2, R2>
  ): Draft<Id, In, Init, Next, Success, E | E2, R | R2> {
    return this.add({ _tag: "One", step: nodeStep(step) })
  }

  /** Steps at the same time, each with what the one before gave. They give an object: what each gave, by its id. */
  parallel<const Steps extends ReadonlyArray<Step<string, Data, unknown, unknown, unknown>>>(
    steps: Steps
  ): Draft<
    Id,
    In,
    Init,
    Together<Steps[number]>,
    Success,
    E | ErrorOf<Steps[number]>,
    R | RequirementsOf<Steps[number]>
  > {
    listed("parallel", steps)
    return this.add({
      _tag: "Parallel",
      steps: steps.map(step => nodeStep<RequirementsOf<Steps[number]>>(step))
    })
  }

  /** The steps whose condition holds, at the same time. They give an object: what each gave, by its id; the others are not there. */
  branch<
    const Arms extends ReadonlyArray<
      readonly [Condition<Data, Init>, Step<string, Data, unknown, unknown, unknown>]
    >
  >(
    arms: Arms
  ): Draft<
    Id,
    In,
    Init,
    Chosen<Arms[number][1]>,
    Success,
    E | ErrorOf<Arms[number][1]>,
    R | RequirementsOf<Arms[number][1]>
  > {
    listed("branch", arms)
    const place = `branch-${this.nodes.filter(({ _tag }) => _tag === "Branch").length + 1}`
    return this.add({
      _tag: "Branch",
      place,
      arms: arms.map(([when, step]): Arm<RequirementsOf<Arms[number][1]>> => {
        callable("branch", when)
        return { when, step: nodeStep<RequirementsOf<Arms[number][1]>>(step) }
      })
    })
  }

  /** The step for each item of the list that the one before gave. It gives the list of what it gave, in the same order. */
  foreach<Next, E2, R2>(
    step: Step<string, ItemOf<Data>, Next, E2, R2>,
    options: ForeachOptions = {}
  ): Draft<Id, In, Init, ReadonlyArray<Next>, Success, E | E2, R | R2> {
    const { concurrency = 1 } = options
    if (!Number.isInteger(concurrency) || concurrency < 1) {
      throw new InvalidConfiguration({
        field: "concurrency",
        message: `\`concurrency\` is ${String(concurrency)}. Give a whole number of at least 1.`
      })
    }
    return this.add({ _tag: "Foreach", step: nodeStep(step), concurrency })
  }

  /** The step again and again, with what it gave itself, until the condition holds; once at least. */
  dountil<Next, E2, R2>(
    step: Step<string, Data | NoInfer<Next>, Next, E2, R2>,
    when: RoundCondition<NoInfer<Next>, Init>
  ): Draft<Id, In, Init, Next, Success, E | E2, R | R2> {
    callable("dountil", when)
    return this.add({ _tag: "Repeat", step: nodeStep(step), goesOn: when, until: true })
  }

  /** The step again and again, with what it gave itself, as long as the condition holds; once at least. */
  dowhile<Next, E2, R2>(
    step: Step<string, Data | NoInfer<Next>, Next, E2, R2>,
    when: RoundCondition<NoInfer<Next>, Init>
  ): Draft<Id, In, Init, Next, Success, E | E2, R | R2> {
    callable("dowhile", when)
    return this.add({ _tag: "Repeat", step: nodeStep(step), goesOn: when, until: false })
  }

  /** A function of what the step before gave. It is a step: it is told of in chunks, and not called again when it is done. */
  map<Next, E2 = never, R2 = never>(
    change: (context: DataContext<Data, Init>) => Next | Effect.Effect<Next, E2, R2>,
    { id }: MapOptions = {}
  ): Draft<Id, In, Init, Next, Success, E | E2, R | R2> {
    callable("map", change)
    const maps = this.nodes.flatMap(stepsOf).filter(step => step.id.startsWith("map-")).length
    const mapping = ofBody<string, R2>(
      id ?? `map-${maps + 1}`,
      {},
      {
        _tag: "Leaf",
        resume: checked(undefined, "resume"),
        suspend: checked(undefined, "suspend"),
        execute: (input, context) =>
          Effect.map(
            // What the step before gave is what the types of the draft say.
            callUser(() =>
              change({ ...context, inputData: input as never, getInitData: context.getInitData as never })
            ),
            toJson
          )
      }
    )
    return this.add({ _tag: "One", step: mapping })
  }

  /** The workflow. What its last node gives must be what its output schema takes. */
  commit(..._: Fitting<Data, Given<Success>>): Workflow<Id, In, ToolSchema.Shown<Success, Data>, E, R> {
    const { description, id, input, inputSource, output, pace } = this.head
    const body = { _tag: "Nested", graph: { id, nodes: this.nodes, input, output, pace } } as const
    // The id is the one that the type has.
    return { ...ofBody(id as Id, { description }, body), body, inputSource }
  }

  private add<Next, E2, R2>(node: Node<R | R2>): Draft<Id, In, Init, Next, Success, E | E2, R | R2> {
    const known = new Set(this.nodes.flatMap(stepsOf).map(({ id }) => id))
    for (const { id } of stepsOf(node)) {
      if (known.has(id)) {
        throw new InvalidConfiguration({
          field: "id",
          message: `Workflow "${this.head.id}" has two steps "${id}". Give each an \`id\` of its own.`
        })
      }
      known.add(id)
    }
    return new Draft<Id, In, Init, Next, Success, E | E2, R | R2>(this.head, [...this.nodes, node])
  }
}

/** A step of a graph; JavaScript may give anything. Its types were compared by whoever adds it. */
const nodeStep = <R>(step: AnyStep): NodeStep<R> => {
  // What it needs is what the type of the draft says from now on.
  if (isStep(step)) return step as NodeStep<R>
  throw noStep("step")
}

const callable = (field: string, value: unknown): void => {
  if (typeof value === "function") return
  throw new InvalidConfiguration({ field, message: `\`${field}\` has no function to ask. Give one.` })
}

const listed = (field: string, value: ReadonlyArray<unknown>): void => {
  if (Array.isArray(value) && value.length > 0) return
  throw new InvalidConfiguration({ field, message: `\`${field}\` needs a list with one step at least.` })
}
