/** Tool calls of one AG-UI run: opened before their arguments, closed behind them, each with its message. */
import type { Of } from "../../protocol/Chunk.js"
import { stringify } from "../../protocol/safeJson.js"
import type { AgUiEvent } from "./agUiEvents.js"
import type { ErrorText } from "./Mapper.js"
import { Names } from "./names.js"

interface Call {
  /** The id that the client knows: ids of the model may come back in a later turn. */
  readonly id: string
  isOpen: boolean
  hasArguments: boolean
  hasResult: boolean
  /** Of the conversation before: it waits for its result. */
  readonly isWaiting?: boolean
}

type Outcome = Of<"tool-result" | "tool-error" | "tool-output-denied">

const isToldBefore = ({ hasResult, isWaiting }: Call): boolean => isWaiting === true && !hasResult

const contentOf = (value: unknown): string => (typeof value === "string" ? value : stringify(value))

export class AgUiCalls {
  private readonly calls = new Map<string, Call>()
  private readonly names = new Names()

  constructor(
    private readonly send: (event: AgUiEvent) => void,
    private readonly errorText: ErrorText,
    told: ReadonlyArray<string>
  ) {
    // A run that goes on tells of its calls again, and a client would take their arguments twice.
    for (const id of told) {
      this.calls.set(this.names.claim(id), {
        id,
        isOpen: false,
        hasArguments: true,
        hasResult: false,
        isWaiting: true
      })
    }
  }

  private open(toolCallId: string, toolCallName: string, parentMessageId: string): Call {
    const call: Call = {
      id: this.names.claim(toolCallId),
      isOpen: true,
      hasArguments: false,
      hasResult: false
    }
    this.calls.set(toolCallId, call)
    this.send({ type: "TOOL_CALL_START", toolCallId: call.id, toolCallName, parentMessageId })
    return call
  }

  private arguments(call: Call, delta: string): void {
    if (delta === "") return
    call.hasArguments = true
    this.send({ type: "TOOL_CALL_ARGS", toolCallId: call.id, delta: delta.toWellFormed() })
  }

  private close(call: Call): void {
    if (!call.isOpen) return
    call.isOpen = false
    this.send({ type: "TOOL_CALL_END", toolCallId: call.id })
  }

  inputStart({ payload }: Of<"tool-call-input-streaming-start">, parentMessageId: string): void {
    const known = this.calls.get(payload.toolCallId)
    if (known?.isOpen === true || (known !== undefined && isToldBefore(known))) return
    this.open(payload.toolCallId, payload.toolName, parentMessageId)
  }

  inputDelta({ payload }: Of<"tool-call-delta">): void {
    const call = this.calls.get(payload.toolCallId)
    if (call?.isOpen === true) this.arguments(call, payload.argsTextDelta)
  }

  call(
    toolCallId: string,
    toolName: string,
    args: { readonly [key: string]: unknown } | undefined,
    parentMessageId: string
  ): Call {
    const known = this.calls.get(toolCallId)
    if (known !== undefined && isToldBefore(known)) return known
    const call = known?.isOpen === true ? known : this.open(toolCallId, toolName, parentMessageId)
    if (!call.hasArguments) this.arguments(call, stringify(args ?? {}))
    this.close(call)
    return call
  }

  /** The call as the client knows it; one that it was not told of is told. */
  known(
    { args, toolCallId, toolName }: Outcome["payload"] | Of<"tool-call-approval">["payload"],
    parentMessageId: string
  ): Call {
    const call = this.calls.get(toolCallId)
    return call === undefined || call.isOpen ? this.call(toolCallId, toolName, args, parentMessageId) : call
  }

  idOf(toolCallId: string): string {
    return this.calls.get(toolCallId)?.id ?? toolCallId
  }

  outcome(chunk: Outcome, parentMessageId: string) {
    this.result(this.known(chunk.payload, parentMessageId), chunk.runId, this.told(chunk))
  }

  result(call: Call, runId: string, content: string): void {
    if (call.hasResult) return
    call.hasResult = true
    const messageId = `${runId}:${call.id}:result`
    this.send({ type: "TOOL_CALL_RESULT", messageId, toolCallId: call.id, content, role: "tool" })
  }

  private told(chunk: Outcome): string {
    switch (chunk.type) {
      case "tool-result":
        return chunk.payload.isError === true
          ? this.errorText(chunk.payload.result)
          : contentOf(chunk.payload.result)
      case "tool-error":
        return this.errorText(chunk.payload.error)
      case "tool-output-denied":
        return chunk.payload.approval.reason ?? "The call was not approved."
    }
  }

  closeAll(): void {
    for (const call of this.calls.values()) this.close(call)
  }

  /** Calls that the client is to execute: they have no result. */
  pending(): ReadonlyArray<string> {
    return [...this.calls.values()].flatMap(({ hasResult, id, isWaiting }) =>
      hasResult || isWaiting === true ? [] : [id]
    )
  }
}
