/** The tool calls of one step: each a fiber, so many at once, outcomes told as they come. */
import { Effect } from "effect"
import type { AnsweredCall } from "../model/Answer.js"
import { InvalidToolArguments, ToolNotFound } from "../protocol/Errors.js"
import type { Message, ToolMessage } from "../protocol/Message.js"
import type { Tool } from "../tool/Tool.js"
import type { DataPart, ToolContext } from "../tool/ToolContext.js"
import * as ToolOutcome from "../tool/ToolOutcome.js"
import { fork, type Run } from "./Run.js"

export class Execution<R> {
  /** Calls that this side answers. */
  private readonly calls: ReadonlyArray<AnsweredCall>
  private readonly waiting: Array<AnsweredCall> = []
  private readonly running = new Set<AnsweredCall>()
  private readonly outcomes = new Map<AnsweredCall, ToolOutcome.ToolOutcome>()
  private clientCalls = 0

  constructor(
    private readonly run: Run<R>,
    calls: ReadonlyArray<AnsweredCall>,
    /** The prompt that the model answered with these calls. */
    private readonly messages: ReadonlyArray<Message>
  ) {
    this.calls = calls.filter(call => !call.isProviderExecuted)
  }

  /** Settles what needs no execution and queues the rest, in call order. */
  prepare(): void {
    for (const call of this.calls) {
      const { toolName } = call.chunk.payload
      const tool = this.run.tools.get(toolName)
      if (call.malformed !== undefined) {
        const message = `The arguments for tool "${toolName}" are no JSON (${call.malformed}). Write them again, complete.`
        this.fail(call, new InvalidToolArguments({ toolName, message }))
      } else if (tool === undefined) {
        this.fail(call, notFound(toolName, [...this.run.tools.keys()]))
      } else if (tool.call === undefined) {
        this.clientCalls++
      } else {
        this.waiting.push(call)
      }
    }
  }

  /** Starts as many of the queued calls as may run beside those that do. */
  readonly advance: Effect.Effect<void, never, R> = Effect.suspend(() => this.startNext())

  private startNext(): Effect.Effect<void, never, R> {
    if (this.running.size >= this.run.settings.toolCallConcurrency) return Effect.void
    const call = this.waiting.shift()
    if (call === undefined) return Effect.void
    const tool = this.run.tools.get(call.chunk.payload.toolName)
    this.running.add(call)
    return Effect.flatMap(fork(this.run, this.execute(call, tool)), () => this.startNext())
  }

  private execute(call: AnsweredCall, tool: Tool<string, R> | undefined): Effect.Effect<void, never, R> {
    if (tool?.call === undefined) return Effect.void
    const controller = new AbortController()
    return tool.call(call.input, this.context(call, controller.signal)).pipe(
      Effect.onInterrupt(() => Effect.sync(() => controller.abort(this.run.control.aborted?.reason))),
      Effect.exit,
      Effect.map(exit => {
        this.running.delete(call)
        this.settle(call, ToolOutcome.fromExit(call.chunk, exit))
        this.run.inbox.notify()
      })
    )
  }

  private context(call: AnsweredCall, abortSignal: AbortSignal): ToolContext {
    const { agentId, emit, runId } = this.run
    const { toolCallId, toolName } = call.chunk.payload
    const whileRunning = (write: () => void): Effect.Effect<void> =>
      Effect.suspend(() =>
        this.outcomes.has(call)
          ? Effect.logDebug(`Tool "${toolName}" wrote after its call ${toolCallId} had ended: dropped.`)
          : Effect.sync(write)
      )
    return {
      agentId,
      runId,
      toolCallId,
      toolName,
      abortSignal,
      messages: this.messages,
      write: output =>
        whileRunning(() =>
          emit({ type: "tool-output", runId, from: "USER", payload: { output, toolCallId, toolName } })
        ),
      writeData: (part: DataPart) => whileRunning(() => emit({ ...part, runId, from: "USER" }))
    }
  }

  private settle(call: AnsweredCall, outcome: ToolOutcome.ToolOutcome): void {
    if (this.outcomes.has(call)) return
    this.outcomes.set(call, outcome)
    this.run.emit(outcome.chunk)
  }

  private fail(call: AnsweredCall, error: unknown): void {
    this.settle(call, ToolOutcome.failed(call.chunk, error))
  }

  /** Ends every call that has no outcome with this failure. What a call that still runs comes to is dropped. */
  cutOff(failureOf: (toolName: string) => unknown): void {
    this.waiting.length = 0
    this.running.clear()
    for (const call of this.calls) this.fail(call, failureOf(call.chunk.payload.toolName))
  }

  /** Whether every call that is executed here has its outcome. */
  get isDone(): boolean {
    return this.waiting.length === 0 && this.running.size === 0
  }

  /** Whether a call was left to the client. */
  get hasClientCalls(): boolean {
    return this.clientCalls > 0
  }

  /** The outcomes in call order, for the next prompt. */
  toMessage(): ToolMessage | undefined {
    const content = this.calls.flatMap(call => this.outcomes.get(call)?.part ?? [])
    return content.length === 0 ? undefined : { role: "tool", content }
  }
}

const notFound = (toolName: string, available: ReadonlyArray<string>): ToolNotFound =>
  new ToolNotFound({
    toolName,
    available,
    message:
      available.length === 0
        ? `There is no tool "${toolName}": no tools are available.`
        : `There is no tool "${toolName}". Available tools: ${available.join(", ")}.`
  })
