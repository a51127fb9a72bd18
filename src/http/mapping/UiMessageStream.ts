/**
 * Chunks as the UI message stream of the AI SDK (version 7): what `useChat` and `readUIMessageStream` read.
 *
 * A response is one message, however many turns it has: one `start`, one `finish` at its real end, the steps of all turns in
 * between. What happens to a background task is one part, `data-background-task`, with the id of the task; it is replaced as
 * the task goes on, and the tool part of its call gets the outcome.
 *
 * @since 0.1.0
 */
import type { Chunk, Of } from "../../protocol/Chunk.js"
import type { UIMessage } from "../../protocol/Message.js"
import { unnest } from "../../protocol/Nesting.js"
import { decisionId } from "./decisionId.js"
import { Frames } from "./Frames.js"
import { brokenOff, type ErrorText, type Mapper, type MapperOptions, maskedError } from "./Mapper.js"
import { Names } from "./names.js"
import { isTaskChunk, type TaskChunk } from "./taskChanges.js"
import type { UiFinishReason, UiFrame } from "./uiFrames.js"
import { UiNested } from "./uiNested.js"
import { dataFrame, fileFrame, finishReasonOf, isData, metadataOf, sourceFrame } from "./uiParts.js"
import { UiTasks } from "./uiTasks.js"
import { UiTools } from "./uiTools.js"

export type { UiFrame } from "./uiFrames.js"

/** @since 0.1.0 @category models */
export interface Options extends MapperOptions {
  /** The message that the response goes on with: see `UiRequest.continues`. Default: a new one. */
  readonly continues?: UIMessage
  /** The id of a new message. Default: the one that the first run stores it under. */
  readonly messageId?: string
}

type BlockKind = "text" | "reasoning"

interface Block {
  readonly kind: BlockKind
  readonly id: string
}

class UiMessageStream extends Frames<UiFrame> {
  private isStarted = false
  private isStepOpen = false
  /** A step has begun and nothing was said in it: of a run that goes on it may hold outcomes of the step before only. */
  private isStepPending = false
  /** A run has begun and not finished. */
  private isRunOpen = false
  private hasFailed = false
  private reason: UiFinishReason = "stop"
  private readonly blocks = new Map<string, Block>()
  private readonly names = new Names()
  private readonly errorText: ErrorText
  private readonly tools: UiTools
  private readonly tasks: UiTasks
  private readonly nested: UiNested

  constructor(private readonly options: Options) {
    super()
    this.errorText = options.errorText ?? maskedError
    const send = (frame: UiFrame): void => this.send(frame)
    this.tools = new UiTools(send, this.errorText, options.continues)
    this.nested = new UiNested(send, this.tools)
    this.tasks = new UiTasks(send, this.errorText, this.tools)
  }

  protected conclude(failure: unknown): void {
    const isBroken = failure !== undefined || this.isRunOpen || !this.isStarted
    this.start(undefined)
    this.closeStep()
    if (isBroken) {
      if (!this.hasFailed) this.send({ type: "error", errorText: this.errorText(failure ?? brokenOff) })
      this.reason = "error"
    }
    this.send({ type: "finish", finishReason: this.reason })
  }

  protected override send(frame: UiFrame): void {
    if (this.isStepPending && beginsPart.has(frame.type)) {
      this.isStepPending = false
      this.isStepOpen = true
      super.send({ type: "start-step" })
    }
    super.send(frame)
  }

  /** The first frame of every response. Its id is the one under which the message is stored, so that it is known again. */
  private start(messageId: unknown): void {
    if (this.isStarted) return
    this.isStarted = true
    const { continues, messageId: given } = this.options
    const id = continues?.id ?? given ?? messageId
    this.send({ type: "start", ...(typeof id === "string" && id !== "" ? { messageId: id } : {}) })
  }

  protected take(chunk: Chunk) {
    if (chunk.type === "start") {
      this.isRunOpen = true
      return this.start(chunk.payload.messageId)
    }
    if (isTaskChunk(chunk)) return this.task(chunk)
    switch (chunk.type) {
      case "text-delta":
        return this.delta("text", chunk)
      case "reasoning-delta":
        return this.delta("reasoning", chunk)
      case "background-task-output":
        this.start(undefined)
        return this.tasks.output(chunk)
      case "background-task-progress":
        this.start(undefined)
        this.send({ type: "data-background-task-progress", data: chunk.payload, transient: true })
        return
      case "finish":
        return this.finish(chunk)
      default:
        return this.inRun(chunk)
    }
  }

  private task(chunk: TaskChunk): void {
    this.start(undefined)
    this.tasks.take(chunk)
  }

