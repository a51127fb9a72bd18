/** The tool calls of one step: each a fiber, so many at once, outcomes told as they come. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { AnsweredCall } from "../model/Answer.js"
import { InvalidToolArguments, ToolNotFound, ToolTimedOut } from "../protocol/Errors.js"
import type { Message, ToolMessage, ToolResultOutput } from "../protocol/Message.js"
import { isErrorValue, type Tool } from "../tool/Tool.js"
import type { DataPart, ToolContext } from "../tool/ToolContext.js"
import * as ToolOutcome from "../tool/ToolOutcome.js"
import { Caller, type CallerInfo } from "./caller.js"
import { fork, type Run } from "./run.js"

type Execute<R> = NonNullable<Tool<string, R>["call"]>

/** A call that waits for its turn. */
interface Queued<R> {
  readonly call: AnsweredCall
  readonly tool: Tool<string, R>
  readonly execute: Execute<R>
}

/** What a call came to, and what the model is told of it when that is something else. */
interface Executed {
  readonly value: unknown
  readonly told?: ToolResultOutput
}

/** What the model is told of an output. A value that says that it is an error is no output. */
const withTold =
  (toModelOutput: Tool<string>["toModelOutput"]) =>
  (value: unknown): Effect.Effect<Executed, unknown> =>
    toModelOutput === undefined || isErrorValue(value)
      ? Effect.succeed({ value })
      : Effect.map(toModelOutput(value === undefined ? null : value), told => ({
          value,
          told: ToolOutcome.toldOutput(told)
        }))

export class Execution<R> {
  /** Calls that this side answers. */
  private readonly calls: ReadonlyArray<AnsweredCall>
  private readonly waiting: Array<Queued<R>> = []
  private readonly running = new Set<AnsweredCall>()
  private readonly outcomes = new Map<AnsweredCall, ToolOutcome.ToolOutcome>()
  private clientCalls = 0

  constructor(
    private readonly run: Run<R>,
    calls: ReadonlyArray<AnsweredCall>,
    /** The prompt that the model answered with these calls. */
    private readonly messages: ReadonlyArray<Message>,
    private readonly tools: ReadonlyMap<string, Tool<string, R>>
  ) {
    this.calls = calls.filter(call => !call.isProviderExecuted)
  }

  /** Settles what needs no execution and queues the rest, in call order. */
  prepare(): void {
    for (const call of this.calls) {
      const { toolName } = call.chunk.payload
      const tool = this.tools.get(toolName)
      if (call.malformed !== undefined) {
        const message = `The arguments for tool "${toolName}" are no JSON (${call.malformed}). Write them again, complete.`
        this.fail(call, new InvalidToolArguments({ toolName, message }))
      } else if (tool === undefined) {
        this.fail(call, notFound(toolName, [...this.tools.keys()]))
      } else if (tool.call === undefined) {
        this.clientCalls++
      } else {
        this.waiting.push({ call, tool, execute: tool.call })
      }
    }
  }

  /** Starts as many of the queued calls as may run beside those that do. */
  advance(): void {
    const { control, settings } = this.run
    // A tool may abort the run that calls it: then the calls behind it are not begun.
    while (control.halted === undefined && this.running.size < settings.toolCallConcurrency) {
      const next = this.waiting.shift()
      if (next === undefined) return
      this.start(next)
    }
  }

