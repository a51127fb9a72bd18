/**
 * What an agent works towards in a thread, and what may become of it. Each evaluation of a candidate answer uses one run of
 * its budget.
 *
 *     active ─▶ done                 an answer has passed
 *        │  ▲
 *        ▼  │ resumed, with budget left
 *      paused                        by somebody, by the budget, or because nobody could judge
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import { InvalidConfiguration } from "./Errors.js"

/** Whether answers are judged by it: only while it is `active`. @since 0.1.0 @category models */
export type ObjectiveStatus = "active" | "paused" | "done"

/** Every status. @since 0.1.0 @category constants */
export const statuses: ReadonlyArray<ObjectiveStatus> = ["active", "paused", "done"]

/** An objective, as it is stored with its thread. @since 0.1.0 @category models */
export interface Objective {
  /** What is to be reached, in words. */
  readonly objective: string
  readonly status: ObjectiveStatus
  /** Evaluations after which it is paused when none has passed. */
  readonly maxRuns: number
  /** Evaluations so far, whatever they came to. */
  readonly runsUsed: number
  /** What the last evaluation said, or why there was none. */
  readonly reason?: string
  /** When it was set. */
  readonly createdAt: Date
  /** When it was set, judged or changed last. */
  readonly updatedAt: Date
}

/** What one evaluation came to: an answer has passed, or not; or it could not be judged. @since 0.1.0 @category models */
export interface Evaluation {
  readonly outcome: "passed" | "rejected" | "failed"
  readonly reason?: string | undefined
}

/** What may be changed of an objective that is set. @since 0.1.0 @category models */
export interface ObjectiveOptions {
  /** Evaluations in all, those of before included. */
  readonly maxRuns?: number
  /** `paused`: answers are not judged. `active`: they are again, also by an objective that was done. */
  readonly status?: "active" | "paused"
}

/** An objective that begins. @since 0.1.0 @category constructors */
export const make = (objective: string, maxRuns: number, at: Date): Objective => ({
  objective,
  status: "active",
  maxRuns,
  runsUsed: 0,
  createdAt: at,
  updatedAt: at
})

/** Whether both are the same objective, at whatever moment: one that is set anew is another one. @since 0.1.0 @category guards */
export const isSame = (one: Objective, other: Objective): boolean =>
  one.objective === other.objective && one.createdAt.getTime() === other.createdAt.getTime()

/** Whether it was stopped by its budget. @since 0.1.0 @category guards */
export const isExhausted = ({ maxRuns, runsUsed, status }: Objective): boolean =>
  status === "paused" && runsUsed >= maxRuns

/** An active objective stays so only as long as an answer was rejected and budget is left. */
const statusAfter = (objective: Objective, { outcome }: Evaluation): ObjectiveStatus => {
  if (outcome === "passed") return "done"
  // Somebody has paused it, or another run has reached it, while this answer was judged.
  if (objective.status !== "active") return objective.status
  return outcome === "rejected" && objective.runsUsed + 1 < objective.maxRuns ? "active" : "paused"
}

/** The objective after an evaluation. @since 0.1.0 @category transitions */
export const judged = (objective: Objective, evaluation: Evaluation, at: Date): Objective => {
  const { reason: _, ...rest } = objective
  // What has made it done stays what it was done for.
  const reason =
    objective.status === "done" && evaluation.outcome !== "passed" ? objective.reason : evaluation.reason
  return {
    ...rest,
    status: statusAfter(objective, evaluation),
    runsUsed: objective.runsUsed + 1,
    ...(reason === undefined ? {} : { reason }),
    updatedAt: at
  }
}

/**
 * The objective with other options. Refuses to pause what is done, and to leave active, or make so, what has no budget left.
 *
 * @since 0.1.0
 * @category transitions
 */
export const changed = (
  objective: Objective,
  options: ObjectiveOptions,
  at: Date
): Either.Either<Objective, InvalidConfiguration> => {
  const maxRuns = options.maxRuns ?? objective.maxRuns
  const status = options.status ?? objective.status
  if (objective.status === "done" && status === "paused") {
    return Either.left(
      new InvalidConfiguration({
        field: "status",
        message:
          'The objective is done, and cannot be paused. Set another one, or give status "active" first.'
      })
    )
  }
  if (status === "active" && maxRuns <= objective.runsUsed) {
    return Either.left(
      new InvalidConfiguration({
        field: "maxRuns",
        message: `The objective has used ${objective.runsUsed} runs, and \`maxRuns\` is ${maxRuns}: it cannot be active. Give a \`maxRuns\` above ${objective.runsUsed}.`
      })
    )
  }
  return Either.right({ ...objective, maxRuns, status, updatedAt: at })
}
