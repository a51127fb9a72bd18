/** What both protocols of OpenAI carry of a response: texts, calls that the client is to execute, how it ended, what it used. */
import type { Chunk, Of } from "../../protocol/Chunk.js"
import { stringify } from "../../protocol/safeJson.js"
import * as Usage from "../../protocol/tokens.js"
import { brokenOff, type ErrorText } from "./Mapper.js"
import { type Failure, runAborted, runFailed, runSuspended } from "./OpenAiError.js"

/** What is told as it comes. */
export interface Listener {
  /** A response has begun: with its first chunk, whatever that is. */
  readonly begun: (runId: string) => void
  readonly text: (delta: string) => void
  readonly callBegun: (call: ClientCall) => void
  readonly callDelta: (call: ClientCall, delta: string) => void
  readonly callEnded: (call: ClientCall) => void
}

export interface ClientCall {
  readonly index: number
  readonly id: string
  readonly name: string
  arguments: string
}

export type Ending = "stop" | "length" | "content_filter" | "tool_calls"

export class OpenAiAnswer {
  private isBegun = false
  private isRunOpen = false
  private isSeparated = true
  private readonly calls = new Map<string, ClientCall>()
  private readonly open = new Set<string>()
  private readonly waiting = new Map<string, Of<"tool-call-approval" | "tool-call-suspended">>()
  private count = 0
  usage: Usage.Usage = Usage.empty
  ending: Ending = "stop"
  failure: Failure | undefined

  constructor(
    private readonly listener: Listener,
    private readonly errorText: ErrorText,
    private readonly clientTools: ReadonlySet<string>
  ) {}

  take(chunk: Chunk) {
    if (!this.isBegun) {
      this.isBegun = true
      this.listener.begun(chunk.runId)
    }
    if (chunk.type.startsWith("background-task-") || chunk.type.startsWith("data-")) return
    if (chunk.type === "finish") return this.finish(chunk)
    this.isRunOpen = true
    switch (chunk.type) {
      case "text-delta":
        return this.text(chunk.payload.text)
      case "tool-call-input-streaming-start":
        return void this.begin(chunk.payload, chunk.payload.providerExecuted)
      case "tool-call-delta":
        return this.delta(chunk.payload.toolCallId, chunk.payload.argsTextDelta)
      case "tool-call":
        return this.call(chunk)
      case "tool-call-approval":
      case "tool-call-suspended":
        this.waiting.set(chunk.payload.toolCallId, chunk)
        return
      case "error":
        this.failure = runFailed(this.errorText(chunk.payload.error))
        return
      case "abort":
        this.failure = runAborted
        return
      default:
    }
  }

  /** Of two turns each has its own paragraph; what one turn says stands as it was said. */
  private text(delta: string): void {
    if (delta === "") return
    const isFirst = !this.isSeparated
    this.isSeparated = true
    this.listener.text(isFirst ? `\n\n${delta}` : delta)
  }

  /** Calls of tools that run here are none of the client's business: it would try to execute them. */
  private begin(
    { toolCallId, toolName }: { readonly toolCallId: string; readonly toolName: string },
    isExecuted = false
  ): ClientCall | undefined {
    if (isExecuted || !this.clientTools.has(toolName)) return undefined
    if (this.open.has(toolCallId)) return this.calls.get(toolCallId)
    const call: ClientCall = { index: this.count++, id: toolCallId, name: toolName, arguments: "" }
    this.calls.set(toolCallId, call)
    this.open.add(toolCallId)
    this.listener.callBegun(call)
    return call
  }

  private delta(toolCallId: string, delta: string): void {
    const call = this.calls.get(toolCallId)
    if (call === undefined || !this.open.has(toolCallId) || delta === "") return
    call.arguments += delta
    this.listener.callDelta(call, delta)
  }

  private call({ payload }: Of<"tool-call">): void {
    const call = this.begin(payload, payload.providerExecuted)
    if (call === undefined) return
    if (call.arguments === "") this.delta(call.id, stringify(payload.args ?? {}))
    this.close(call)
  }

  private close(call: ClientCall): void {
    if (this.open.delete(call.id)) this.listener.callEnded(call)
  }

  private closeAll(): void {
    for (const call of this.calls.values()) this.close(call)
  }

  private finish({ payload, runId }: Of<"finish">): void {
    this.closeAll()
    this.isRunOpen = false
    this.isSeparated = false
    this.usage = Usage.combine(this.usage, payload.output.usage)
    const { reason, stoppedBy } = payload.stepResult
    // A later turn has gone on: what failed or waited before is over.
    if (reason !== "error" && reason !== "aborted") this.failure = undefined
    if (reason === "suspended") {
      const calls = [...this.waiting.values()].map(({ payload }) => payload)
      this.failure = runSuspended(runId, calls)
    }
    this.waiting.clear()
    this.ending = endingOf(reason, stoppedBy)
  }

  end(failure: unknown): void {
    this.closeAll()
    if (!this.isBegun) this.listener.begun("none")
    if (failure === undefined && !this.isRunOpen && this.isBegun) return
    this.failure ??= runFailed(this.errorText(failure ?? brokenOff))
  }

  get clientCalls(): ReadonlyArray<ClientCall> {
    return [...this.calls.values()].sort((left, right) => left.index - right.index)
  }
}

type StepResult = Of<"finish">["payload"]["stepResult"]

/** A step limit cut the answer off, as a limit of tokens does. */
const endingOf = (reason: StepResult["reason"], stoppedBy: StepResult["stoppedBy"]): Ending => {
  if (stoppedBy === "client-tool") return "tool_calls"
  if (reason === "content-filter" || reason === "tripwire") return "content_filter"
  return reason === "length" || reason === "tool-calls" ? "length" : "stop"
}
