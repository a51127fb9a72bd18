/** The tool calls of one step: each a fiber, so many at once, outcomes told as they come. */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Resolution } from "../../background/resolution.js"
import type { AnsweredCall } from "../../model/Answer.js"
import { InvalidToolArguments } from "../../protocol/Errors.js"
import { callUser } from "../../protocol/foreignValue.js"
import { part } from "../../protocol/lazily.js"
import type { Message, ToolMessage } from "../../protocol/Message.js"
import { toJson } from "../../protocol/safeJson.js"
import type { Tool } from "../../tool/Tool.js"
import * as ToolOutcome from "../../tool/ToolOutcome.js"
import { Caller, type CallerInfo } from "../caller.js"
import type { Decided } from "../suspension/runSuspension.js"
import { type SavedCall, type WaitsFor, waitingPart } from "../suspension/snapshot.js"
import type { RunTasks } from "../tasks/runTasks.js"
import { withTold } from "../tasks/told.js"
import { approvalGate, beside, forApproval, nowhere, waitsFor } from "./approving.js"
import { contextOf, type Resumed } from "./callContext.js"
import { logDefect, notFound, timedOut } from "./callFailures.js"
import { fork, type Run, turnsOf } from "./run.js"

/** Of runs whose calls may run in the background: see `parts.ts`. */
export const dispatching = part(() => import("../tasks/dispatching.js"))

type Execute<R> = NonNullable<Tool<string, R>["call"]>

/** A call that waits for its turn. */
interface Queued<R> {
  readonly call: AnsweredCall
  readonly tool: Tool<string, R>
  readonly execute: Execute<R>
  /** Where it runs; `undefined`: here. */
  readonly resolution: Resolution | undefined
  /** Whether somebody has to approve it first; `undefined`: nobody has. */
  readonly gate?: Effect.Effect<boolean, InvalidToolArguments> | undefined
  /** What it was laid aside with, and what it was resumed with. */
  readonly resumed?: Resumed | undefined
}

/** A decision about a call, and what it needs. */
export interface DecidedCall<R> {
  readonly decided: Decided
  readonly tool: Tool<string, R> | undefined
  readonly suspendData: unknown
}

export class Execution<R> {
  /** Calls that this side answers. */
  private readonly calls: ReadonlyArray<AnsweredCall>
  private readonly waiting: Array<Queued<R>> = []
  private readonly running = new Set<AnsweredCall>()
  private readonly outcomes = new Map<AnsweredCall, ToolOutcome.ToolOutcome>()
  /** Calls that wait for somebody. */
  private pending: Map<AnsweredCall, WaitsFor> | undefined
  private clientCalls = 0

