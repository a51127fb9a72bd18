/**
 * Tool calls of one answer: arguments as they are written, and each call once, complete, under an id that is unique in
 * the run.
 */
import * as Either from "effect/Either"
import type { Chunk, ToolCall } from "../protocol/Chunk.js"
import type { ToolCallPart, ToolResultOutput, ToolResultPart } from "../protocol/Message.js"
import { isRecord, type ProviderMetadata, stringify, toJson } from "../protocol/safeJson.js"
import { join } from "./answerBlocks.js"
import type * as ModelPart from "./ModelPart.js"
import { mergeMetadata, metadataField } from "./providerMetadata.js"
import { type RunIds, unlessBlank } from "./runIds.js"
import { argsOf, parseArguments } from "./toolArguments.js"

type Mutable<A> = { -readonly [Key in keyof A]: A[Key] }

/** A complete call of an answer. */
export interface AnsweredCall {
  readonly chunk: ToolCall
  /** The parsed arguments. */
  readonly input: unknown
  /** What was written among the arguments and is none; see {@link TakeApart}. */
  readonly aside: unknown
  /** Why the arguments are no JSON; such a call is never executed. */
  readonly malformed?: string
  /** Whether the arguments were written to their end for sure. No text at all may stand for none, or be cut off. */
  readonly isWritten: boolean
  /** Also of a call that did not say so and that the provider answered. */
  isProviderExecuted: boolean
  readonly part: Mutable<ToolCallPart>
}

/** Takes out of the parsed arguments of a call what is no argument of its tool: nobody sees it among them. */
export type TakeApart = (
  toolName: string,
  written: unknown
) => { readonly input: unknown; readonly aside: unknown }

const nothingAside: TakeApart = (_, written) => ({ input: written, aside: undefined })

/** Arguments that the model is writing, or has written. */
class Draft {
  text = ""
  /** What the arguments of its call say, with everything that was written among them. */
  said = ""
  isOpen = true
  /** Whether the provider itself said that the arguments are complete. */
  isComplete = false
  /** Whether the provider has told its result. */
  isAnswered = false
  /** The first half of a surrogate pair, kept until the second comes. */
  half = ""
  call: AnsweredCall | undefined

  constructor(
    readonly sourceId: string,
    readonly id: string,
    readonly toolName: string,
    readonly isProviderExecuted: boolean,
    public metadata: ProviderMetadata | undefined
  ) {}
}

const flag = (isProviderExecuted: boolean) => (isProviderExecuted ? { providerExecuted: true } : {})

/** What the model is told of arguments that were no JSON: providers insist on a value. */
const malformedInput = (text: unknown): unknown => ({ malformedArguments: toJson(text) })

/** Text whose value is safe as it is: nothing in it can make half of a surrogate pair. */
const isPlainJson = (input: unknown): boolean =>
  typeof input === "string" && !input.includes("\\u") && input.isWellFormed()

/** A name that the model made up. Providers refuse every prompt with one that no tool may have. */
const sayable = (toolName: string): string => toolName.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 128) || "_"

/** Arguments as every provider takes them back: some refuse a prompt for good in which they are no object. */
const objectOf = (input: unknown): unknown => {
  if (input === null) return {}
  return isRecord(input) ? input : malformedInput(input)
}

/** What arguments say, however they are written. */
const said = (input: unknown): string =>
  stringify(Either.getOrElse(parseArguments(input), () => malformedInput(input)))

/** Whether the provider executes this call and has not told its result. */
const isOwed = ({ call, isAnswered }: Draft): boolean => call?.isProviderExecuted === true && !isAnswered

const isBlank = (input: unknown): boolean => typeof input === "string" && input.trim() === ""

/** The calls of one answer. */
export class Calls {
  readonly made: Array<AnsweredCall> = []
  private readonly drafts: Array<Draft> = []
  /** The last draft of each id that the provider uses; it may use one again. */
  private latest: Map<string, Draft> | undefined

  constructor(
    private readonly runId: string,
    private readonly ids: RunIds,
    private readonly makeId: () => string,
    private readonly emit: (chunk: Chunk) => void,
    private readonly told: (part: ToolCallPart | ToolResultPart) => void,
    private readonly takeApart: TakeApart = nothingAside
  ) {}

