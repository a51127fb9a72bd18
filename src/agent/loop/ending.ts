/** How steps and runs end: the chunks that say so. Pure. */
import type { Answer } from "../../model/Answer.js"
import type { Tripwire } from "../../output/FullOutput.js"
import type { Suspension } from "../../output/PendingCall.js"
import type { Chunk, Of } from "../../protocol/Chunk.js"
import { toUIMessage } from "../../protocol/Conversation.js"
import { settle } from "../../protocol/conversationPairs.js"
import type { RunAborted } from "../../protocol/Errors.js"
import type { FinishReason } from "../../protocol/FinishReason.js"
import type { Message } from "../../protocol/Message.js"
import * as Usage from "../../protocol/tokens.js"
import type { RunError } from "./defect.js"
import { nestedUsage, type Run } from "./run.js"

type StepResult = Of<"finish">["payload"]["stepResult"]

/** Why a run stops although its model wants to go on. */
export type StoppedBy = NonNullable<StepResult["stoppedBy"]>

/** The one cause that a run ends with. */
export type RunEnd =
  | { readonly _tag: "Success"; readonly result: StepResult; readonly answer: Answer | undefined }
  | { readonly _tag: "Failure"; readonly error: RunError; readonly answer: Answer | undefined }
  | {
      readonly _tag: "Aborted"
      readonly error: RunAborted
      readonly reason: unknown
      readonly answer: Answer | undefined
    }
  /** A processor stopped it. What the step said is in no value, and in no thread. */
  | { readonly _tag: "Tripwire"; readonly tripwire: Tripwire; readonly answer: Answer | undefined }
  /** It waits for somebody to decide about calls. */
  | {
      readonly _tag: "Suspended"
      readonly suspensions: ReadonlyArray<Suspension>
      readonly answer: Answer | undefined
    }

/**
 * The reason of a step, from what the answer holds. Calls that this side answers make it `tool-calls`, whatever the
 * provider says; a provider that says `tool-calls` and calls nothing has stopped.
 */
export const stepReason = (answer: Answer): FinishReason => {
  const reason = answer.finished?.reason ?? "other"
  if (reason === "length" || reason === "content-filter") return reason
  if (answer.calls.some(call => !call.isProviderExecuted)) return "tool-calls"
  return reason === "tool-calls" ? "stop" : reason
}

export const stepResult = (
  answer: Answer,
  isContinued: boolean,
  stoppedBy: StoppedBy | undefined
): StepResult => {
  const reason = stepReason(answer)
  const said = answer.finished?.reason
  // A provider that stops and calls tools all the same: its own word is kept.
  const rawReason = answer.finished?.rawReason ?? (said === reason ? undefined : said)
  return {
    reason,
    ...(rawReason === undefined ? {} : { rawReason }),
    isContinued,
    ...(answer.warnings.length === 0 ? {} : { warnings: answer.warnings }),
    ...(stoppedBy === undefined ? {} : { stoppedBy })
  }
}

/** Of a step: its model, and the agents that its tools have run. */
const usageOf = <R>(run: Run<R>, answer: Answer): Usage.Usage => Usage.combine(answer.usage, nestedUsage(run))

/** Of the steps that have finished, also of those before the run was suspended. */
const usageBefore = <R>({ fold, suspension }: Run<R>): Usage.Usage =>
  Usage.combine(suspension.earlier.usage, fold.usageSoFar)

/** The same, with an answer whose step has yet to finish. */
export const usageWith = <R>(run: Run<R>, answer: Answer): Usage.Usage =>
  Usage.combine(usageBefore(run), usageOf(run, answer))

const truncation = (isTruncated: boolean) => (isTruncated ? { isTruncated } : {})

const metadataOf = <R>(run: Run<R>) => ({ provider: run.model.provider, modelId: run.model.modelId })

type StepFinish = Of<"step-finish">["payload"]

/** `step-finish`: this step only, and the usage of the run so far. */
const finishOf = <R>(
  run: Run<R>,
  stepResult: StepResult,
  output: StepFinish["output"],
  more: Partial<StepFinish> = {}
): Of<"step-finish"> => ({
  type: "step-finish",
  runId: run.runId,
  from: "AGENT",
  payload: {
    messageId: run.messageId,
    stepResult,
    output,
    metadata: metadataOf(run),
    totalUsage: Usage.combine(usageBefore(run), output.usage),
    ...more
  }
})

/** Of a step in which a model has answered. */
export const stepFinish = <R>(run: Run<R>, answer: Answer, result: StepResult): Of<"step-finish"> => {
  const output = {
    text: answer.text,
    toolCalls: answer.calls.map(call => call.chunk.payload),
    usage: usageOf(run, answer),
    ...truncation(answer.isTruncated)
  }
  const { providerMetadata, response } = answer
  return finishOf(run, result, output, {
    response,
    ...(providerMetadata === undefined ? {} : { providerMetadata })
  })
}

