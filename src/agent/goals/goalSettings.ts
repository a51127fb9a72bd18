/** How answers are judged, as it is read. Throws `InvalidConfiguration`. */
import { InvalidConfiguration } from "../../protocol/Errors.js"
import { callback, checkOptions, type Kind, read, text, wrongValue } from "../../protocol/options.js"
import { maybeMilliseconds } from "../../tool/background.js"
import { modelsOf } from "../checkOptions.js"
import type { Models } from "../RunOptions.js"
import type { GoalOptions, Scorer } from "./GoalOptions.js"

/** What an agent says of its goals. */
export interface GoalSettings {
  readonly judge: Models | undefined
  readonly maxRuns: number
  readonly prompt: string | undefined
  readonly scorer: Scorer | undefined
  readonly timeoutMs: number | undefined
}

/** The judging of one run. */
export interface RunGoal {
  readonly settings: GoalSettings
  /** Steps that had finished when an answer was judged last: `maxSteps` counts from there. */
  judgedSteps: number
}

export const defaultMaxRuns = 50

const kinds = {
  judge: read,
  maxRuns: read,
  prompt: text,
  scorer: callback,
  timeout: read
} satisfies Record<keyof GoalOptions, Kind>

/** A number of evaluations. Throws `InvalidConfiguration`, which names `field`. */
export const maxRunsOf = (field: string, value: number): number => {
  if (Number.isSafeInteger(value) && value >= 1) return value
  throw wrongValue(field, value, "Give a whole number of at least 1, or leave it out.")
}

/** Reads a judge, and says of a wrong one where it stands. Throws `InvalidConfiguration`. */
export const asJudge = <A>(read: () => A): A => {
  try {
    return read()
  } catch (cause) {
    if (!(cause instanceof InvalidConfiguration)) throw cause
    const field = cause.field.replace(/^model/, "goal.judge")
    throw new InvalidConfiguration({
      field,
      message: cause.message.replace(`\`${cause.field}\``, `\`${field}\``)
    })
  }
}

/** What an agent says of its goals; its judge's calls are made again so often. */
export const goalOf = (options: GoalOptions, maxRetries: number): GoalSettings => {
  checkOptions("`goal`", options, { kinds }, "goal")
  const { judge, maxRuns, prompt, scorer, timeout } = options
  if (judge !== undefined) asJudge(() => modelsOf(judge, maxRetries))
  return {
    judge,
    maxRuns: maxRuns === undefined ? defaultMaxRuns : maxRunsOf("goal.maxRuns", maxRuns),
    prompt,
    scorer,
    timeoutMs: maybeMilliseconds("goal.timeout", timeout)
  }
}

/** The judging of a run; `undefined`: it has no thread, or nobody judges. */
export const runGoal = (
  settings: GoalSettings | undefined,
  thread: object | undefined,
  judgedSteps: number
): RunGoal | undefined =>
  thread === undefined || (settings?.judge === undefined && settings?.scorer === undefined)
    ? undefined
    : { settings, judgedSteps }
