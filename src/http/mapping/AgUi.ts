/**
 * Chunks as events of AG-UI 1.0: what `HttpAgent` of `@ag-ui/client` reads.
 *
 * A response is one run of AG-UI, however many turns it has, with the ids of the request. Background tasks are activities with
 * the id of the task, calls that wait for a decision are interrupts of the last event.
 *
 * @since 0.1.0
 */
import type { Chunk, Of } from "../../protocol/Chunk.js"
import * as Usage from "../../protocol/tokens.js"
import { AgUiCalls } from "./agUiCalls.js"
import type { AgUiEvent, Interrupt } from "./agUiEvents.js"
import { AgUiTasks, customOf } from "./agUiTasks.js"
import { decisionId } from "./decisionId.js"
import { Frames } from "./Frames.js"
import { brokenOff, type ErrorText, type Mapper, type MapperOptions, maskedError } from "./Mapper.js"
import { Names } from "./names.js"
import { isTaskChunk } from "./taskChanges.js"
import { fileUrl, isData } from "./uiParts.js"

export type { AgUiEvent } from "./agUiEvents.js"

/** @since 0.1.0 @category models */
export interface Options extends MapperOptions {
  /** Of the request: the client wants to read it again. */
  readonly threadId: string
  /** Of the request. The runs of the agent have ids of their own. */
  readonly runId: string
  /** Calls that the client has in its conversation without a result: see `AgUiRequest.openToolCallIds`. Default: none. */
  readonly openToolCallIds?: ReadonlyArray<string>
}

type BlockKind = "text" | "reasoning"

interface Block {
  readonly kind: BlockKind
  readonly messageId: string
}

type Ending =
  | { readonly type: "success" | "cancelled" }
  | { readonly type: "failed"; readonly error: unknown }

class AgUi extends Frames<AgUiEvent> {
  private isStarted = false
  private isRunOpen = false
  private ending: Ending = { type: "success" }
  private stepName: string | undefined
  private steps = 0
  /** The message that the calls of this step belong to. */
  private parentId: string | undefined
  private usage: Usage.Usage = Usage.empty
  private isLeftToClient = false
  private readonly interrupts = new Map<string, Interrupt>()
  private readonly blocks = new Map<string, Block>()
  private readonly names = new Names()
  private readonly errorText: ErrorText
  private readonly calls: AgUiCalls
  private readonly tasks: AgUiTasks

  constructor(private readonly options: Options) {
    super()
    this.errorText = options.errorText ?? maskedError
    const send = (event: AgUiEvent): void => this.send(event)
    this.calls = new AgUiCalls(send, this.errorText, options.openToolCallIds ?? [])
    this.tasks = new AgUiTasks(send, this.errorText)
  }

  protected conclude(failure: unknown): void {
    const isBroken = failure !== undefined || this.isRunOpen || !this.isStarted
    if (isBroken && this.ending.type !== "failed") {
      this.ending = { type: "failed", error: failure ?? brokenOff }
    }
    this.start()
    this.closeStep()
    this.send(this.last())
  }

  private start(): void {
    if (this.isStarted) return
    this.isStarted = true
    const { runId, threadId } = this.options
    this.send({ type: "RUN_STARTED", threadId, runId })
  }

  private last(): AgUiEvent {
    const { runId, threadId } = this.options
    // Which model an agent has is the host's business: numbers only.
    const usage = Object.keys(this.usage).length === 0 ? {} : { usage: [this.usage] }
    if (this.ending.type === "failed") {
      return { type: "RUN_ERROR", message: this.errorText(this.ending.error), ...usage }
    }
    const finished = { type: "RUN_FINISHED" as const, threadId, runId, ...usage }
    if (this.interrupts.size > 0) {
      return { ...finished, outcome: { type: "interrupt", interrupts: [...this.interrupts.values()] } }
    }
    if (this.ending.type === "cancelled") return { ...finished, outcome: { type: "cancelled" } }
    const pending = this.isLeftToClient ? this.calls.pending() : []
    return {
      ...finished,
      outcome: { type: "success", ...(pending.length === 0 ? {} : { pendingToolCallIds: pending }) }
    }
  }

  protected take(chunk: Chunk) {
    this.start()
    if (isTaskChunk(chunk)) return this.tasks.take(chunk)
    switch (chunk.type) {
      case "background-task-output":
        return this.tasks.taskOutput(chunk)
      case "background-task-progress":
        return this.send({ type: "CUSTOM", name: chunk.type, value: chunk.payload })
      case "finish":
        return this.finish(chunk)
      default:
        if (isData(chunk)) return this.send(customOf(chunk))
        this.isRunOpen = true
        return this.inRun(chunk)
    }
  }

