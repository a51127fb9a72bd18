/** The tool calls of one step: each a fiber, so many at once, outcomes told as they come. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { AnsweredCall } from "../model/Answer.js"
import { InvalidToolArguments, ToolNotFound } from "../protocol/Errors.js"
import type { Message, ToolMessage } from "../protocol/Message.js"
import type { Tool } from "../tool/Tool.js"
import type { DataPart, ToolContext } from "../tool/ToolContext.js"
import * as ToolOutcome from "../tool/ToolOutcome.js"
import { fork, type Run } from "./run.js"

type Execute<R> = NonNullable<Tool<string, R>["call"]>

export class Execution<R> {
  /** Calls that this side answers. */
  private readonly calls: ReadonlyArray<AnsweredCall>
  private readonly waiting: Array<{ readonly call: AnsweredCall; readonly execute: Execute<R> }> = []
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
        this.waiting.push({ call, execute: tool.call })
      }
    }
  }

  /** Starts as many of the queued calls as may run beside those that do. */
  advance(): void {
    const { control, settings } = this.run
    // A tool may abort the run that calls it: then the calls behind it are not begun.
    while (control.aborted === undefined && this.running.size < settings.toolCallConcurrency) {
      const next = this.waiting.shift()
      if (next === undefined) return
      this.start(next.call, next.execute)
    }
  }

  private start(call: AnsweredCall, execute: Execute<R>): void {
    // Made when the tool asks for its signal: most do not.
    let controller: AbortController | undefined
    let stopped: { readonly reason: unknown } | undefined
    const signal = (): AbortSignal => {
      controller ??= new AbortController()
      // A tool that goes on although it was stopped may ask late.
      if (stopped !== undefined) controller.abort(stopped.reason)
      return controller.signal
    }
    const tell = (reason: unknown): void => {
      stopped = { reason }
      controller?.abort(reason)
    }
    this.running.add(call)
    const settle = (exit: Exit.Exit<unknown, unknown>): void => {
      this.running.delete(call)
      this.settle(call, ToolOutcome.fromExit(call.chunk, exit))
      this.run.inbox.notify()
    }
    const executing = Effect.suspend(() => execute(call.input, this.context(call, signal)))
    const settled = Effect.matchCause(executing, {
      onFailure: cause => settle(Exit.failCause(cause)),
      onSuccess: value => settle(Exit.succeed(value))
    })
    fork(this.run, settled, tell)
  }

  private context(call: AnsweredCall, signal: () => AbortSignal): ToolContext {
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
      get abortSignal() {
        return signal()
      },
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
