/** The tool calls of one step: each a fiber, so many at once, outcomes told as they come. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Resolution } from "../../background/resolution.js"
import type { AnsweredCall } from "../../model/Answer.js"
import { InvalidToolArguments, ToolCallCutOff, ToolNotFound, ToolTimedOut } from "../../protocol/Errors.js"
import type { Message, ToolMessage } from "../../protocol/Message.js"
import type { Tool } from "../../tool/Tool.js"
import type { DataPart, ToolContext } from "../../tool/ToolContext.js"
import * as ToolOutcome from "../../tool/ToolOutcome.js"
import { Caller, type CallerInfo } from "../caller.js"
import { acknowledged, dispatch } from "../tasks/dispatching.js"
import type { RunTasks } from "../tasks/runTasks.js"
import { withTold } from "../tasks/told.js"
import { fork, type Run } from "./run.js"

type Execute<R> = NonNullable<Tool<string, R>["call"]>

/** A call that waits for its turn. */
interface Queued<R> {
  readonly call: AnsweredCall
  readonly tool: Tool<string, R>
  readonly execute: Execute<R>
  /** Where it runs; `undefined`: here. */
  readonly resolution: Resolution | undefined
}

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
        const resolution = this.run.tasks?.resolve(tool, call.aside)
        this.waiting.push({ call, tool, execute: tool.call, resolution })
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
      const { tasks } = this.run
      if (tasks === undefined || next.resolution?.isBackground !== true) this.start(next)
      else this.dispatch(tasks, next, next.resolution)
    }
  }

  /** Starts a call in the background: what is told here is that it has started. */
  private dispatch(tasks: RunTasks<R>, next: Queued<R>, resolution: Resolution): void {
    const { call } = next
    this.running.add(call)
    const settle = (outcome: ToolOutcome.ToolOutcome): void => {
      if (!this.running.delete(call)) return
      this.settle(call, outcome)
      this.run.inbox.notify()
    }
    const dispatching = dispatch(this.run, tasks, { ...next, resolution }, this.messages)
    const dispatched = Effect.matchCause(dispatching, {
      onFailure: cause => settle(ToolOutcome.fromExit(call.chunk, Exit.failCause(cause))),
      onSuccess: taskId => {
        if (!this.running.has(call)) return
        if (taskId === undefined) {
          // Every slot is taken: it runs here.
          this.start(next)
          return
        }
        const { runId } = this.run
        const { toolCallId, toolName } = call.chunk.payload
        const payload = { taskId, toolName, toolCallId }
        this.run.emit({ type: "background-task-started", runId, from: "AGENT", payload })
        settle(acknowledged(call, taskId))
      }
    })
    fork(this.run, dispatched)
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
      Effect.provideService(Caller, this.caller(call, signal)),
      work => this.run.telemetry.tool(tool.definition, call, work)
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
      taskId: undefined,
      resumeData: undefined,
      suspend: () =>
        Effect.dieMessage(
          `Tool "${toolName}" cannot suspend: this call runs in the foreground. Enable it for the background to suspend it.`
        ),
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
    this.run.telemetry.settled(call, outcome)
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

/** Why the calls of an answer that was cut off are not executed. */
export const cutOffBecause =
  (reason: "length" | "content-filter") =>
  (toolName: string): ToolCallCutOff =>
    new ToolCallCutOff({
      toolName,
      message:
        reason === "length"
          ? `Tool "${toolName}" was not executed: the token limit cut the answer off, its arguments may be incomplete.`
          : `Tool "${toolName}" was not executed: a content filter cut the answer off.`
    })

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
