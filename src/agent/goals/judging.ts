/** Judges a candidate answer by the objective of its thread, and keeps what comes of it there. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import type { Answer } from "../../model/Answer.js"
import type { Of } from "../../protocol/Chunk.js"
import type { StorageError } from "../../protocol/Errors.js"
import { callUser, squash } from "../../protocol/foreignValue.js"
import { logWarning } from "../../protocol/logging.js"
import * as Objective from "../../protocol/Objective.js"
import { messageOf } from "../../protocol/safeJson.js"
import type { Run } from "../loop/run.js"
import type { RunThread } from "../runThread.js"
import { isUnsettled } from "../tasks/unsettled.js"
import type { Candidate, Scorer, Verdict } from "./GoalOptions.js"
import type { GoalSettings } from "./goalSettings.js"
import { askJudge } from "./judge.js"
import { feedbackMessage, judgePrompt, objectiveMessage, scored } from "./verdict.js"

/** What one judge has said, as `goal` chunks tell it. */
interface Result {
  readonly scorerId: "scorer" | "judge"
  readonly scorerName: string
  readonly score: number
  readonly passed: boolean
  readonly reason?: string
  /** Milliseconds. */
  readonly duration: number
}

/** What an evaluation came to. */
interface Judgement extends Objective.Evaluation {
  readonly results: ReadonlyArray<Result>
  readonly isTimedOut: boolean
}

/** What is told of an evaluation, and the objective after it. */
export interface Judged {
  readonly chunk: Of<"goal">
  readonly objective: Objective.Objective
}

const keyOf = ({ id, resourceId }: RunThread) => ({ threadId: id, resourceId })

const asResult = (
  scorerId: Result["scorerId"],
  scorerName: string,
  { passed, reason, score = passed ? 1 : 0 }: Verdict,
  duration: number
): Result => ({
  scorerId,
  scorerName,
  score,
  passed,
  ...(reason === undefined ? {} : { reason }),
  duration
})

/** What a scorer says. It may take its time, throw, fail or die. */
const askScorer = Effect.fnUntraced(function* (scorer: Scorer, candidate: Candidate) {
  const given = yield* callUser(() => scorer(candidate))
  const verdict = scored(given)
  return verdict === undefined
    ? yield* Effect.fail("it gave no verdict. Give { passed }, true or false, or a score from 0 to 1.")
    : verdict
})

const failed = (reason: string, results: ReadonlyArray<Result>, isTimedOut: boolean): Judgement => ({
  outcome: "failed",
  reason,
  results,
  isTimedOut
})

/** Asks whoever judges, one after the other, as long as the answer passes. Fails with nothing. */
const evaluate = <R>(
  run: Run<R>,
  { judge, prompt, scorer, timeoutMs }: GoalSettings,
  candidate: Candidate
): Effect.Effect<Judgement> => {
  const results: Array<Result> = []
  const ask = <E>(id: Result["scorerId"], name: string, verdict: Effect.Effect<Verdict, E>) =>
    Effect.gen(function* () {
      const begun = yield* Clock.currentTimeMillis
      const said = yield* verdict
      results.push(asResult(id, name, said, (yield* Clock.currentTimeMillis) - begun))
      return said
    }).pipe(
      Effect.catchAllCause(cause => {
        if (Cause.isInterruptedOnly(cause)) return Effect.interrupt
        const message = `The ${id} of the goal failed: ${messageOf(squash(cause))}`
        return Effect.zipRight(logWarning(message, cause), Effect.fail(message))
      })
    )
  const asked = Effect.gen(function* () {
    let last: Verdict = { passed: false }
    if (scorer !== undefined)
      last = yield* ask("scorer", scorer.name || "scorer", askScorer(scorer, candidate))
    if (judge !== undefined && (scorer === undefined || last.passed)) {
      last = yield* ask("judge", "judge", askJudge(run, judge, judgePrompt(candidate, prompt)))
    }
    const judgement: Judgement = {
      outcome: last.passed ? "passed" : "rejected",
      reason: last.reason,
      results,
      isTimedOut: false
    }
    return judgement
  }).pipe(Effect.catchAll(message => Effect.succeed(failed(message, results, false))))
  if (timeoutMs === undefined) return asked
  const late = `The evaluation took longer than the ${timeoutMs} ms that the time limit of the goal allows.`
  return Effect.timeoutTo(asked, {
    duration: timeoutMs,
    onSuccess: judgement => judgement,
    onTimeout: () => failed(late, results, true)
  })
}

