/** Carries a run through its graph. What has been done before is not done again. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { StepFailed } from "../protocol/Errors.js"
import { callUser } from "../protocol/foreignValue.js"
import { type JsonValue, messageOf } from "../protocol/safeJson.js"
import { execute, type Outcome } from "./attempt.js"
import type { Graph, Node, NodeStep, Verdict } from "./definition.js"
import { failureOf } from "./failures.js"
import { type Frame, frameOf } from "./frame.js"
import type { Keeper } from "./keeper.js"
import type { WorkflowRun } from "./run.js"
import { wrongInput, wrongResult } from "./wrong.js"

/** A run, and who keeps it. */
interface Going<in out R> {
  readonly run: WorkflowRun<R>
  readonly keeper: Keeper
}

type Result<R> = Effect.Effect<Outcome, unknown, R>

const suspended: Outcome = { _tag: "Suspended" }

const done = (value: JsonValue): Outcome => ({ _tag: "Done", value })

/** Runs the nodes of a workflow one after the other, and checks what comes out. */
const runGraph = Effect.fnUntraced(function* <R>(
  going: Going<R>,
  graph: Graph<R>,
  frame: Frame,
  stepId: string
): Effect.fn.Return<Outcome, unknown, R> {
  let value = frame.init
  for (const node of graph.nodes) {
    const outcome: Outcome = yield* runNode(going, node, frame, value)
    if (outcome._tag === "Suspended") return outcome
    value = outcome.value
  }
  return done(yield* Effect.mapError(graph.output.normalize(value), wrongResult(going.run.graph.id, stepId)))
})

const runNode = <R>(going: Going<R>, node: Node<R>, frame: Frame, input: JsonValue): Result<R> => {
  switch (node._tag) {
    case "One":
      return runStep(going, node.step, frame, input)
    case "Parallel":
      return together(going, node.steps, frame, input)
    case "Branch":
      return runBranch(going, node, frame, input)
    case "Foreach":
      return runForeach(going, node, frame, input)
    case "Repeat":
      return runRepeat(going, node, frame, input)
  }
}

/** Steps beside each other; what they give, by their ids. When one fails, the others are interrupted. */
const together = <R>(
  going: Going<R>,
  steps: ReadonlyArray<NodeStep<R>>,
  frame: Frame,
  input: JsonValue
): Result<R> =>
  Effect.map(
    Effect.forEach(
      steps,
      step => Effect.map(runStep(going, step, frame, input), outcome => [step.id, outcome] as const),
      { concurrency: "unbounded" }
    ),
    outcomes => {
      const values: Array<readonly [string, JsonValue]> = []
      for (const [id, outcome] of outcomes) {
        if (outcome._tag === "Suspended") return suspended
        values.push([id, outcome.value])
      }
      return done(Object.fromEntries(values))
    }
  )

/** What a function of the user decides. One that throws fails the run. */
const judge = (workflowId: string, what: string, ask: () => Verdict): Effect.Effect<boolean, StepFailed> =>
  callUser(ask).pipe(
    Effect.catchAllDefect(cause =>
      Effect.fail(
        new StepFailed({
          workflowId,
          stepId: what,
          message: `The condition of "${what}" failed: ${messageOf(cause)}`,
          cause
        })
      )
    )
  )

const runBranch = Effect.fnUntraced(function* <R>(
  going: Going<R>,
  { arms, place }: Extract<Node<R>, { readonly _tag: "Branch" }>,
  frame: Frame,
  input: JsonValue
): Effect.fn.Return<Outcome, unknown, R> {
  const { run } = going
  const key = frame.prefix + place
  let chosen = run.branches.get(key)
  if (chosen === undefined) {
    // What the step before gave is what the type of the condition says.
    const context = { ...frame.context, inputData: input as never, getInitData: () => frame.init as never }
    const taken = yield* Effect.filter(arms, ({ step, when }) =>
      judge(run.graph.id, frame.prefix + step.id, () => when(context))
    )
    chosen = taken.map(({ step }) => step.id)
    run.branches.set(key, chosen)
  }
  const ids = chosen
  const steps = arms.map(({ step }) => step).filter(({ id }) => ids.includes(id))
  return yield* together(going, steps, frame, input)
})