  private inRun(chunk: Chunk) {
    switch (chunk.type) {
      case "step-start":
        this.closeStep()
        this.stepName = `step-${++this.steps}`
        return this.send({ type: "STEP_STARTED", stepName: this.stepName })
      case "step-finish":
        return this.closeStep()
      case "text-start":
      case "reasoning-start":
        this.open(kindOf(chunk), chunk)
        return
      case "text-delta":
      case "reasoning-delta":
        return this.delta(kindOf(chunk), chunk)
      case "text-end":
      case "reasoning-end":
        return this.close(keyOf(kindOf(chunk), chunk))
      case "tool-call-input-streaming-start":
        return this.calls.inputStart(chunk, this.parent(chunk))
      case "tool-call-delta":
        return this.calls.inputDelta(chunk)
      case "tool-call": {
        const { args, output, toolCallId, toolName } = chunk.payload
        this.calls.call(toolCallId, toolName, args, this.parent(chunk))
        if (output === undefined) return
        return this.calls.outcome(
          { ...chunk, type: "tool-result", payload: { toolCallId, toolName, result: output } },
          this.parent(chunk)
        )
      }
      case "tool-result":
      case "tool-error":
      case "tool-output-denied":
        return this.calls.outcome(chunk, this.parent(chunk))
      case "tool-output":
        return this.tasks.output(chunk, this.calls.idOf(chunk.payload.toolCallId))
      case "tool-call-approval":
      case "tool-call-suspended":
        return this.interrupt(chunk)
      case "source":
        return this.send({ type: "CUSTOM", name: "source", value: sourceOf(chunk) })
      case "file": {
        const value = { url: fileUrl(chunk.payload), mediaType: chunk.payload.mimeType }
        return this.send({ type: "CUSTOM", name: "file", value })
      }
      case "goal": {
        const { iteration, maxRuns, passed, reason, status } = chunk.payload
        const value = { iteration, maxRuns, passed, status, ...(reason === undefined ? {} : { reason }) }
        return this.send({ type: "CUSTOM", name: "goal", value })
      }
      case "tripwire": {
        const { processorId, reason } = chunk.payload
        this.ending = { type: "cancelled" }
        const value = { reason, ...(processorId === undefined ? {} : { processorId }) }
        return this.send({ type: "CUSTOM", name: "tripwire", value })
      }
      case "abort":
        this.ending = { type: "cancelled" }
        return
      case "error":
        // Nothing may follow a RUN_ERROR, so it is held to the end.
        this.ending = { type: "failed", error: chunk.payload.error }
        return this.closeStep()
      default:
        return
    }
  }

  /** A message of its own for each block: of two blocks at one time each has its text. */
  private open(kind: BlockKind, chunk: Of<`${BlockKind}-${"start" | "delta"}`>): Block {
    const key = keyOf(kind, chunk)
    const known = this.blocks.get(key)
    if (known !== undefined) return known
    const block = { kind, messageId: this.names.claim(`${chunk.runId}:${chunk.payload.id}`) }
    this.blocks.set(key, block)
    const { messageId } = block
    if (kind === "text") {
      this.parentId ??= messageId
      this.send({ type: "TEXT_MESSAGE_START", messageId, role: "assistant" })
    } else {
      this.send({ type: "REASONING_START", messageId })
      this.send({ type: "REASONING_MESSAGE_START", messageId, role: "reasoning" })
    }
    return block
  }

  private delta(kind: BlockKind, chunk: Of<`${BlockKind}-delta`>): void {
    const { messageId } = this.open(kind, chunk)
    const delta = chunk.payload.text
    if (delta === "") return
    const type = kind === "text" ? "TEXT_MESSAGE_CONTENT" : "REASONING_MESSAGE_CONTENT"
    this.send({ type, messageId, delta })
  }

  private close(key: string) {
    const block = this.blocks.get(key)
    if (block === undefined) return
    this.blocks.delete(key)
    const { kind, messageId } = block
    if (kind === "text") return this.send({ type: "TEXT_MESSAGE_END", messageId })
    this.send({ type: "REASONING_MESSAGE_END", messageId })
    this.send({ type: "REASONING_END", messageId })
  }

  /** What was said in a step and called in it is one message, as providers want it back. */
  private parent({ runId }: Chunk): string {
    this.parentId ??= this.names.claim(`${runId}:calls-${this.steps}`)
    return this.parentId
  }

  private closeStep(): void {
    for (const key of [...this.blocks.keys()]) this.close(key)
    this.calls.closeAll()
    this.parentId = undefined
    if (this.stepName !== undefined) this.send({ type: "STEP_FINISHED", stepName: this.stepName })
    this.stepName = undefined
  }

  private interrupt(chunk: Of<"tool-call-approval" | "tool-call-suspended">): void {
    const { args, resumeSchema, toolCallId, toolName } = chunk.payload
    const { id: known } = this.calls.known(chunk.payload, this.parent(chunk))
    const isApproval = chunk.type === "tool-call-approval"
    const suspendData = isApproval ? undefined : chunk.payload.suspendData
    const id = decisionId(chunk.runId, toolCallId)
    this.interrupts.set(id, {
      id,
      reason: isApproval ? "tool_approval" : "tool_suspension",
      message: isApproval
        ? `Approve the call of ${toolName}?`
        : `The call of ${toolName} waits for an answer.`,
      toolCallId: known,
      responseSchema: isApproval ? approvalSchema : (resumeSchema ?? {}),
      metadata: { toolName, args, ...(suspendData === undefined ? {} : { suspendData }) }
    })
  }

  private finish({ payload }: Of<"finish">): void {
    this.closeStep()
    const { reason, stoppedBy } = payload.stepResult
    this.isRunOpen = false
    this.isLeftToClient = stoppedBy === "client-tool"
    this.usage = Usage.combine(this.usage, payload.output.usage)
    // What waited in a run before is decided, or this one would not have begun.
    if (reason !== "suspended") this.interrupts.clear()
    if (reason !== "error" && reason !== "aborted" && reason !== "tripwire") this.ending = { type: "success" }
  }
}

const approvalSchema = {
  type: "object",
  properties: { approved: { type: "boolean" }, reason: { type: "string" } },
  required: ["approved"]
}

type BlockChunk = Of<`${BlockKind}-${"start" | "delta" | "end"}`>

const kindOf = ({ type }: BlockChunk): BlockKind => (type.startsWith("text") ? "text" : "reasoning")

const keyOf = (kind: BlockKind, { payload, runId }: BlockChunk): string => `${kind} ${runId} ${payload.id}`

const sourceOf = ({ payload }: Of<"source">) => {
  const { providerMetadata: _, ...source } = payload
  return source
}

/** The mapping of one response. @since 0.1.0 @category constructors */
export const make = (options: Options): Mapper<AgUiEvent> => new AgUi(options)