  private start({ call, execute, tool }: Queued<R>): void {
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
    let stopTimer: ReturnType<typeof fork> | undefined
    const settle = (outcome: () => ToolOutcome.ToolOutcome): void => {
      stopTimer?.(undefined)
      if (!this.running.delete(call)) return
      this.settle(call, outcome())
      this.run.inbox.notify()
    }
    const executing = Effect.suspend(() => execute(call.input, this.context(call, signal))).pipe(
      Effect.flatMap(withTold(tool.toModelOutput)),
      Effect.provideService(Caller, this.caller(call, signal))
    )
    const settled = Effect.matchCause(executing, {
      onFailure: cause => settle(() => ToolOutcome.fromExit(call.chunk, Exit.failCause(cause))),
      onSuccess: ({ told, value }) => settle(() => ToolOutcome.succeeded(call.chunk, value, told))
    })
    const stop = fork(this.run, settled, tell)
    const { timeout } = tool
    if (timeout === undefined || !this.running.has(call)) return
    const expire = (): void => {
      const error = timedOut(tool.name, timeout)
      settle(() => ToolOutcome.failed(call.chunk, error))
      // The outcome is told: a tool that does not stop holds nobody up but the end of its run.
      stop(error)
    }
    stopTimer = fork(this.run, Effect.map(Effect.sleep(timeout), expire))
  }

  private isOver(call: AnsweredCall): boolean {
    return this.outcomes.has(call)
  }

  private tellOutput(call: AnsweredCall, output: unknown): void {
    const { toolCallId, toolName } = call.chunk.payload
    const { emit, runId } = this.run
    emit({ type: "tool-output", runId, from: "USER", payload: { output, toolCallId, toolName } })
  }

  /** What a run that this call starts needs to know of it. */
  private caller(call: AnsweredCall, signal: () => AbortSignal): CallerInfo {
    const { caller, inbox, settings } = this.run
    return {
      depth: caller.depth + 1,
      maxDepth: Math.min(caller.maxDepth, caller.depth + settings.maxDepth),
      signal,
      counts: used => {
        if (!this.isOver(call)) this.run.nested.push(used)
      },
      tell: output => {
        if (!this.isOver(call)) this.tellOutput(call, output)
      },
      mayGoOn: resume => inbox.hasRoom(resume)
    }
  }

  private context(call: AnsweredCall, signal: () => AbortSignal): ToolContext {
    const { agentId, emit, inbox, requestContext, runId, thread } = this.run
    const { toolCallId, toolName } = call.chunk.payload
    const room = Effect.async<void>(resume => {
      if (inbox.hasRoom(() => resume(Effect.void))) resume(Effect.void)
    })
    const whileRunning = (write: () => void): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (this.isOver(call)) {
          return Effect.logDebug(`Tool "${toolName}" wrote after its call ${toolCallId} had ended: dropped.`)
        }
        write()
        return inbox.isFull ? room : Effect.void
      })
    return {
      agentId,
      runId,
      toolCallId,
      toolName,
      threadId: thread?.id,
      resourceId: thread?.resourceId,
      requestContext,
      get abortSignal() {
        return signal()
      },
      messages: this.messages,
      write: output => whileRunning(() => this.tellOutput(call, output)),
      writeData: (part: DataPart) => {
        const isData = typeof part?.type === "string" && part.type.startsWith("data-")
        if (isData) return whileRunning(() => emit({ ...part, runId, from: "USER" }))
        return Effect.logWarning(
          `Tool "${toolName}" wrote a part whose type does not begin with "data-": dropped.`
        )
      }
    }
  }

  private settle(call: AnsweredCall, outcome: ToolOutcome.ToolOutcome): void {
    if (this.isOver(call)) return
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
    const content = this.calls.flatMap(call => {
      const part = this.outcomes.get(call)?.part
      return part === undefined ? [] : { ...part, toolName: call.part.toolName }
    })
    return content.length === 0 ? undefined : { role: "tool", content }
  }
}

const timedOut = (toolName: string, milliseconds: number): ToolTimedOut =>
  new ToolTimedOut({
    toolName,
    milliseconds,
    message: `Tool "${toolName}" was stopped: it took longer than its ${milliseconds} ms.`
  })

const notFound = (toolName: string, available: ReadonlyArray<string>): ToolNotFound =>
  new ToolNotFound({
    toolName,
    available,
    message:
      available.length === 0
        ? `There is no tool "${toolName}": no tools are available.`
        : `There is no tool "${toolName}". Available tools: ${available.join(", ")}.`
  })
