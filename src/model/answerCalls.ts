/**
 * Tool calls of one answer: arguments as they are written, and each call once, complete, under an id that is unique in
 * the run.
 */
import * as Either from "effect/Either"
import type { Chunk, ToolCall } from "../protocol/Chunk.js"
import type { ToolCallPart, ToolResultOutput, ToolResultPart } from "../protocol/Message.js"
import { type ProviderMetadata, stringify, toJson } from "../protocol/safeJson.js"
import type * as ModelPart from "./ModelPart.js"
import { mergeMetadata, metadataField } from "./providerMetadata.js"
import type { RunIds } from "./runIds.js"
import { argsOf, parseArguments } from "./toolArguments.js"

/** A complete call of an answer. */
export interface AnsweredCall {
  readonly chunk: ToolCall
  /** The parsed arguments. */
  readonly input: unknown
  /** Why the arguments are no JSON; such a call is never executed. */
  readonly malformed?: string
  readonly isProviderExecuted: boolean
  readonly part: ToolCallPart
}

/** Arguments that the model is writing, or has written. */
class Draft {
  text = ""
  isOpen = true
  /** Whether the provider itself said that the arguments are complete. */
  isComplete = false
  call: AnsweredCall | undefined

  constructor(
    readonly id: string,
    readonly toolName: string,
    readonly isProviderExecuted: boolean,
    public metadata: ProviderMetadata | undefined
  ) {}
}

const flag = (isProviderExecuted: boolean) => (isProviderExecuted ? { providerExecuted: true } : {})

/** What the model is told of arguments that were no JSON: providers insist on a value. */
const malformedInput = (text: unknown): unknown => ({ malformedArguments: toJson(text) })

/** The calls of one answer. */
export class Calls {
  readonly made: Array<AnsweredCall> = []
  private readonly drafts = new Map<string, Draft>()

  constructor(
    private readonly runId: string,
    private readonly ids: RunIds,
    private readonly makeId: () => string,
    private readonly emit: (chunk: Chunk) => void,
    private readonly told: (part: ToolCallPart | ToolResultPart) => void
  ) {}

  start(part: ModelPart.ToolInputStart): void {
    const existing = this.drafts.get(part.id)
    if (existing !== undefined && existing.call === undefined) return
    const draft = this.draft(part.id, part.toolName, part.providerExecuted === true, part.providerMetadata)
    const payload = {
      toolCallId: draft.id,
      toolName: part.toolName,
      ...flag(draft.isProviderExecuted),
      ...(part.dynamic === true ? { dynamic: true } : {}),
      ...metadataField(part.providerMetadata)
    }
    this.emit({ type: "tool-call-input-streaming-start", runId: this.runId, from: "AGENT", payload })
  }

  private draft(
    sourceId: string,
    toolName: string,
    isProviderExecuted: boolean,
    metadata: ProviderMetadata | undefined
  ): Draft {
    const id = this.ids.unique(sourceId === "" ? this.makeId() : sourceId)
    const draft = new Draft(id, toolName, isProviderExecuted, metadata)
    this.drafts.set(sourceId, draft)
    return draft
  }

  delta(part: ModelPart.ToolInputDelta): void {
    const draft = this.drafts.get(part.id)
    // Without a start the name is not known, and after the end the arguments are: the complete call tells the rest.
    if (draft === undefined || !draft.isOpen || !part.delta) return
    draft.text += part.delta
    const payload = {
      argsTextDelta: part.delta,
      toolCallId: draft.id,
      toolName: draft.toolName,
      ...metadataField(part.providerMetadata)
    }
    this.emit({ type: "tool-call-delta", runId: this.runId, from: "AGENT", payload })
  }

  end(part: ModelPart.ToolInputEnd): void {
    const draft = this.drafts.get(part.id)
    if (draft === undefined || !draft.isOpen) return
    draft.isComplete = true
    draft.metadata = mergeMetadata(draft.metadata, part.providerMetadata)
    this.endDraft(draft, part.providerMetadata)
  }