  start(part: ModelPart.ToolInputStart): void {
    if (this.latest?.get(part.id)?.isOpen === true) return
    // Without a name it is the start of nothing: the complete call tells what it is.
    if (unlessBlank(part.toolName) === undefined) return
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
    const id = this.ids.unique(unlessBlank(sourceId) ?? this.makeId())
    const draft = new Draft(sourceId, id, toolName, isProviderExecuted, metadata)
    this.drafts.push(draft)
    this.latest ??= new Map()
    this.latest.set(sourceId, draft)
    return draft
  }

  delta(part: ModelPart.ToolInputDelta): void {
    const draft = this.latest?.get(part.id)
    // Without a start the name is not known, and after the end the arguments are: the complete call tells the rest.
    if (draft === undefined || !draft.isOpen || !part.delta) return
    this.write(draft, join(draft, part.delta), part.providerMetadata)
  }

  private write(draft: Draft, text: string, metadata: ProviderMetadata | undefined): void {
    if (text === "") return
    draft.text += text
    const payload = {
      argsTextDelta: text,
      toolCallId: draft.id,
      toolName: draft.toolName,
      ...metadataField(metadata)
    }
    this.emit({ type: "tool-call-delta", runId: this.runId, from: "AGENT", payload })
  }

  end(part: ModelPart.ToolInputEnd): void {
    const draft = this.latest?.get(part.id)
    if (draft === undefined || !draft.isOpen) return
    draft.isComplete = true
    draft.metadata = mergeMetadata(draft.metadata, part.providerMetadata)
    this.endDraft(draft, part.providerMetadata)
  }

  private endDraft(draft: Draft, metadata: ProviderMetadata | undefined): void {
    if (!draft.isOpen) return
    if (draft.half !== "") this.write(draft, "\uFFFD", undefined)
    draft.isOpen = false
    const payload = { toolCallId: draft.id, ...metadataField(metadata) }
    this.emit({ type: "tool-call-input-streaming-end", runId: this.runId, from: "AGENT", payload })
  }

  call(part: ModelPart.ToolCall): void {
    const { input, providerMetadata, toolCallId } = part
    const isProviderExecuted = part.providerExecuted === true
    const known = this.drafts.filter(draft => draft.sourceId === toolCallId)
    const toolName = unlessBlank(part.toolName) ?? known.at(-1)?.toolName ?? part.toolName
    const told = known.filter(({ call, toolName: name }) => call !== undefined && name === toolName)
    if (toolCallId !== "" && told.length > 0) {
      // Arguments that come to nothing are no other arguments.
      if (isBlank(input) || told.some(draft => draft.said === said(input))) return
    }
    const written = known.filter(({ call }) => call === undefined)
    const draft =
      written.find(draft => draft.toolName === toolName) ??
      (toolCallId === "" ? undefined : written[0]) ??
      this.written(toolName, input) ??
      this.withoutStream(toolCallId, toolName, isProviderExecuted)
    draft.metadata = mergeMetadata(draft.metadata, providerMetadata)
    this.endDraft(draft, undefined)
    this.make(draft, toolName, input, isProviderExecuted || draft.isProviderExecuted)
  }

  /** Arguments that were written to their end under another id: some rewrite the ids of calls and leave those. */
  private written(toolName: string, input: unknown): Draft | undefined {
    return this.drafts.find(
      ({ call, isComplete, text, toolName: name }) =>
        call === undefined && isComplete && name === toolName && said(text) === said(input)
    )
  }

  private withoutStream(sourceId: string, toolName: string, isProviderExecuted: boolean): Draft {
    const draft = this.draft(sourceId, toolName, isProviderExecuted, undefined)
    draft.isOpen = false
    return draft
  }

