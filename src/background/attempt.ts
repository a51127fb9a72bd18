/** One attempt of a task: a fiber of its tool, bounded by time, and stopped whether it listens or not. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import { squash } from "../protocol/foreignValue.js"
import type { JsonValue } from "../protocol/safeJson.js"
import { toJson } from "../protocol/safeJson.js"
import type { SetAlarm } from "./alarm.js"
import type { Core } from "./core.js"
import { type Executed, type Executor, inheritCall, type TaskContext } from "./Executor.js"
import type { Entry } from "./entry.js"
import type { Fork } from "./fibers.js"

/** How an attempt ended. */
export type AttemptEnd =
  | { readonly _tag: "Done"; readonly executed: Executed }
  | { readonly _tag: "Failed"; readonly error: unknown }
  | { readonly _tag: "TimedOut"; readonly milliseconds: number }
  | { readonly _tag: "Suspended"; readonly data: JsonValue }
  /** From outside: whoever did it knows why. */
  | { readonly _tag: "Stopped" }

const interrupt = (fiber: Fiber.RuntimeFiber<unknown, unknown>): void =>
  fiber.unsafeInterruptAsFork(FiberId.none)

/** One run of a tool, until it is over. */
class Attempt {
  private ending: AttemptEnd | undefined
  private tell: ((ending: AttemptEnd) => void) | undefined
  // Made when the tool asks for its signal: most do not.
  private controller: AbortController | undefined
  private stopped: { readonly reason: unknown } | undefined
  private stopAlarm: (() => void) | undefined
  private fiber: Fiber.RuntimeFiber<Executed, unknown> | undefined

  constructor(
    private readonly fork: Fork,
    private readonly setAlarm: SetAlarm,
    private readonly entry: Entry
  ) {}

  /** Starts the tool; how it ended, when it has at once. */
  start(executor: Executor, write: (output: unknown) => void): AttemptEnd | undefined {
    const { resumeData, suspendData, task } = this.entry
    const contextOf = (data: unknown): TaskContext => ({
      task,
      resumeData: data,
      suspendData,
      signal: () => this.signal(),
      suspend: data => Effect.async<never>(() => this.suspend(data)),
      write: output => {
        if (this.ending === undefined) write(output)
      }
    })
    // Reading what it was resumed with is part of the attempt: it may take time, and be stopped.
    const work = Effect.flatMap(inheritCall(executor), () =>
      Option.isNone(resumeData)
        ? executor.execute(contextOf(undefined))
        : Effect.flatMap(executor.readResumeData(resumeData.value, suspendData), data =>
            executor.execute(contextOf(data))
          )
    )
    this.entry.stop = reason => this.halt({ _tag: "Stopped" }, reason)
    const fiber = this.fork(work)
    this.fiber = fiber
    fiber.addObserver(exit => this.end(endOf(exit)))
    // It may have suspended, or been stopped, before anybody had its fiber.
    if (this.ending !== undefined) interrupt(fiber)
    return this.ending
  }

  /** Waits until it is over, and no longer than it may take. */
  readonly over: Effect.Effect<AttemptEnd> = Effect.async(resume => {
    this.tell = ending => resume(Effect.succeed(ending))
    if (this.ending !== undefined) this.tell(this.ending)
    else this.stopAlarm = this.setAlarm(this.entry.task.timeoutMs, () => this.expire())
    return Effect.sync(() => this.interrupt())
  })

  private signal(): AbortSignal {
    this.controller ??= new AbortController()
    // A tool that goes on although it was stopped may ask late.
    if (this.stopped !== undefined) this.controller.abort(this.stopped.reason)
    return this.controller.signal
  }

  private suspend(data: unknown): void {
    if (this.ending !== undefined) return
    this.end({ _tag: "Suspended", data: toJson(data) })
    if (this.fiber !== undefined) interrupt(this.fiber)
  }

  private expire(): void {
    const milliseconds = this.entry.task.timeoutMs
    const message = `The task took longer than its ${milliseconds} ms.`
    this.halt({ _tag: "TimedOut", milliseconds }, new DOMException(message, "TimeoutError"))
  }

  private interrupt(): void {
    this.halt({ _tag: "Stopped" }, new DOMException("The task was interrupted.", "AbortError"))
  }

  private halt(ending: AttemptEnd, reason: unknown): void {
    if (this.ending !== undefined) return
    this.stopped = { reason }
    this.end(ending)
    // After the end: what the tool does about it is heard by nobody.
    this.controller?.abort(reason)
    if (this.fiber !== undefined) interrupt(this.fiber)
  }

  private end(ending: AttemptEnd): void {
    if (this.ending !== undefined) return
    this.ending = ending
    this.entry.stop = undefined
    this.stopAlarm?.()
    this.tell?.(ending)
  }
}

/**
 * Runs the tool once. `write` is told what it writes. Ends at once when time is over, or when it is stopped by `entry.stop`:
 * what the tool comes to afterwards is dropped.
 */
export const attempt = (
  { fork, setAlarm }: Pick<Core, "fork" | "setAlarm">,
  entry: Entry,
  executor: Executor,
  write: (output: unknown) => void
): Effect.Effect<AttemptEnd> =>
  Effect.suspend(() => {
    const run = new Attempt(fork, setAlarm, entry)
    const ending = run.start(executor, write)
    return ending === undefined ? run.over : Effect.succeed(ending)
  })

const endOf = (exit: Exit.Exit<Executed, unknown>): AttemptEnd => {
  if (Exit.isSuccess(exit)) return { _tag: "Done", executed: exit.value }
  return Cause.isInterruptedOnly(exit.cause)
    ? { _tag: "Failed", error: new Error("The tool interrupted itself.") }
    : { _tag: "Failed", error: squash(exit.cause) }
}
