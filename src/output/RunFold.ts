/**
 * What a run has said so far: a fold over its chunks, without effects or time.
 *
 * It is total: any sequence of chunks gives an answer, also a run that was cut off. Text of a step that has finished comes
 * from its `step-finish`, so that a step costs one string however many deltas it had; whoever needs no text before `finish`
 * need not push the deltas at all.
 *
 * @since 0.1.0
 */
import type { Chunk, Of, RequestInfo, ToolCall, ToolResult, Warning } from "../protocol/Chunk.js"
import { RunAborted, RunBlocked, RunSuspended } from "../protocol/Errors.js"
import type { FinishReason } from "../protocol/FinishReason.js"
import { isError } from "../protocol/foreignValue.js"
import { messageOf, type ProviderMetadata } from "../protocol/safeJson.js"
import * as Usage from "../protocol/tokens.js"
import type { FullOutput, Response, RunStatus, Step, Tripwire } from "./FullOutput.js"
import { type PendingCall, pendingCall } from "./PendingCall.js"
import { valueFields } from "./structured.js"

/** The part of a run since the last `step-finish`. */
interface OpenStep {
  text: string
  reasoning: string
  toolCalls: Array<ToolCall>
  toolResults: Array<ToolResult>
  toolErrors: Array<Of<"tool-error">>
  sources: Array<Of<"source">>
  files: Array<Of<"file">>
  warnings: ReadonlyArray<Warning>
  request: RequestInfo
  /** Whether `reasoning` is only the beginning. */
  isTruncated: boolean
}

const openStep = (): OpenStep => ({
  text: "",
  reasoning: "",
  toolCalls: [],
  toolResults: [],
  toolErrors: [],
  sources: [],
  files: [],
  warnings: [],
  request: {},
  isTruncated: false
})

const inCallOrder = <Outcome extends { readonly payload: { readonly toolCallId: string } }>(
  outcomes: ReadonlyArray<Outcome>,
  calls: ReadonlyArray<ToolCall>
): ReadonlyArray<Outcome> => {
  if (outcomes.length < 2) return outcomes
  const places = new Map(calls.map((call, place) => [call.payload.toolCallId, place]))
  const placeOf = (outcome: Outcome) => places.get(outcome.payload.toolCallId) ?? -1
  return outcomes.toSorted((left, right) => placeOf(left) - placeOf(right))
}

const statusOf = (reason: FinishReason): RunStatus => {
  switch (reason) {
    case "error":
      return "failed"
    case "aborted":
    case "tripwire":
    case "suspended":
      return reason
    default:
      return "success"
  }
}

const abortMessage = (reason: unknown): string =>
  reason === undefined ? "The run was aborted." : `The run was aborted: ${messageOf(reason)}`

/** The error of a run that was aborted for this reason. @since 0.1.0 @category constructors */
export const abortedBy = (reason: unknown): RunAborted =>
  new RunAborted({ message: abortMessage(reason), cause: reason })

/** The error of what a run should have given that a processor stopped. @since 0.1.0 @category constructors */
export const blockedBy = ({ processorId, reason }: Tripwire): RunBlocked =>
  new RunBlocked({
    reason,
    processorId,
    message: `The run was stopped by ${processorId === undefined ? "a processor" : `processor "${processorId}"`}: ${reason}`
  })

/** The error of what a run should have given that waits for a decision. @since 0.1.0 @category constructors */
export const suspendedBy = (runId: string): RunSuspended =>
  new RunSuspended({
    runId,
    message: `Run "${runId}" waits for a decision about its calls. Resume it with resumeStream, approveToolCall or declineToolCall.`
  })

/**
 * Whether a `step-finish` is of a step that a processor rejected: what it used counts, and what it said is in nothing.
 *
 * @since 0.1.0
 * @category guards
 */
export const isRejected = ({ stepResult }: Of<"step-finish">["payload"]): boolean =>
  stepResult.reason === "tripwire"

/** An `Error` for whatever stood in an `error` chunk. @since 0.1.0 @category conversions */
export const toError = (cause: unknown): Error => (isError(cause) ? cause : new Error(messageOf(cause)))

/** A fold in progress. @since 0.1.0 @category models */
export class RunFold {
  private step = openStep()
  private readonly steps: Array<Step> = []
  private usage: Usage.Usage = Usage.empty
  private finish: Of<"finish"> | undefined
  private providerMetadata: ProviderMetadata | undefined
  private messageId = ""
  private failure: Error | undefined
  private tripwire: Tripwire | undefined
  private readonly pending: Array<PendingCall> = []
  private isTruncated = false

  constructor(
    readonly runId: string,
    /** Characters of reasoning of a step that are kept. */
    private readonly textLimit: number
  ) {}

  private reason(text: string): void {
    const { step } = this
    const room = this.textLimit - step.reasoning.length
    step.reasoning += text.length <= room ? text : text.slice(0, room).toWellFormed()
    if (text.length > room) step.isTruncated = true
  }

  /** Takes the next chunk of the run. */
  push(chunk: Chunk): void {
    switch (chunk.type) {
      case "text-delta":
        this.step.text += chunk.payload.text
        break
      case "reasoning-delta":
        this.reason(chunk.payload.text)
        break
      case "tool-call":
        this.step.toolCalls.push(chunk)
        break
      case "tool-result":
        this.step.toolResults.push(chunk)
        break
      case "tool-error":
        this.step.toolErrors.push(chunk)
        break
      case "source":
        this.step.sources.push(chunk)
        break
      case "file":
        this.step.files.push(chunk)
        break
      case "start":
        this.messageId = chunk.payload.messageId ?? this.messageId
        break
      case "step-start":
        this.step = openStep()
        this.step.request = chunk.payload.request
        this.step.warnings = chunk.payload.warnings ?? []
        break
      case "step-finish":
        this.finishStep(chunk)
        break
      case "error":
        this.failure ??= toError(chunk.payload.error)
        break
      case "abort":
        this.failure ??= abortedBy(chunk.payload.reason)
        break
      case "tripwire":
        this.tripwire = chunk.payload
        // What a processor stopped was not said.
        this.step = openStep()
        break
      case "tool-call-approval":
      case "tool-call-suspended":
        this.pending.push(pendingCall(chunk))
        break
      case "finish":
        this.finish = chunk
        this.isTruncated ||= chunk.payload.output.isTruncated === true
        this.usage = Usage.replace(this.usage, chunk.payload.output.usage)
        break
      default:
        break
    }
  }