  private make(draft: Draft, toolName: string, rawInput: unknown, isProviderExecuted: boolean): AnsweredCall {
    const parsed = parseArguments(rawInput)
    // Escapes such as "\\ud83d" make halves of surrogate pairs, and a parsed value may be anything.
    const written = Either.match(parsed, {
      onLeft: () => malformedInput(rawInput),
      onRight: value => (isPlainJson(rawInput) ? value : toJson(value))
    })
    draft.said = stringify(written)
    const { aside, input } =
      isProviderExecuted || Either.isLeft(parsed)
        ? nothingAside(toolName, written)
        : this.takeApart(toolName, written)
    const chunk: ToolCall = {
      type: "tool-call",
      runId: this.runId,
      from: "AGENT",
      payload: {
        toolCallId: draft.id,
        toolName,
        ...(Either.isRight(parsed) ? argsOf(input) : {}),
        ...flag(isProviderExecuted),
        ...metadataField(draft.metadata)
      }
    }
    const part: Mutable<ToolCallPart> = {
      type: "tool-call",
      toolCallId: draft.id,
      toolName: isProviderExecuted ? toolName : sayable(toolName),
      input: isProviderExecuted ? input : objectOf(input),
      ...flag(isProviderExecuted),
      ...(draft.metadata === undefined ? {} : { providerOptions: draft.metadata })
    }
    const call: AnsweredCall = {
      chunk,
      input,
      aside,
      isProviderExecuted,
      part,
      isWritten: Either.isRight(parsed) && !isBlank(rawInput),
      ...(Either.isLeft(parsed) ? { malformed: parsed.left } : {})
    }
    draft.call = call
    if (isProviderExecuted) this.ids.owed.set(draft.sourceId, { id: draft.id, toolName })
    this.made.push(call)
    // Told is remembered: whoever sees the chunk may stop the run before `emit` comes back.
    this.told(part)
    this.emit(chunk)
    return call
  }

  /**
   * A result of a call that the provider executed; it may belong to a call of an earlier answer. A second one is dropped,
   * and a call that was never told is told before its result.
   */
  result(part: ModelPart.ToolResult): void {
    const { isError, providerMetadata, toolCallId: sourceId } = part
    const known = this.drafts.filter(draft => draft.sourceId === sourceId)
    const waiting = known.filter(draft => !draft.isAnswered)
    const named =
      waiting.find(draft => draft.toolName === part.toolName) ?? (sourceId === "" ? undefined : waiting[0])
    if (named === undefined && known.length > 0) return
    const earlier = named === undefined ? this.ids.owed.get(sourceId) : undefined
    // Some providers tell a result under an id of its own.
    const isNamed = named !== undefined || earlier !== undefined
    const draft = isNamed ? named : this.drafts.find(owed => isOwed(owed) && owed.toolName === part.toolName)
    const call = earlier === undefined ? this.answered(draft, part) : undefined
    this.ids.owed.delete(draft?.sourceId ?? sourceId)
    const toolCallId = call?.part.toolCallId ?? earlier?.id ?? sourceId
    const toolName = call?.part.toolName ?? unlessBlank(part.toolName) ?? earlier?.toolName ?? part.toolName
    const result = part.result === undefined ? null : part.result
    const payload = {
      toolCallId,
      toolName,
      result,
      ...(isError === true ? { isError: true } : {}),
      providerExecuted: true,
      ...argsOf(call?.input),
      ...metadataField(providerMetadata)
    }
    const output: ToolResultOutput = { type: isError === true ? "error-json" : "json", value: toJson(result) }
    const options = providerMetadata === undefined ? {} : { providerOptions: providerMetadata }
    this.told({ type: "tool-result", toolCallId, toolName, output, ...options })
    this.emit({ type: "tool-result", runId: this.runId, from: "AGENT", payload })
  }

  /** The call of this answer that a result belongs to: from now on it is the provider's. */
  private answered(known: Draft | undefined, part: ModelPart.ToolResult): AnsweredCall {
    const draft = known ?? this.withoutStream(part.toolCallId, part.toolName, true)
    draft.isAnswered = true
    this.endDraft(draft, undefined)
    const call = draft.call ?? this.make(draft, draft.toolName, draft.text, true)
    call.isProviderExecuted = true
    call.part.providerExecuted = true
    return call
  }

  /** Whether a call was begun whose arguments neither the provider nor their own text call complete. */
  hasTornDraft(): boolean {
    return this.drafts.some(
      draft => draft.call === undefined && !draft.isComplete && Either.isLeft(parseArguments(draft.text))
    )
  }

  /** Ends every draft; `isComplete` also makes the calls that were written in full but never sent as a call. */
  close(isComplete: boolean): void {
    for (const draft of this.drafts) {
      this.endDraft(draft, undefined)
      if (isComplete && draft.call === undefined) {
        this.make(draft, draft.toolName, draft.text, draft.isProviderExecuted)
      }
    }
  }
}
