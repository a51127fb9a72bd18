/** Tool parts of one message: a client refuses an outcome, an approval or a delta of a call that it was not told of. */
import type { Of } from "../../protocol/Chunk.js"
import type { UIMessage } from "../../protocol/Message.js"
import { isRecord } from "../../protocol/safeJson.js"
import type { ErrorText } from "./Mapper.js"
import type { UiFrame } from "./uiFrames.js"
import { metadataOf } from "./uiParts.js"

interface Call {
  /** The run that made it; `undefined` of a message that was told before. */
  readonly runId: string | undefined
  readonly isDynamic: boolean
  isInputOpen: boolean
  /** Of a message that was told before: it waits for its outcome, and the run that gives it tells of the call again. */
  readonly isWaiting?: boolean
}

const waiting: ReadonlySet<unknown> = new Set(["input-available", "approval-requested", "approval-responded"])

type Suspended = { readonly [field: string]: unknown }

type ToolChunk = Of<
  | "tool-call-input-streaming-start"
  | "tool-call-delta"
  | "tool-call"
  | "tool-result"
  | "tool-error"
  | "tool-output-denied"
>

/** Calls below another one: what waits for a decision in the run of an agent that was called. */
const below = (toolCallId: string, nested: string): string => `${toolCallId}/${nested}`

const executed = ({ providerExecuted }: { readonly providerExecuted?: boolean }) =>
  providerExecuted === undefined ? {} : { providerExecuted }

export class UiTools {
  private readonly calls = new Map<string, Call>()
  /** Calls that wait for an answer, with the data of their parts. */
  private readonly suspended = new Map<string, Suspended>()

  constructor(
    private readonly send: (frame: UiFrame) => void,
    private readonly errorText: ErrorText,
    continues: UIMessage | undefined
  ) {
    for (const part of continues?.parts ?? []) this.remember(part)
  }

  private remember(part: UIMessage["parts"][number]): void {
    const { data, id, state, toolCallId, type } = part
    if (typeof toolCallId === "string") {
      const isDynamic = type === "dynamic-tool"
      const isWaiting = waiting.has(state)
      this.calls.set(toolCallId, { runId: undefined, isDynamic, isInputOpen: false, isWaiting })
    }
    if (type === "data-tool-call-suspended" && typeof id === "string" && isRecord(data)) {
      if (data["status"] === "suspended") this.suspended.set(id, data)
    }
  }

  /** Whether the message has the call, made by this run. */
  has(toolCallId: string, runId: string): boolean {
    const call = this.calls.get(toolCallId)
    return call !== undefined && (call.runId === undefined || call.runId === runId)
  }

  take(chunk: ToolChunk) {
    switch (chunk.type) {
      case "tool-call-input-streaming-start":
        return this.inputStart(chunk)
      case "tool-call-delta":
        return this.inputDelta(chunk)
      case "tool-call":
        return this.call(chunk)
      case "tool-result":
        return this.result(chunk)
      case "tool-error": {
        const { error, toolCallId } = chunk.payload
        this.announce(chunk)
        this.error(toolCallId, error, chunk.payload)
        return this.settled(toolCallId)
      }
      case "tool-output-denied":
        this.announce(chunk)
        this.send({ type: "tool-output-denied", toolCallId: chunk.payload.toolCallId })
        return this.settled(chunk.payload.toolCallId)
    }
  }

  private inputStart({ payload, runId }: Of<"tool-call-input-streaming-start">): void {
    const { dynamic, toolCallId, toolName } = payload
    const known = this.calls.get(toolCallId)
    if (known?.isInputOpen === true || known?.isWaiting === true) return
    this.calls.set(toolCallId, { runId, isDynamic: dynamic === true, isInputOpen: true })
    this.send({
      type: "tool-input-start",
      toolCallId,
      toolName,
      ...executed(payload),
      ...(dynamic === undefined ? {} : { dynamic }),
      ...metadataOf(payload)
    })
  }

  private inputDelta({ payload }: Of<"tool-call-delta">): void {
    const { argsTextDelta, toolCallId } = payload
    if (this.calls.get(toolCallId)?.isInputOpen !== true) return
    this.send({ type: "tool-input-delta", toolCallId, inputTextDelta: argsTextDelta })
  }

  private call({ payload, runId }: Of<"tool-call">): void {
    const { args, output, toolCallId, toolName } = payload
    const open = this.calls.get(toolCallId)
    if (open?.isWaiting === true) return
    const isDynamic = open?.isInputOpen === true && open.isDynamic
    this.calls.set(toolCallId, { runId, isDynamic, isInputOpen: false })
    this.available(toolCallId, toolName, args, isDynamic, payload)
    if (output !== undefined) {
      this.send({ type: "tool-output-available", toolCallId, output, ...executed(payload) })
    }
  }

