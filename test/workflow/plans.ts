/** Random workflows over one number, and what they come to: by the workflow itself, and by a plain reference interpreter. */
import { WorkflowStep as Step, Workflow } from "eddy"
import { Effect } from "effect"
import * as fc from "effect/FastCheck"
import { Count } from "./kit.js"

/** Something that makes a number of a number. */
export type Unit =
  | { readonly kind: "add"; readonly by: number }
  | { readonly kind: "inner"; readonly nodes: ReadonlyArray<Plan> }

/** One node. */
export type Plan =
  | { readonly kind: "one"; readonly unit: Unit }
  | { readonly kind: "parallel"; readonly units: ReadonlyArray<Unit> }
  | { readonly kind: "branch"; readonly units: ReadonlyArray<Unit> }
  | { readonly kind: "foreach"; readonly unit: Unit; readonly count: number; readonly concurrency: number }
  | { readonly kind: "until" | "while"; readonly by: number; readonly rounds: number }

const { plans } = fc.letrec<{ unit: Unit; plan: Plan; plans: ReadonlyArray<Plan> }>(tie => ({
  unit: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.record({ kind: fc.constant("add" as const), by: fc.integer({ min: 1, max: 9 }) }),
    fc.record({ kind: fc.constant("inner" as const), nodes: tie("plans") })
  ),
  plan: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.record({
      kind: fc.constantFrom("until" as const, "while" as const),
      by: fc.integer({ min: 1, max: 9 }),
      rounds: fc.integer({ min: 1, max: 3 })
    }),
    fc.record({ kind: fc.constant("one" as const), unit: tie("unit") }),
    fc.record({
      kind: fc.constantFrom("parallel" as const, "branch" as const),
      units: fc.array(tie("unit"), { minLength: 1, maxLength: 3 })
    }),
    fc.record({
      kind: fc.constant("foreach" as const),
      unit: tie("unit"),
      count: fc.integer({ min: 0, max: 3 }),
      concurrency: fc.integer({ min: 1, max: 3 })
    })
  ),
  plans: fc.array(tie("plan"), { minLength: 1, maxLength: 3 })
}))

export const anyPlan: fc.Arbitrary<ReadonlyArray<Plan>> = plans

const sum = (counts: Iterable<number>): number => [...counts].reduce((all, count) => all + count, 0)

const unitReference = (unit: Unit, value: number): number =>
  unit.kind === "add" ? value + unit.by : reference(unit.nodes, value)

const isChosen = (value: number, place: number): boolean => (value + place) % 2 === 0

/** What a plan comes to. */
export const reference = (nodes: ReadonlyArray<Plan>, start: number): number =>
  nodes.reduce((value, plan) => {
    switch (plan.kind) {
      case "one":
        return unitReference(plan.unit, value)
      case "parallel":
        return sum(plan.units.map(unit => unitReference(unit, value)))
      case "branch":
        return sum(
          plan.units.filter((_, place) => isChosen(value, place)).map(unit => unitReference(unit, value))
        )
      case "foreach":
        return sum(Array.from({ length: plan.count }, (_, place) => unitReference(plan.unit, value + place)))
      default:
        return value + plan.by * plan.rounds
    }
  }, start)

type Counting = Step.Step<string, { readonly count: number }, { readonly count: number }>

type Writing = Workflow.Draft<
  string,
  { readonly count: number },
  unknown,
  { readonly count: number },
  { [key: string]: never },
  never,
  never
>

const counted = (
  values: Record<string, { readonly count: number } | undefined>
): { readonly count: number } => ({
  count: sum(Object.values(values).map(one => one?.count ?? 0))
})

/** The workflow of a plan. Leaves have ids that begin with "leaf". */
export const workflowOf = (nodes: ReadonlyArray<Plan>, executed: (stepId: string) => void) => {
  let last = 0
  const leaf = (by: number): Counting =>
    Step.make(`leaf${++last}`, {
      input: Count,
      success: Count,
      execute: ({ count }, { stepId }) =>
        Effect.as(
          Effect.yieldNow(),
          (() => {
            executed(stepId)
            return { count: count + by }
          })()
        )
    })
  const unitOf = (unit: Unit): Counting =>
    unit.kind === "add" ? leaf(unit.by) : build(`inner${++last}`, unit.nodes)
  const build = (id: string, plan: ReadonlyArray<Plan>): Counting => {
    const begun = Workflow.make(id, { input: Count }) as unknown as Writing
    return plan.reduce(add, begun).commit()
  }
  const add = (draft: Writing, plan: Plan): Writing => {
    switch (plan.kind) {
      case "one":
        return draft.andThen(unitOf(plan.unit))
      case "parallel":
        return draft.parallel(plan.units.map(unitOf)).map(({ inputData }) => counted(inputData))
      case "branch":
        return draft
          .branch(
            plan.units.map(
              (unit, place) =>
                [
                  ({ inputData: { count } }: { inputData: { count: number } }) => isChosen(count, place),
                  unitOf(unit)
                ] as const
            )
          )
          .map(({ inputData }) => counted(inputData))
      case "foreach":
        return draft
          .map(({ inputData: { count } }) =>
            Array.from({ length: plan.count }, (_, place) => ({ count: count + place }))
          )
          .foreach(unitOf(plan.unit), { concurrency: plan.concurrency })
          .map(({ inputData }) => ({ count: sum(inputData.map(({ count }) => count)) }))
      case "until":
        return draft.dountil(leaf(plan.by), ({ iterationCount }) => iterationCount === plan.rounds)
      case "while":
        return draft.dowhile(leaf(plan.by), ({ iterationCount }) => iterationCount < plan.rounds)
    }
  }
  return build("plan", nodes) as Workflow.Workflow<
    string,
    { readonly count: number },
    { readonly count: number }
  >
}