  private endDraft(draft: Draft, metadata: ProviderMetadata | undefined): void {
    if (!draft.isOpen) return
    draft.isOpen = false
    const payload = { toolCallId: draft.id, ...metadataField(metadata) }
    this.emit({ type: "tool-call-input-streaming-end", runId: this.runId, from: "AGENT", payload })
  }

  call(part: ModelPart.ToolCall): void {
    const known = this.drafts.get(part.toolCallId)
    const isRepetition =
      known?.call !== undefined &&
      part.toolCallId !== "" &&
      known.toolName === part.toolName &&
      stringify(known.call.input) ===
        stringify(Either.getOrElse(parseArguments(part.input), () => part.input))
    if (isRepetition) return
    const draft =
      known !== undefined && known.call === undefined
        ? known
        : this.withoutStream(part.toolCallId, part.toolName, part.providerExecuted === true)
    draft.metadata = mergeMetadata(draft.metadata, part.providerMetadata)
    this.endDraft(draft, undefined)
    this.make(draft, part.toolName, part.input, part.providerExecuted === true || draft.isProviderExecuted)
  }

  private withoutStream(sourceId: string, toolName: string, isProviderExecuted: boolean): Draft {
    const draft = this.draft(sourceId, toolName, isProviderExecuted, undefined)
    draft.isOpen = false
    return draft
  }

  private make(draft: Draft, toolName: string, rawInput: unknown, isProviderExecuted: boolean): void {
    const parsed = parseArguments(rawInput)
    const input = Either.getOrElse(parsed, () => malformedInput(rawInput))
    const chunk: ToolCall = {
      type: "tool-call",
      runId: this.runId,
      from: "AGENT",
      payload: {
        toolCallId: draft.id,
        toolName,
        ...(Either.isRight(parsed) ? argsOf(parsed.right) : {}),
        ...flag(isProviderExecuted),
        ...metadataField(draft.metadata)
      }
    }
    const part: ToolCallPart = {
      type: "tool-call",
      toolCallId: draft.id,
      toolName,
      input,
      ...flag(isProviderExecuted),
      ...(draft.metadata === undefined ? {} : { providerOptions: draft.metadata })
    }
    draft.call = {
      chunk,
      input,
      isProviderExecuted,
      part,
      ...(Either.isLeft(parsed) ? { malformed: parsed.left } : {})
    }
    this.made.push(draft.call)
    this.emit(chunk)
    this.told(part)
  }

  /** A result of a call that the provider executed; it may belong to a call of an earlier answer. */
  result(part: ModelPart.ToolResult): void {
    const draft = this.drafts.get(part.toolCallId)
    const toolCallId = draft?.id ?? part.toolCallId
    const result = part.result === undefined ? null : part.result
    const payload = {
      toolCallId,
      toolName: part.toolName,
      result,
      ...(part.isError === true ? { isError: true } : {}),
      providerExecuted: true,
      ...(draft?.call === undefined ? {} : argsOf(draft.call.input)),
      ...metadataField(part.providerMetadata)
    }
    this.emit({ type: "tool-result", runId: this.runId, from: "AGENT", payload })
    const output: ToolResultOutput = {
      type: part.isError === true ? "error-json" : "json",
      value: toJson(result)
    }
    const options = part.providerMetadata === undefined ? {} : { providerOptions: part.providerMetadata }
    this.told({ type: "tool-result", toolCallId, toolName: part.toolName, output, ...options })
  }

  /** Whether a call was begun whose arguments neither the provider nor their own text call complete. */
  hasTornDraft(): boolean {
    return [...this.drafts.values()].some(
      draft => draft.call === undefined && !draft.isComplete && Either.isLeft(parseArguments(draft.text))
    )
  }

  /** Ends every draft; `isComplete` also makes the calls that were written in full but never sent as a call. */
  close(isComplete: boolean): void {
    for (const draft of this.drafts.values()) {
      this.endDraft(draft, undefined)
      if (isComplete && draft.call === undefined) {
        this.make(draft, draft.toolName, draft.text, draft.isProviderExecuted)
      }
    }
  }
}
