/** One step that executes something: its attempts, until one succeeds, suspends or is the last. */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import { Caller, type CallerInfo } from "../agent/caller.js"
import {
  InvalidStepInput,
  InvalidStepOutput,
  InvalidStepResumeData,
  StepTimedOut
} from "../protocol/Errors.js"
import { squash } from "../protocol/foreignValue.js"
import { logDebug, logWarning } from "../protocol/logging.js"
import { type JsonValue, toJson } from "../protocol/safeJson.js"
import * as Usage from "../protocol/tokens.js"
import type { DataPart } from "../tool/ToolContext.js"
import type { Body, NodeStep, Pace, StepContext } from "./definition.js"
import { failureOf } from "./failures.js"
import type { Frame } from "./frame.js"
import type { WorkflowRun } from "./run.js"

/** What a step came to. */
export type Outcome =
  | { readonly _tag: "Done"; readonly value: JsonValue }
  | { readonly _tag: "Suspended"; readonly data?: JsonValue }

/** The longest pause between two attempts, in milliseconds. */
const longestPause = 30_000

const pause = ({ delayMs }: Pace, attempt: number): number =>
  Math.min(longestPause, delayMs * 2 ** (attempt - 1))

/** The signal of an attempt, made when somebody asks for it: most do not. */
class Signal {
  private controller: AbortController | undefined
  private stopped: { readonly reason: unknown } | undefined

  readonly get = (): AbortSignal => {
    this.controller ??= new AbortController()
    if (this.stopped !== undefined) this.controller.abort(this.stopped.reason)
    return this.controller.signal
  }

  readonly stop = (reason: unknown): void => {
    if (this.stopped !== undefined) return
    this.stopped = { reason }
    this.controller?.abort(reason)
  }
}

type Leaf<R> = Extract<Body<R>, { readonly _tag: "Leaf" }>

/** One attempt. */
class Attempt<R> {
  private isOver = false
  private readonly signal = new Signal()
  private readonly nested: Array<() => Usage.Usage> = []
  private readonly suspended = Deferred.unsafeMake<JsonValue | undefined, InvalidStepOutput>(FiberId.none)

  constructor(
    private readonly run: WorkflowRun<R>,
    private readonly frame: Frame,
    private readonly stepId: string,
    private readonly leaf: Leaf<R>,
    private readonly timeout: number | undefined,
    private readonly number: number
  ) {}

  /** Executes the step, and ends as soon as it is done, suspends, or takes too long. */
  execute(input: JsonValue): Effect.Effect<Outcome, unknown, R> {
    const { run, stepId } = this
    return Effect.suspend(() => {
      run.attempted(stepId, this.number, { stop: this.signal.stop, used: () => this.used() })
      const work = Effect.flatMap(this.resumeData, resumeData =>
        this.leaf.execute(input, this.context(resumeData))
      ).pipe(
        Effect.provideService(Caller, this.caller),
        Effect.map((value): Outcome => ({ _tag: "Done", value })),
        // A step that interrupts itself has failed; one that is interrupted does not come here.
        Effect.catchAllCause(cause => Effect.fail(failureOf(cause, run.graph.id, stepId))),
        Effect.exit,
        // What a step comes to once it has suspended is dropped.
        Effect.flatMap(exit =>
          Effect.if(Deferred.isDone(this.suspended), { onTrue: () => Effect.never, onFalse: () => exit })
        )
      )
      const suspended = Effect.map(
        Deferred.await(this.suspended),
        (data): Outcome => ({ _tag: "Suspended", ...(data === undefined ? {} : { data }) })
      )
      return Effect.raceFirst(this.inTime(work), suspended)
    }).pipe(
      Effect.onExit(exit =>
        Effect.sync(() => {
          this.isOver = true
          if (exit._tag === "Failure") this.signal.stop(this.reason(exit.cause))
          run.attemptOver(stepId)
        })
      )
    )
  }

  private reason(cause: Cause.Cause<unknown>): unknown {
    if (!Cause.isInterruptedOnly(cause)) return squash(cause)
    return this.run.control.halted === undefined
      ? new DOMException("The step was stopped: the run cannot go on.", "AbortError")
      : this.run.haltReason
  }

  private inTime(work: Effect.Effect<Outcome, unknown, R>): Effect.Effect<Outcome, unknown, R> {
    const { run, stepId, timeout } = this
    if (timeout === undefined) return work
    const expired = Effect.flatMap(Effect.sleep(timeout), () => {
      const error = new StepTimedOut({
        workflowId: run.graph.id,
        stepId,
        milliseconds: timeout,
        message: `Step "${stepId}" was stopped: it took longer than its ${timeout} ms.`
      })
      this.signal.stop(error)
      return Effect.fail(error)
    })
    return Effect.raceFirst(work, expired)
  }