const candidateOf = <R>(
  run: Run<R>,
  { id, resourceId }: RunThread,
  { maxRuns, objective, runsUsed }: Objective.Objective,
  answer: Answer
): Candidate => ({
  objective,
  iteration: runsUsed + 1,
  maxRuns,
  text: answer.text,
  messages: [...run.input, ...run.added],
  threadId: id,
  resourceId,
  runId: run.runId,
  requestContext: run.requestContext
})

/** What stopped an objective that nobody gave a reason for. */
const withReason = (judgement: Judgement, { maxRuns, runsUsed }: Objective.Objective): Judgement =>
  judgement.outcome === "rejected" && judgement.reason === undefined && runsUsed + 1 >= maxRuns
    ? { ...judgement, reason: `None of ${maxRuns} answers has passed.` }
    : judgement

const goalChunk = <R>(
  run: Run<R>,
  objective: Objective.Objective,
  { isTimedOut, outcome, reason, results }: Judgement,
  duration: number
): Of<"goal"> => ({
  type: "goal",
  runId: run.runId,
  from: "AGENT",
  payload: {
    objective: objective.objective,
    iteration: objective.runsUsed,
    maxRuns: objective.maxRuns,
    passed: outcome === "passed",
    status: objective.status,
    results,
    ...(reason === undefined ? {} : { reason }),
    duration,
    timedOut: isTimedOut,
    maxRunsReached: Objective.isExhausted(objective),
    // Feedback is for this run, and is never stored.
    suppressFeedback: true
  }
})

const activeOf = Effect.fnUntraced(function* (thread: RunThread) {
  const present = yield* thread.store.objective(keyOf(thread))
  return Option.filter(present, ({ status }) => status === "active")
})

/** Whether tasks of the run have not settled. Those that were called before it was suspended only the store knows. */
const hasTasks = <R>(run: Run<R>): Effect.Effect<boolean, StorageError> => {
  const { runId, suspension, tasks } = run
  const isSo = tasks !== undefined && isUnsettled(run, tasks)
  if (isSo || tasks === undefined || suspension.leg === undefined) return Effect.succeed(isSo)
  return tasks.dispatcher.hasOpenTasks(runId)
}

/**
 * Judges the answer, and counts that in the thread, once, whoever else does so meanwhile; `undefined`: there is nothing to judge
 * by, or tasks of the run have not settled. An objective that is replaced while the answer is judged is judged in its turn.
 */
export const judge = Effect.fnUntraced(
  function* <R>(run: Run<R>, settings: GoalSettings, thread: RunThread, answer: Answer) {
    if (yield* hasTasks(run)) return undefined
    for (;;) {
      const active = yield* activeOf(thread)
      if (Option.isNone(active)) return undefined
      const begun = yield* Clock.currentTimeMillis
      const judgement = yield* evaluate(run, settings, candidateOf(run, thread, active.value, answer))
      const now = yield* Clock.currentTimeMillis
      let told = judgement
      const after = yield* thread.store.changeObjective<never>(keyOf(thread), present => {
        if (Option.isNone(present) || !Objective.isSame(present.value, active.value)) {
          return Either.right(present)
        }
        told = withReason(judgement, present.value)
        return Either.right(Option.some(Objective.judged(present.value, told, new Date(now))))
      })
      if (Option.isNone(after)) return undefined
      const objective = after.value
      if (!Objective.isSame(objective, active.value)) continue
      const judged: Judged = { chunk: goalChunk(run, objective, told, now - begun), objective }
      return judged
    }
  },
  // Whoever deletes a thread ends what was to be reached in it.
  Effect.catchTag("ThreadNotFound", () => Effect.succeed(undefined))
)

/** What the model is told of an objective before it answers first; `undefined`: there is none to reach. */
export const announce = Effect.fnUntraced(function* (thread: RunThread) {
  const active = yield* activeOf(thread)
  return Option.getOrUndefined(
    Option.map(active, ({ objective, reason }) => objectiveMessage(objective, reason))
  )
})

/** What the model is told when it is to go on. */
export const feedback = ({ chunk: { payload } }: Judged) => feedbackMessage(payload.objective, payload.reason)