  constructor(
    private readonly run: Run<R>,
    calls: ReadonlyArray<AnsweredCall>,
    /** The prompt that the model answered with these calls. */
    private readonly messages: ReadonlyArray<Message>,
    private readonly tools: ReadonlyMap<string, Tool<string, R>>,
    /** Tells an outcome. */
    private readonly tell: (chunk: ToolOutcome.ToolOutcome["chunk"]) => void = run.emit
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
        const gate = approvalGate(this.run, tool, call, this.messages)
        this.waiting.push({ call, tool, execute: tool.call, resolution, gate })
      }
    }
  }

  /** Carries out what was decided about a call that was laid aside. */
  decide(call: AnsweredCall, { decided, suspendData, tool }: DecidedCall<R>): void {
    if (decided._tag === "Declined" || tool?.call === undefined) {
      this.settle(
        call,
        ToolOutcome.denied(call.chunk, decided._tag === "Declined" ? decided.reason : undefined)
      )
    } else if (decided._tag === "Approved") {
      const resolution = this.run.tasks?.resolve(tool, call.aside)
      this.waiting.push({ call, tool, execute: tool.call, resolution })
    } else {
      const resumed = { resumeData: decided.data, suspendData }
      this.waiting.push({ call, tool, execute: tool.call, resolution: undefined, resumed })
    }
  }

  /** Starts as many of the queued calls as may run beside those that do. */
  advance(): void {
    const { control, settings } = this.run
    // A tool may abort the run that calls it: then the calls behind it are not begun.
    while (control.halted === undefined && this.running.size < settings.toolCallConcurrency) {
      const next = this.waiting.shift()
      if (next === undefined) return
      if (next.gate === undefined) this.begin(next)
      else this.ask(next, next.gate)
    }
  }

  private begin(next: Queued<R>): void {
    const { tasks } = this.run
    if (tasks === undefined || next.resolution?.isBackground !== true) this.start(next)
    else this.dispatch(tasks, next, next.resolution)
  }

  /** Finds out whether somebody has to approve the call. */
  private ask(next: Queued<R>, gate: Effect.Effect<boolean, InvalidToolArguments>): void {
    const { call } = next
    this.running.add(call)
    const answered = Effect.matchCause(gate, {
      onFailure: cause => {
        if (!this.running.delete(call)) return
        this.settle(call, ToolOutcome.fromExit(call.chunk, Exit.failCause(cause)))
        this.run.inbox.notify()
      },
      onSuccess: mustWait => {
        if (!this.running.has(call)) return
        if (mustWait) this.layAside(call, forApproval)
        else this.begin(next)
      }
    })
    fork(this.run, answered)
  }

  /** The call waits for somebody. Where no run can be kept, the run has failed instead. Whether it waits. */
  private layAside(call: AnsweredCall, waits: WaitsFor): boolean {
    if (this.run.suspension.store === undefined) {
      this.run.control.fail(nowhere(this.run.agentId, call.chunk.payload.toolName))
      return false
    }
    this.running.delete(call)
    this.pending ??= new Map()
    this.pending.set(call, waits)
    this.run.inbox.notify()
    return true
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
    const { acknowledged, dispatch } = dispatching.get()
    const dispatched = dispatch(this.run, tasks, { ...next, resolution }, this.messages)
    const told = Effect.matchCause(dispatched, {
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
    fork(this.run, told)
  }

  private start({ call, execute, resumed, tool }: Queued<R>): void {
    // Made when the tool asks for its signal: most do not.
    let controller: AbortController | undefined
    let stopped: { readonly reason: unknown } | undefined
    const signal = (): AbortSignal => {
      controller ??= new AbortController()
      // A tool that goes on although it was stopped may ask late.
      if (stopped !== undefined) controller.abort(stopped.reason)
      return controller.signal
    }
    let isLaidAside = false
    const tell = (reason: unknown): void => {
      if (isLaidAside) return
      stopped = { reason }
      controller?.abort(reason)
    }
    this.running.add(call)
    let stopTimer: ReturnType<typeof fork> | undefined
    let stop: ReturnType<typeof fork> | undefined
    const suspend = (data: unknown): void => {
      // Later ones, and those of a call that has ended, are nobody's.
      if (isLaidAside || !this.running.has(call)) return
      isLaidAside = this.layAside(call, waitsFor(tool, data))
      if (!isLaidAside) return
      stopTimer?.(undefined)
      stop?.(undefined)
    }
    const settle = (outcome: () => ToolOutcome.ToolOutcome): void => {
      stopTimer?.(undefined)
      if (!this.running.delete(call)) return
      this.settle(call, outcome())
      this.run.inbox.notify()
    }
    const served = {
      call,
      messages: this.messages,
      isOver: () => this.isOver(call),
      tell: (output: unknown) => this.tellOutput(call, output)
    }
    const executing = callUser(() =>
      execute(call.input, contextOf(this.run, served, signal, suspend, resumed))
    ).pipe(
      Effect.flatMap(withTold(tool.toModelOutput)),
      Effect.provideService(Caller, this.caller(call, signal)),
      work => this.run.telemetry.tool(tool.definition, call, work)
    )
    const settled = Effect.matchCause(executing, {
      onFailure: cause => {
        if (this.running.has(call)) logDefect(this.run, call, cause)
        settle(() => ToolOutcome.fromExit(call.chunk, Exit.failCause(cause)))
      },
      onSuccess: ({ told, value }) => settle(() => ToolOutcome.succeeded(call.chunk, value, told))
    })
    stop = fork(this.run, settled, tell)
    // It may have suspended before anybody had its fiber.
    if (isLaidAside) stop(undefined)
    const { timeout } = tool
    if (timeout === undefined || !this.running.has(call)) return
    const expire = (): void => {
      const error = timedOut(tool.name, timeout)
      settle(() => ToolOutcome.failed(call.chunk, error))
      // The outcome is told: a tool that does not stop holds nobody up but the end of its run.
      stop?.(error)
    }
    stopTimer = fork(this.run, Effect.map(Effect.sleep(timeout), expire))
  }

  private isOver(call: AnsweredCall): boolean {
    return this.outcomes.has(call) || this.pending?.has(call) === true
  }

  private tellOutput(call: AnsweredCall, output: unknown): void {
    const { toolCallId, toolName } = call.chunk.payload
    const { emit, runId } = this.run
    emit({ type: "tool-output", runId, from: "USER", payload: { output, toolCallId, toolName } })
  }

  /** What a run that this call starts needs to know of it. */
  private caller(call: AnsweredCall, signal: () => AbortSignal): CallerInfo {
    const { caller, inbox, runId, settings } = this.run
    return {
      call: { runId, toolCallId: call.chunk.payload.toolCallId },
      depth: caller.depth + 1,
      maxDepth: Math.min(caller.maxDepth, caller.depth + settings.maxDepth),
      turns: turnsOf(this.run),
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

  private settle(call: AnsweredCall, outcome: ToolOutcome.ToolOutcome): void {
    if (this.outcomes.has(call)) return
    this.pending?.delete(call)
    this.outcomes.set(call, outcome)
    this.run.telemetry.settled(call, outcome)
    this.tell(outcome.chunk)
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

  /** Whether a call waits for somebody. */
  get isWaiting(): boolean {
    return this.pending !== undefined && this.pending.size > 0
  }

  /** What a call waits for. */
  waitsFor(call: AnsweredCall): WaitsFor | undefined {
    return this.pending?.get(call)
  }

  /** What a call came to. */
  outcomeOf(call: AnsweredCall): ToolOutcome.ToolOutcome | undefined {
    return this.outcomes.get(call)
  }

  /** Nobody asks the client while other calls wait: the model may call again. */
  endClientCalls(): void {
    if (this.clientCalls === 0) return
    this.clientCalls = 0
    for (const call of this.calls) {
      if (!this.isOver(call)) this.fail(call, beside(call.chunk.payload.toolName))
    }
  }

  /** The calls of a step that waits, as they are stored. */
  saved(): ReadonlyArray<SavedCall> {
    return this.calls.flatMap<SavedCall>(call => {
      const { toolCallId, toolName } = call.chunk.payload
      const waits = this.pending?.get(call)
      if (waits === undefined) {
        const part = this.outcomes.get(call)?.part
        return part === undefined ? [] : [{ status: "settled", toolCallId, part }]
      }
      const isOfStep = this.tools.get(toolName) !== this.run.allTools.get(toolName)
      return [
        {
          status: "waiting",
          toolCallId,
          toolName,
          input: toJson(call.input),
          ...waits,
          ...(call.aside === undefined ? {} : { aside: toJson(call.aside) }),
          ...(isOfStep ? { isOfStep } : {})
        }
      ]
    })
  }

  /** Whether a call was left to the client. */
  get hasClientCalls(): boolean {
    return this.clientCalls > 0
  }

  /** The outcomes in call order, for the next prompt. */
  toMessage(): ToolMessage | undefined {
    const content = this.calls.flatMap(call => {
      const { toolCallId, toolName } = call.part
      const waits = this.pending?.get(call)
      if (waits !== undefined) return waitingPart(toolCallId, toolName, waits.kind)
      const part = this.outcomes.get(call)?.part
      return part === undefined ? [] : { ...part, toolName }
    })
    return content.length === 0 ? undefined : { role: "tool", content }
  }
}