  private available(
    toolCallId: string,
    toolName: string,
    args: unknown,
    isDynamic: boolean,
    payload: { readonly providerExecuted?: boolean } & Parameters<typeof metadataOf>[0]
  ): void {
    this.send({
      type: "tool-input-available",
      toolCallId,
      toolName,
      input: args ?? {},
      ...executed(payload),
      ...(isDynamic ? { dynamic: true } : {}),
      ...metadataOf(payload)
    })
  }

  /** Tells of a call that was made where this client has not read: in a run before, or in the run of another agent. */
  private announce({
    payload,
    runId
  }: Of<
    "tool-result" | "tool-error" | "tool-output-denied" | "tool-call-approval" | "tool-call-suspended"
  >): void {
    const { args, toolCallId, toolName } = payload
    const known = this.calls.get(toolCallId)
    if (known !== undefined && !known.isInputOpen) return
    this.calls.set(toolCallId, { runId, isDynamic: known?.isDynamic ?? false, isInputOpen: false })
    this.available(toolCallId, toolName, args, known?.isDynamic ?? false, {})
  }

  private result(chunk: Of<"tool-result">): void {
    const { isError, result, toolCallId } = chunk.payload
    this.announce(chunk)
    if (isError === true) this.error(toolCallId, result, chunk.payload)
    else {
      const output = result ?? null
      const rest = { ...executed(chunk.payload), ...metadataOf(chunk.payload) }
      this.send({ type: "tool-output-available", toolCallId, output, ...rest })
    }
    this.settled(toolCallId)
  }

  private error(
    toolCallId: string,
    error: unknown,
    payload: { readonly providerExecuted?: boolean } & Parameters<typeof metadataOf>[0]
  ): void {
    const rest = { ...executed(payload), ...metadataOf(payload) }
    this.send({ type: "tool-output-error", toolCallId, errorText: this.errorText(error), ...rest })
  }

  approval(chunk: Of<"tool-call-approval">, approvalId: string): void {
    this.announce(chunk)
    this.send({ type: "tool-approval-request", approvalId, toolCallId: chunk.payload.toolCallId })
  }

  /** The AI SDK has no part for it, so it is one of data, which says what to answer and where. */
  suspension(chunk: Of<"tool-call-suspended">): void {
    this.announce(chunk)
    const { toolCallId } = chunk.payload
    const data = { ...chunk.payload, status: "suspended", runId: chunk.runId }
    this.suspended.set(toolCallId, data)
    this.send({ type: "data-tool-call-suspended", id: toolCallId, data })
  }

  /** What waited below a call, or for an answer to it, waits no longer. */
  private settled(toolCallId: string): void {
    for (const [id, data] of this.suspended) {
      if (id !== toolCallId && !id.startsWith(below(toolCallId, ""))) continue
      this.suspended.delete(id)
      this.send({ type: "data-tool-call-suspended", id, data: { ...data, status: "resumed" } })
    }
    for (const id of this.calls.keys()) {
      if (!id.startsWith(below(toolCallId, ""))) continue
      this.calls.delete(id)
      this.send({ type: "tool-output-available", toolCallId: id, output: null })
    }
  }

  /** The outcome of a call below another one, when it has a part of its own. */
  outcomeBelow(toolCallId: string, chunk: Of<"tool-result" | "tool-error" | "tool-output-denied">): void {
    const id = below(toolCallId, chunk.payload.toolCallId)
    if (!this.calls.has(id)) return
    this.take({ ...chunk, payload: { ...chunk.payload, toolCallId: id } } as typeof chunk)
    this.calls.delete(id)
  }

  /** What a call shows before it is done. */
  preliminary(toolCallId: string, output: unknown): void {
    if (!this.calls.has(toolCallId)) return
    this.send({ type: "tool-output-available", toolCallId, output: output ?? null, preliminary: true })
  }

  /** The outcome of a call that went on in the background, in place of its acknowledgement. */
  taskOutcome(toolCallId: string, runId: string, outcome: { readonly output: unknown } | string): void {
    if (!this.has(toolCallId, runId)) return
    this.send(
      typeof outcome === "string"
        ? { type: "tool-output-error", toolCallId, errorText: outcome }
        : { type: "tool-output-available", toolCallId, output: outcome.output ?? null }
    )
  }
}
