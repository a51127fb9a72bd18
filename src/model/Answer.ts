/**
 * One model answer as it is read: parts in, chunks out, and a record of what was said.
 *
 * A plain synchronous reducer, because it runs once per token. It holds the grammar of a step's content whatever the
 * provider does: every start has one end, ids are unique in the run, a call is told once and complete, a second finish
 * is merged into the first, and nothing but usage counts after it.
 *
 * @since 0.1.0
 */
import type { Chunk, Of, RequestInfo, ResponseInfo, Warning } from "../protocol/Chunk.js"
import type { AnswerReason } from "../protocol/FinishReason.js"
import type { AssistantMessage, ToolCallPart, ToolResultPart } from "../protocol/Message.js"
import { isRecord, type ProviderMetadata, toBase64 } from "../protocol/safeJson.js"
import * as Usage from "../protocol/tokens.js"
import { itemProviders, unbound } from "./answerBinding.js"
import { type Block, Blocks } from "./answerBlocks.js"
import { type AnsweredCall, Calls, type TakeApart } from "./answerCalls.js"
import type * as ModelPart from "./ModelPart.js"
import { mergeMetadata, metadataField, withMetadata } from "./providerMetadata.js"
import { type RunIds, unlessBlank } from "./runIds.js"

export type { AnsweredCall } from "./answerCalls.js"

/** What an answer needs to know of its run. @since 0.1.0 @category models */
export interface AnswerOptions {
  readonly runId: string
  readonly messageId: string
  readonly ids: RunIds
  /** A fresh id for a call that the provider gave none. */
  readonly makeCallId: () => string
  readonly includeRawChunks: boolean
  /** Characters of text and reasoning that are kept; all are told. Default: all. */
  readonly textLimit?: number
  readonly emit: (chunk: Chunk) => void
  /** Whether the answer is what {@link Answer.tell} is given, and not what the model says. Default false. */
  readonly isFollowing?: boolean
  /** Default: whatever the model writes is an argument. */
  readonly takeApart?: TakeApart | undefined
}

interface Finished {
  readonly reason: AnswerReason
  readonly rawReason?: string | undefined
}

/** An answer in progress. Made by `Answer.make`. @since 0.1.0 @category models */
export class Answer {
  /** The request, as `step-start` tells it; set before the first part. */
  request: RequestInfo = {}
  usage: Usage.Usage = Usage.empty
  warnings: ReadonlyArray<Warning> = []
  /** Begins with the headers, where the provider has some. */
  response: ResponseInfo = {}
  providerMetadata: ProviderMetadata | undefined
  /** What an error part said, wrapped so that `undefined` is a failure too. */
  failure: { readonly error: unknown } | undefined
  /** Set by the first finish part. */
  finished: Finished | undefined

  private hasBegun = false
  private content: Array<Block | ToolCallPart | ToolResultPart | AssistantFile> = []
  private readonly blocks: Blocks
  private readonly toolCalls: Calls
  /** Calls and results that were told; `undefined`: all are. */
  private readonly told: Set<string> | undefined
  /** What the provider has said of its response, told or not. */
  private said: ResponseInfo = {}

  /** Whether everything that was open has ended: nothing is emitted any more. */
  private isClosed = false

  constructor(private readonly options: AnswerOptions) {
    const { ids, isFollowing = false, makeCallId, runId, takeApart, textLimit } = options
    const room = textLimit ?? Number.POSITIVE_INFINITY
    this.told = isFollowing ? new Set() : undefined
    this.blocks = new Blocks(runId, ids, this.emit, block => this.add(block), room, isFollowing)
    this.toolCalls = new Calls(runId, ids, makeCallId, this.emit, part => this.add(part), takeApart)
  }

  /**
   * Emits a chunk. Its reader may stop the run on this stack, which closes the answer: what the part that is being read would
   * emit behind that is dropped.
   */
  private readonly emit = (chunk: Chunk): void => {
    if (!this.isClosed) this.options.emit(chunk)
  }

  private add(entry: Block | ToolCallPart | ToolResultPart | AssistantFile): void {
    // An array that has grown has room for sixteen, and one is the rule.
    if (this.content.length === 0) this.content = [entry]
    else this.content.push(entry)
  }

  /** The complete calls, in the order of the answer. */
  get calls(): ReadonlyArray<AnsweredCall> {
    const { made } = this.toolCalls
    return this.told === undefined ? made : made.filter(({ part }) => this.isTold(part))
  }

  private isTold({ toolCallId, type }: ToolCallPart | ToolResultPart): boolean {
    return this.told === undefined || this.told.has(`${type} ${toolCallId}`)
  }