const runForeach = Effect.fnUntraced(function* <R>(
  going: Going<R>,
  { concurrency, step }: Extract<Node<R>, { readonly _tag: "Foreach" }>,
  frame: Frame,
  input: JsonValue
): Effect.fn.Return<Outcome, unknown, R> {
  const { run } = going
  const stepId = frame.prefix + step.id
  const items: ReadonlyArray<JsonValue> | undefined = Array.isArray(input) ? input : undefined
  const each = Effect.suspend(() => {
    if (items === undefined) {
      return Effect.fail(
        wrongInput({ workflowId: run.graph.id, stepId }, "Expected a list, one item for each round.")
      )
    }
    return Effect.forEach(items, (item, place) => runAt(going, step, frame, item, `${stepId}.${place}`), {
      concurrency
    })
  })
  return yield* bracket(
    going,
    stepId,
    input,
    undefined,
    Effect.map(each, outcomes => {
      const values: Array<JsonValue> = []
      for (const outcome of outcomes) {
        if (outcome._tag === "Suspended") return suspended
        values.push(outcome.value)
      }
      // Their outcome says what they came to.
      run.absorb(stepId)
      return done(values)
    })
  )
})

const runRepeat = Effect.fnUntraced(function* <R>(
  going: Going<R>,
  { goesOn, step, until }: Extract<Node<R>, { readonly _tag: "Repeat" }>,
  frame: Frame,
  input: JsonValue
): Effect.fn.Return<Outcome, unknown, R> {
  const { run } = going
  const stepId = frame.prefix + step.id
  let next = { input, iteration: 1 }
  for (;;) {
    const state = run.steps.get(stepId)
    if (state?.status === "success") {
      const { iteration = 1, output = null } = state
      if (run.repeated.has(stepId)) return done(output)
      const context = {
        ...frame.context,
        // As in a branch.
        inputData: output as never,
        getInitData: () => frame.init as never,
        iterationCount: iteration
      }
      const verdict = yield* judge(run.graph.id, stepId, () => goesOn(context))
      if (verdict === until) {
        run.repeated.add(stepId)
        return done(output)
      }
      next = { input: output, iteration: iteration + 1 }
    } else if (state !== undefined) {
      // In the middle of a round: it goes on there.
      next = { input: state.input, iteration: state.iteration ?? 1 }
    }
    const outcome = yield* runAt(going, step, frame, next.input, stepId, next.iteration)
    if (outcome._tag === "Suspended") return outcome
  }
})

const runStep = <R>(going: Going<R>, step: NodeStep<R>, frame: Frame, input: JsonValue): Result<R> =>
  runAt(going, step, frame, input, frame.prefix + step.id)

/** Runs a step under this id; in a round of a repetition also when it was done before. */
const runAt = <R>(
  going: Going<R>,
  step: NodeStep<R>,
  frame: Frame,
  input: JsonValue,
  stepId: string,
  iteration?: number
): Result<R> => {
  const { run } = going
  const { body } = step
  return bracket(
    going,
    stepId,
    input,
    iteration,
    Effect.suspend(() => {
      if (body._tag === "Leaf") return execute(run, frame, step, body, stepId, input)
      const { graph } = body
      return Effect.flatMap(
        Effect.mapError(graph.input.normalize(input), ({ message }) =>
          wrongInput({ workflowId: run.graph.id, stepId }, message)
        ),
        init => runGraph(going, graph, frameOf(run, graph, `${stepId}.`, init), stepId)
      )
    })
  )
}

/** A step from its `step-start` to its `step-finish`, unless it has been done, or waits. What it came to is stored first. */
const bracket = <R>(
  { keeper, run }: Going<R>,
  stepId: string,
  input: JsonValue,
  iteration: number | undefined,
  body: Result<R>
): Result<R> =>
  Effect.suspend(() => {
    const before = run.steps.get(stepId)
    const isSameRound = before?.iteration === iteration
    if (isSameRound && before?.status === "success") return Effect.succeed(done(before.output ?? null))
    if (before?.status === "suspended") return Effect.succeed(suspended)
    return Effect.zipRight(
      run.room,
      Effect.suspend(() => {
        run.begun(stepId, input, iteration)
        return body
      })
    ).pipe(
      Effect.tap(outcome => {
        const end =
          outcome._tag === "Done"
            ? ({ status: "success", output: outcome.value } as const)
            : ({
                status: "suspended",
                ...(outcome.data === undefined ? {} : { suspendData: outcome.data })
              } as const)
        run.endsWith(stepId, end)
        return Effect.map(keeper.done, () => run.told(stepId, end))
      }),
      Effect.map(outcome => (outcome._tag === "Done" ? outcome : suspended)),
      Effect.tapErrorCause(cause =>
        Effect.sync(() => {
          if (Cause.isInterruptedOnly(cause)) return
          run.told(stepId, { status: "failed", error: failureOf(cause, run.graph.id, stepId) })
        })
      ),
      Effect.onInterrupt(() => Effect.sync(() => run.told(stepId, { status: "aborted" })))
    )
  })

/** Carries a run to its end. */
export const interpret = <R>(run: WorkflowRun<R>, keeper: Keeper): Result<R> =>
  runGraph({ run, keeper }, run.graph, frameOf(run, run.graph, "", run.input), run.graph.id)
