/** Where goals stand in the loop: before the first answer, and behind each that may be the last. Free without one. */
import * as Effect from "effect/Effect"
import type { Answer } from "../../model/Answer.js"
import type { StorageError } from "../../protocol/Errors.js"
import { lazily } from "../../protocol/lazily.js"
import type { SystemMessage } from "../../protocol/Message.js"
import { stepReason } from "../loop/ending.js"
import { type Run, stepNumberOf } from "../loop/run.js"
import type { RunThread } from "../runThread.js"
import type { Judged } from "./judging.js"

/** Loaded when somebody has something to judge. */
const goals = lazily(() => import("./judging.js"))

/** Tells the model what the thread is to reach, if answers are judged by it. Fails when the store does. */
export const tellObjective = <R>(run: Run<R>, thread: RunThread): Effect.Effect<void, StorageError> => {
  if (run.goal === undefined) return Effect.void
  return Effect.flatMap(goals, ({ announce }) => announce(thread)).pipe(
    Effect.catchTag("ThreadNotFound", () => Effect.succeed(undefined)),
    Effect.map(message => tell(run, message, 0))
  )
}

const tell = <R>(run: Run<R>, message: SystemMessage | undefined, after: number): void => {
  if (message !== undefined) run.feedback.push({ message, after })
}

/** A judged answer, and what the model is told when it is to go on. */
interface Judgement extends Judged {
  readonly note: SystemMessage
}

/**
 * The judgement of the model's last word; it gives `undefined` when there is nothing to judge by. `undefined` when nobody
 * judges, or the answer was cut off and is none.
 */
export const judgementOf = <R>(
  run: Run<R>,
  answer: Answer
): Effect.Effect<Judgement | undefined, StorageError> | undefined => {
  const { goal, thread } = run
  const reason = stepReason(answer)
  if (goal === undefined || thread === undefined || (reason !== "stop" && reason !== "other"))
    return undefined
  return Effect.flatMap(goals, ({ feedback, judge }) =>
    Effect.map(judge(run, goal.settings, thread, answer), judged =>
      judged === undefined ? undefined : { ...judged, note: feedback(judged) }
    )
  )
}

/** Tells a judgement, and gives whether the run is to go on: its steps are counted anew then. */
export const tellJudgement = <R>(run: Run<R>, judgement: Judgement | undefined): boolean => {
  if (judgement === undefined) return false
  run.emit(judgement.chunk)
  if (run.goal === undefined || judgement.objective.status !== "active") return false
  run.goal.judgedSteps = stepNumberOf(run) + 1
  tell(run, judgement.note, run.added.length)
  return true
}