  /** Takes what is told of a chunk that was emitted: the chunk itself, or what has become of it. */
  tell(chunk: Chunk, emitted: Chunk): void {
    switch (chunk.type) {
      case "text-delta":
      case "reasoning-delta":
        this.blocks.hear(chunk.payload.id, chunk.payload.text)
        return
      case "tool-call":
      case "tool-result":
        this.told?.add(`${chunk.type} ${chunk.payload.toolCallId}`)
        return
      case "response-metadata": {
        const { headers: _, ...payload } = chunk.payload
        this.response = { ...this.response, ...payload }
        return
      }
      case "file":
        for (const entry of this.content) {
          if (entry.type === "file" && "chunk" in entry && entry.chunk === emitted) entry.told = chunk
        }
        return
      default:
        return
    }
  }

  /** All text of the answer so far: the same as joining its deltas. */
  get text(): string {
    return this.blocks.text
  }

  /** Whether `text`, or what goes into the next prompt, is only the beginning of what was said. */
  get isTruncated(): boolean {
    return this.blocks.isTruncated
  }

  /** Tells that the step has started, once; the first part does it by itself. */
  begin(): void {
    if (this.hasBegun) return
    this.hasBegun = true
    const { messageId, runId } = this.options
    const warnings = this.warnings.length === 0 ? {} : { warnings: this.warnings }
    this.emit({
      type: "step-start",
      runId,
      from: "AGENT",
      payload: { messageId, request: this.request, ...warnings }
    })
  }

  /** Takes the next part. Every part of every model comes in here: its metadata are normalised here, and nowhere behind. */
  accept(received: ModelPart.ModelPart): void {
    const part = withMetadata(received)
    if (part.type === "text-delta" || part.type === "reasoning-delta") {
      if (!this.hasBegun) this.begin()
      if (this.finished === undefined) this.blocks.delta(part)
      return
    }
    if (part.type === "stream-start") {
      this.warnings = [...this.warnings, ...part.warnings]
      return
    }
    this.begin()
    if (part.type === "finish") {
      this.finish(part)
    } else if (this.finished !== undefined) {
      return
    } else if (part.type === "error") {
      this.failure ??= { error: part.error }
    } else {
      this.acceptContent(part)
    }
  }

  private acceptContent(
    part: Exclude<ModelPart.ModelPart, { readonly type: "finish" | "error" | "stream-start" }>
  ) {
    switch (part.type) {
      case "text-start":
      case "text-end":
      case "reasoning-start":
      case "reasoning-end":
        return this.blocks.edge(part)
      case "text-delta":
      case "reasoning-delta":
        return this.blocks.delta(part)
      case "tool-input-start":
        return this.toolCalls.start(part)
      case "tool-input-delta":
        return this.toolCalls.delta(part)
      case "tool-input-end":
        return this.toolCalls.end(part)
      case "tool-call":
        return this.toolCalls.call(part)
      case "tool-result":
        return this.toolCalls.result(part)
      case "source":
        return this.source(part)
      case "file":
        return this.file(part)
      case "response-metadata":
        return this.responseMetadata(part)
      case "raw":
        return this.raw(part)
    }
  }

  /** The first specific reason wins; of usage the last figures. */
  private finish(part: ModelPart.Finish): void {
    if (this.finished === undefined || this.finished.reason === "other") {
      this.finished = { reason: part.reason, rawReason: part.rawReason }
    }
    this.usage = Usage.replace(this.usage, part.usage)
    this.providerMetadata = mergeMetadata(this.providerMetadata, part.providerMetadata)
  }

  private source(part: ModelPart.Source): void {
    const { ids, runId } = this.options
    const payload = {
      id: ids.unique(part.id || "source"),
      sourceType: part.sourceType,
      title: part.title ?? "",
      ...(part.mediaType === undefined ? {} : { mimeType: part.mediaType }),
      ...(part.filename === undefined ? {} : { filename: part.filename }),
      ...(part.url === undefined ? {} : { url: part.url }),
      ...metadataField(part.providerMetadata)
    }
    this.emit({ type: "source", runId, from: "AGENT", payload })
  }

  private file(part: ModelPart.File): void {
    const { runId } = this.options
    const { data, mediaType } = part
    const base64 = typeof data === "string" ? { base64: data } : {}
    const payload = { data, ...base64, mimeType: mediaType, ...metadataField(part.providerMetadata) }
    const chunk: Of<"file"> = { type: "file", runId, from: "AGENT", payload }
    this.add({ type: "file", chunk, told: this.told === undefined ? chunk : undefined })
    this.emit(chunk)
  }