  private finishStep({ payload }: Of<"step-finish">): void {
    this.usage = Usage.combine(this.usage, payload.output.usage)
    if (isRejected(payload)) {
      this.step = openStep()
      return
    }
    this.steps.push(this.stepOf(payload))
    this.isTruncated ||= this.step.isTruncated || payload.output.isTruncated === true
    this.providerMetadata = payload.providerMetadata ?? this.providerMetadata
    this.step = openStep()
  }

  /** The step that would stand in `steps` if this were its `step-finish`. */
  stepOf(payload: Of<"step-finish">["payload"]): Step {
    const { isTruncated: _, toolCalls, toolErrors, toolResults, ...open } = this.step
    const { rawReason } = payload.stepResult
    return {
      ...open,
      stepNumber: this.steps.length,
      text: payload.output.text,
      toolCalls,
      toolResults: inCallOrder(toolResults, toolCalls),
      toolErrors: inCallOrder(toolErrors, toolCalls),
      finishReason: payload.stepResult.reason,
      ...(rawReason === undefined ? {} : { rawFinishReason: rawReason }),
      isContinued: payload.stepResult.isContinued,
      usage: payload.output.usage,
      response: payload.response ?? {},
      ...(payload.providerMetadata === undefined ? {} : { providerMetadata: payload.providerMetadata })
    }
  }

  /** The run's error, once an `error` or an `abort` chunk has passed. */
  get error(): Error | undefined {
    return this.failure
  }

  /** Where the run stands. */
  get status(): RunStatus {
    return this.finish === undefined ? "running" : statusOf(this.finish.payload.stepResult.reason)
  }

  /** Of the steps that have finished. */
  get usageSoFar(): Usage.Usage {
    return this.usage
  }

  /** Steps that have finished. */
  get finishedSteps(): ReadonlyArray<Step> {
    return this.steps
  }

  /** The tripwire, once its chunk has passed. */
  get tripped(): Tripwire | undefined {
    return this.tripwire
  }

  /** The calls that wait for a decision. */
  get pendingCalls(): ReadonlyArray<PendingCall> {
    return this.pending
  }

  /** What the first call that has any was suspended with. */
  get suspendData(): unknown {
    return this.pending.find(({ suspendData }) => suspendData !== undefined)?.suspendData
  }

  /** The id of the message that the run answers with; `""` before `start`. */
  get message(): string {
    return this.messageId
  }

  private across<Item>(pick: (step: Step | OpenStep) => ReadonlyArray<Item>): ReadonlyArray<Item> {
    return [...this.steps.flatMap(pick), ...pick(this.step)]
  }

  private join(pick: (step: Step | OpenStep) => string): string {
    return this.steps.map(pick).join("") + pick(this.step)
  }

  /** Of a step that was cut off only `finish` tells the text, when the deltas were not pushed. */
  private text(): string {
    const joined = this.join(step => step.text)
    const told = this.tripwire === undefined ? (this.finish?.payload.output.text ?? "") : ""
    return told.length > joined.length ? told : joined
  }

  private response(): Response {
    return this.finish?.payload.response ?? { messages: [], uiMessages: [] }
  }

  /** Everything said so far. Costs the size of the run: ask at its end. */
  snapshot(): FullOutput {
    const reasoning = this.join(step => step.reasoning)
    const current = this.steps.at(-1)
    return {
      runId: this.runId,
      messageId: this.messageId,
      status: this.status,
      text: this.text(),
      ...(reasoning === "" ? {} : { reasoning }),
      toolCalls: this.across(step => step.toolCalls),
      toolResults: this.across(step => inCallOrder(step.toolResults, step.toolCalls)),
      sources: this.across(step => step.sources),
      files: this.across(step => step.files),
      steps: [...this.steps],
      usage: this.usage,
      totalUsage: this.usage,
      ...(this.finish === undefined ? {} : { finishReason: this.finish.payload.stepResult.reason }),
      ...(this.finish === undefined ? {} : valueFields(this.finish.payload.output)),
      warnings: this.across(step => step.warnings),
      request:
        Object.keys(this.step.request).length > 0 || current === undefined
          ? this.step.request
          : current.request,
      response: this.response(),
      ...(this.providerMetadata === undefined ? {} : { providerMetadata: this.providerMetadata }),
      ...(this.isTruncated || this.step.isTruncated ? { isTruncated: true } : {}),
      ...(this.failure === undefined ? {} : { error: this.failure }),
      ...(this.tripwire === undefined ? {} : { tripwire: this.tripwire }),
      ...(this.pending.length === 0 ? {} : { pendingCalls: [...this.pending] }),
      ...(this.suspendData === undefined ? {} : { suspendData: this.suspendData })
    }
  }
}

/** A fold of no chunk yet. Of a step's reasoning it keeps `textLimit` characters, by default all. @since 0.1.0 @category constructors */
export const make = (runId: string, textLimit = Number.POSITIVE_INFINITY): RunFold =>
  new RunFold(runId, textLimit)