/** Of the step in which a decision about a call was carried out: no model was asked. */
export const decidedStep = <R>(run: Run<R>, result: StepResult): Of<"step-finish"> =>
  finishOf(run, result, { text: "", toolCalls: [], usage: nestedUsage(run) })

/** Of a step that a processor rejected: what it used, and why. What it said is in nothing. */
export const rejectedFinish = <R>(
  run: Run<R>,
  answer: Answer,
  tripwire: Tripwire,
  isContinued: boolean
): Of<"step-finish"> =>
  finishOf(
    run,
    { reason: "tripwire", isContinued },
    { text: "", toolCalls: [], usage: usageOf(run, answer) },
    { metadata: { ...metadataOf(run), tripwire }, response: answer.response }
  )

/** What the provider called the error that it ended its answer with. */
const rawReasonOf = (answer: Answer | undefined): Pick<StepResult, "rawReason"> => {
  const { rawReason, reason } = answer?.finished ?? {}
  return reason === "error" && rawReason !== undefined ? { rawReason } : {}
}

const endResult = (end: RunEnd): StepResult => {
  switch (end._tag) {
    case "Success":
      return end.result
    case "Failure":
      return { reason: "error", ...rawReasonOf(end.answer), isContinued: false }
    case "Aborted":
      return { reason: "aborted", isContinued: false }
    case "Tripwire":
      return { reason: "tripwire", isContinued: false }
    case "Suspended":
      return { reason: "suspended", isContinued: false }
  }
}

const cause = <R>(run: Run<R>, end: RunEnd): ReadonlyArray<Chunk> => {
  const { runId } = run
  switch (end._tag) {
    case "Success":
      return []
    case "Failure":
      return [{ type: "error", runId, from: "AGENT", payload: { error: end.error } }]
    case "Aborted":
      return [
        {
          type: "abort",
          runId,
          from: "AGENT",
          payload: end.reason === undefined ? {} : { reason: end.reason }
        }
      ]
    case "Tripwire":
      return [{ type: "tripwire", runId, from: "AGENT", payload: end.tripwire }]
    case "Suspended":
      return end.suspensions
  }
}

const isUser = (message: Message): boolean => message.role === "user"

/**
 * The last chunks of a run: its cause when it did not end by itself, then `finish`. An answer that was cut off counts here
 * with what it said and used.
 */
export const runFinish = <R>(run: Run<R>, end: RunEnd): ReadonlyArray<Chunk> => {
  const said = run.fold.snapshot()
  const cutOff = end._tag === "Failure" || end._tag === "Aborted" ? end.answer : undefined
  // What a processor stopped was paid for all the same.
  const paid = end._tag === "Tripwire" ? end.answer : cutOff
  // Of a run that was cut off nobody tells the results that a provider still owes.
  const added = end._tag === "Success" ? run.added : settle(run.added)
  const metadata = end._tag === "Success" ? run.processors?.uiMetadata : undefined
  const before = run.input.filter(message => message.role !== "system")
  // Outcomes of calls that were made before the run was suspended belong to these.
  const all =
    run.suspension.leg === undefined || end._tag === "Success"
      ? [...before, ...added]
      : settle([...before, ...run.added])
  const used = Usage.combine(said.usage, Usage.combine(paid?.usage ?? Usage.empty, nestedUsage(run)))
  if (run.suspension.leg !== undefined) run.used = used
  const finish: Of<"finish"> = {
    type: "finish",
    runId: run.runId,
    from: "AGENT",
    payload: {
      stepResult: endResult(end),
      output: {
        usage: Usage.combine(run.suspension.earlier.usage, used),
        text: cutOff === undefined ? said.text : said.text + cutOff.text,
        ...truncation(said.isTruncated === true || cutOff?.isTruncated === true),
        ...(end._tag === "Success" ? run.structuring?.fields() : undefined)
      },
      metadata: metadataOf(run),
      messages: {
        all,
        user: all.filter(isUser),
        nonUser: all.filter(message => !isUser(message))
      },
      response: {
        ...(end.answer?.response ?? said.steps.at(-1)?.response ?? {}),
        messages: [...added],
        uiMessages: added.length === 0 ? [] : [{ ...toUIMessage(added, run.messageId), ...metadata }]
      }
    }
  }
  return [...cause(run, end), finish]
}

/** The last chunks of a run that failed, without its messages, text and usage. */
export const bareFinish = (runId: string, error: RunError): ReadonlyArray<Chunk> => [
  { type: "error", runId, from: "AGENT", payload: { error } },
  {
    type: "finish",
    runId,
    from: "AGENT",
    payload: {
      stepResult: { reason: "error", isContinued: false },
      output: { usage: Usage.empty, text: "" },
      metadata: {},
      messages: { all: [], user: [], nonUser: [] },
      response: { messages: [], uiMessages: [] }
    }
  }
]
