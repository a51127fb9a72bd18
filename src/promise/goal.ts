/** How answers are judged, in the words of the core. */
import type { GoalOptions as CoreGoalOptions } from "../agent/goals/GoalOptions.js"
import { asJudge } from "../agent/goals/goalSettings.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import type { GoalOptions, GoalScorer } from "./AgentOptions.js"
import { maybeTime, optionsOf, said } from "./background.js"
import { fromPromise } from "./fromPromise.js"
import { toModels } from "./translate.js"

const toScorer = (scorer: GoalScorer | undefined): CoreGoalOptions["scorer"] => {
  if (scorer === undefined) return undefined
  if (typeof scorer !== "function") {
    throw new InvalidConfiguration({
      field: "goal.scorer",
      message: "`goal.scorer` is no function. Give one that judges an answer, or leave it out."
    })
  }
  const asked: CoreGoalOptions["scorer"] = candidate => fromPromise(() => scorer(candidate))
  // Its results are told under its name.
  return Object.defineProperty(asked, "name", { value: scorer.name })
}

/** Throws `InvalidConfiguration`. */
export const toGoal = (goal: GoalOptions): CoreGoalOptions => {
  const options = optionsOf("goal", goal, ["judge", "maxRuns", "prompt", "scorer", "timeoutMs"])
  const { judge } = options
  return said<CoreGoalOptions>({
    judge: judge === undefined ? undefined : asJudge(() => toModels(judge)),
    maxRuns: options.maxRuns,
    prompt: options.prompt,
    scorer: toScorer(options.scorer),
    timeout: maybeTime("goal.timeoutMs", options.timeoutMs)
  })
}