  private responseMetadata(part: ModelPart.ResponseMetadata): void {
    const { runId } = this.options
    // Some providers send blank ids, blank names and the zero of their clock, before the real ones or behind them.
    const timestamp =
      part.timestamp?.getTime() === 0 ? (this.said.timestamp ?? part.timestamp) : part.timestamp
    const id = this.said.id ?? unlessBlank(part.id)
    const modelId = this.said.modelId ?? unlessBlank(part.modelId)
    this.said = {
      ...this.said,
      ...(id === undefined ? {} : { id }),
      ...(modelId === undefined ? {} : { modelId }),
      ...(timestamp === undefined ? {} : { timestamp })
    }
    const payload = { ...this.response, ...this.said }
    if (this.told === undefined) this.response = payload
    this.emit({ type: "response-metadata", runId, from: "AGENT", payload })
  }

  private raw(part: ModelPart.Raw): void {
    const { includeRawChunks, runId } = this.options
    if (!includeRawChunks) return
    const { value } = part
    this.emit({ type: "raw", runId, from: "AGENT", payload: isRecord(value) ? { ...value } : { value } })
  }

  /** Whether nothing was said and nothing called. */
  get isEmpty(): boolean {
    return this.content.length === 0 && this.toolCalls.made.length === 0
  }

  /** Whether the arguments of a call may be cut off: they are no JSON, or no text at all. */
  get hasUnwrittenCall(): boolean {
    return this.toolCalls.made.some(call => !call.isWritten)
  }

  /** Whether the answer ends in the middle of a call's arguments. */
  get isTorn(): boolean {
    return this.toolCalls.hasTornDraft()
  }

  /**
   * The answer is over: ends what is open. With `isComplete`, a call whose arguments were written but never sent as a call
   * becomes one. Tells the start of the step when nothing has yet.
   */
  close(isComplete: boolean): void {
    this.begin()
    this.blocks.close()
    this.toolCalls.close(isComplete)
    this.isClosed = true
  }

  /**
   * The answer is not gone on with. Of a call that nobody was told, no result is waited for; one that did not say that it is the
   * provider's, and whose result nobody was told, has no outcome, and is ours again.
   */
  abandon(): void {
    if (this.told === undefined) return
    for (const call of this.toolCalls.made) {
      const { part } = call
      if (!this.isTold(part)) this.options.ids.disown(part.toolCallId)
      if (call.chunk.payload.providerExecuted || this.told.has(`tool-result ${part.toolCallId}`)) continue
      call.isProviderExecuted = false
      delete part.providerExecuted
    }
  }

  /**
   * What the model said, for the next prompt; `undefined` when it said nothing. Of an answer that was cut off, reasoning
   * without a signature is left out: providers refuse to read it again.
   */
  toMessage(isComplete: boolean): AssistantMessage | undefined {
    const parts: Array<AssistantMessage["content"][number]> = []
    const changed = { text: false, reasoning: false }
    const items = new Set<string>()
    for (const entry of this.content) {
      if ("sourceId" in entry) {
        const part = entry.toPart()
        const isUnsigned = entry.type === "reasoning" && (entry.signature === undefined || entry.isChanged)
        if (entry.isChanged) changed[entry.type] = true
        for (const name of itemProviders(entry.metadata)) items.add(name)
        if (part !== undefined && (isComplete || !isUnsigned)) parts.push(part)
      } else if (entry.type === "file") {
        if (entry.told !== undefined) parts.push(fileToPart(entry.told))
      } else if (this.isTold(entry)) {
        for (const name of itemProviders(entry.providerOptions)) items.add(name)
        parts.push(entry)
      }
    }
    const content = unbound(parts, changed, items)
    return content.length === 0 ? undefined : { role: "assistant", content }
  }
}

interface AssistantFile {
  readonly type: "file"
  readonly chunk: Of<"file">
  /** What was told of it; `undefined` for nothing. */
  told: Of<"file"> | undefined
}

const fileToPart = ({ payload }: Of<"file">): AssistantMessage["content"][number] => ({
  type: "file",
  data: typeof payload.data === "string" ? payload.data : toBase64(payload.data),
  mediaType: payload.mimeType,
  ...(payload.providerMetadata === undefined ? {} : { providerOptions: payload.providerMetadata })
})

/** An answer of no part yet. @since 0.1.0 @category constructors */
export const make = (options: AnswerOptions): Answer => new Answer(options)