  private inRun(chunk: Chunk) {
    switch (chunk.type) {
      case "step-start":
        this.begin(chunk)
        this.closeStep()
        this.isStepPending = true
        return
      case "step-finish":
        this.begin(chunk)
        return this.closeStep()
      case "text-start":
        this.open("text", chunk)
        return
      case "reasoning-start":
        this.open("reasoning", chunk)
        return
      case "text-end":
        return this.close("text", chunk)
      case "reasoning-end":
        return this.close("reasoning", chunk)
      case "source":
        this.begin(chunk)
        return this.send(sourceFrame(chunk.payload, this.names.claim(chunk.payload.id)))
      case "file":
        this.begin(chunk)
        return this.send(fileFrame(chunk.payload))
      case "tool-call-input-streaming-start":
      case "tool-call-delta":
      case "tool-call":
      case "tool-result":
      case "tool-error":
      case "tool-output-denied":
        this.begin(chunk)
        return this.tools.take(chunk)
      case "tool-call-approval":
        this.begin(chunk)
        return this.tools.approval(chunk, decisionId(chunk.runId, chunk.payload.toolCallId))
      case "tool-call-suspended":
        this.begin(chunk)
        return this.tools.suspension(chunk)
      case "tool-output":
        this.begin(chunk)
        return this.nested.take(chunk, unnest(chunk))
      case "goal": {
        this.begin(chunk)
        const { iteration, maxRuns, passed, reason, status } = chunk.payload
        const data = { iteration, maxRuns, passed, status, ...(reason === undefined ? {} : { reason }) }
        return this.send({ type: "data-goal", id: chunk.runId, data })
      }
      case "error":
        this.begin(chunk)
        this.closeStep()
        this.hasFailed = true
        return this.send({ type: "error", errorText: this.errorText(chunk.payload.error) })
      case "abort": {
        this.begin(chunk)
        this.closeStep()
        const { reason } = chunk.payload
        return this.send({ type: "abort", ...(typeof reason === "string" ? { reason } : {}) })
      }
      case "tripwire": {
        this.begin(chunk)
        this.closeBlocks()
        const { processorId, reason, retry } = chunk.payload
        return this.send({
          type: "data-tripwire",
          data: {
            reason,
            ...(retry === undefined ? {} : { retry }),
            ...(processorId === undefined ? {} : { processorId })
          }
        })
      }
      default:
        if (!isData(chunk)) return
        this.start(undefined)
        return this.send(dataFrame(chunk))
    }
  }

  /** Something of a run: it is open until its `finish`, also when its `start` was not seen. */
  private begin(chunk: Chunk): void {
    this.isRunOpen = true
    if (!this.isStarted) this.start(chunk.type === "step-start" ? chunk.payload.messageId : undefined)
  }

  private open(kind: BlockKind, chunk: Of<`${BlockKind}-${"start" | "delta"}`>): Block {
    this.begin(chunk)
    const key = keyOf(kind, chunk)
    const known = this.blocks.get(key)
    if (known !== undefined) return known
    const block: Block = { kind, id: this.names.claim(chunk.payload.id) }
    this.blocks.set(key, block)
    // A block that was never opened says with its first delta what a provider wants back.
    const metadata = chunk.type.endsWith("-start") ? metadataOf(chunk.payload) : {}
    this.send({ type: `${kind}-start`, id: block.id, ...metadata })
    return block
  }

  private delta(kind: BlockKind, chunk: Of<`${BlockKind}-delta`>): void {
    const { id } = this.open(kind, chunk)
    this.send({ type: `${kind}-delta`, id, delta: chunk.payload.text, ...metadataOf(chunk.payload) })
  }

  private close(kind: BlockKind, chunk: Of<`${BlockKind}-end`>): void {
    const key = keyOf(kind, chunk)
    const block = this.blocks.get(key)
    if (block === undefined) return
    this.blocks.delete(key)
    this.send({ type: `${kind}-end`, id: block.id, ...metadataOf(chunk.payload) })
  }

  private closeBlocks(): void {
    for (const { id, kind } of this.blocks.values()) this.send({ type: `${kind}-end`, id })
    this.blocks.clear()
  }

  private closeStep(): void {
    this.closeBlocks()
    if (this.isStepOpen) this.send({ type: "finish-step" })
    this.isStepOpen = false
    this.isStepPending = false
  }

  /** Held back: another turn may follow in the same message, and a client takes the first `finish` for the end. */
  private finish({ payload }: Of<"finish">): void {
    this.start(undefined)
    this.closeStep()
    this.isRunOpen = false
    this.reason = finishReasonOf(payload.stepResult.reason)
  }
}

/** Frames with which a client begins a part of a step. */
const beginsPart: ReadonlySet<UiFrame["type"]> = new Set<UiFrame["type"]>([
  "text-start",
  "reasoning-start",
  "source-url",
  "source-document",
  "file",
  "tool-input-start",
  "tool-input-available"
])

const keyOf = (
  kind: BlockKind,
  { payload, runId }: Of<`${BlockKind}-${"start" | "delta" | "end"}`>
): string => `${kind} ${runId} ${payload.id}`

/** The mapping of one response. @since 0.1.0 @category constructors */
export const make = (options: Options = {}): Mapper<UiFrame> => new UiMessageStream(options)