  private used(): Usage.Usage {
    return this.nested.reduce((sum, used) => Usage.combine(sum, used()), Usage.empty)
  }

  /** What the step was resumed with, read again: it was checked when it was resumed. */
  private get resumeData(): Effect.Effect<unknown, InvalidStepResumeData> {
    const state = this.run.steps.get(this.stepId)
    if (state?.resumeData === undefined) return Effect.succeed(undefined)
    return Effect.mapError(this.leaf.resume.decode(state.resumeData, state.suspendData), ({ message }) =>
      wrongResumeData(this.run.graph.id, this.stepId, message)
    )
  }

  /** What a run that the step starts needs to know of it. */
  private get caller(): CallerInfo {
    const { run } = this
    return {
      call: undefined,
      depth: run.caller.depth + 1,
      maxDepth: run.caller.maxDepth,
      turns: run.caller.turns,
      signal: this.signal.get,
      counts: used => {
        if (!this.isOver) this.nested.push(used)
      },
      tell: output => {
        if (!this.isOver) this.tell(output)
      },
      mayGoOn: resume => run.inbox.hasRoom(resume)
    }
  }

  private tell(output: unknown): void {
    const { run, stepId } = this
    run.emit({ type: "step-output", runId: run.runId, from: "WORKFLOW", payload: { output, stepId } })
  }

  private whileRunning(write: () => void): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.isOver) return logDebug(`Step "${this.stepId}" wrote after it had ended: dropped.`)
      write()
      return this.run.room
    })
  }

  private context(resumeData: unknown): StepContext {
    const { frame, number, run, signal, stepId } = this
    const suspendData = run.steps.get(stepId)?.suspendData
    return {
      ...frame.context,
      stepId,
      attempt: number,
      getInitData: () => frame.init,
      resumeData,
      suspendData,
      get abortSignal() {
        return signal.get()
      },
      suspend: data => this.suspend(data),
      write: output => this.whileRunning(() => this.tell(output)),
      writeData: (part: DataPart) => {
        const isData = typeof part?.type === "string" && part.type.startsWith("data-")
        if (isData) return this.whileRunning(() => run.emit({ ...part, runId: run.runId, from: "WORKFLOW" }))
        return logWarning(`Step "${stepId}" wrote a part whose type does not begin with "data-": dropped.`)
      }
    }
  }

  private suspend(data: unknown): Effect.Effect<never> {
    const checked =
      data === undefined ? Effect.succeed(undefined) : Effect.map(this.leaf.suspend.encode(data), toJson)
    const wrong = ({ message }: { readonly message: string }) =>
      new InvalidStepOutput({
        workflowId: this.run.graph.id,
        stepId: this.stepId,
        message: `Step "${this.stepId}" suspended with wrong data: ${message}`
      })
    return Effect.zipRight(Deferred.complete(this.suspended, Effect.mapError(checked, wrong)), Effect.never)
  }
}

/** A step was resumed with what it does not take. */
export const wrongResumeData = (workflowId: string, stepId: string, message: string): InvalidStepResumeData =>
  new InvalidStepResumeData({
    workflowId,
    stepId,
    message: `Step "${stepId}" cannot be resumed with this: ${message}`
  })

/** Executes a step, again as long as it fails and has retries left. */
export const execute = <R>(
  run: WorkflowRun<R>,
  frame: Frame,
  step: NodeStep<R>,
  leaf: Leaf<R>,
  stepId: string,
  input: JsonValue
): Effect.Effect<Outcome, unknown, R> => {
  const pace: Pace = {
    retries: step.retries ?? frame.pace.retries,
    delayMs: step.retryDelayMs ?? frame.pace.delayMs
  }
  const from = (number: number): Effect.Effect<Outcome, unknown, R> =>
    Effect.catchAll(new Attempt(run, frame, stepId, leaf, step.timeout, number).execute(input), error => {
      // The same input is as wrong the next time.
      const isFinal = error instanceof InvalidStepInput || error instanceof InvalidStepResumeData
      if (number > pace.retries || isFinal) return Effect.fail(error)
      return Effect.zipRight(
        Effect.sleep(pause(pace, number)),
        Effect.suspend(() => from(number + 1))
      )
    })
  return from(1)
}
