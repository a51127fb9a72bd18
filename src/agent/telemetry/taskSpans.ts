/** Attempts of background tasks, as traces have them: each is an `execute_tool {tool}` below the run that made the call. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Executed, TaskContext } from "../../background/Executor.js"
import type { ToolDefinition } from "../../model/ModelPort.js"
import { attributes } from "./names.js"
import { done, endingOf, type Spans, spansOf, stopped, type Traced, tell, within } from "./spans.js"
import { beginTool, endTool, failedWith } from "./toolSpans.js"

/** The attempt with its tracer, where the manager was made without. */
const tracedBy = <A, E, R>(effect: Effect.Effect<A, E, R>, { tracer }: Spans): Effect.Effect<A, E, R> =>
  Effect.withTracer(effect, tracer)

/**
 * One attempt in its span. A task that goes on in another process belongs below no run: its span is the first of a trace. The
 * span ends with the attempt, also when the tool goes on although it was stopped.
 */
export const attempted = <E, R>(
  tool: ToolDefinition,
  context: TaskContext,
  run: Traced | undefined,
  execute: (context: TaskContext) => Effect.Effect<Executed, E, R>
): Effect.Effect<Executed, E, R> =>
  Effect.withFiberRuntime<Executed, E, R>(fiber => {
    const spans = run?.spans ?? spansOf(fiber)
    if (spans === undefined) return execute(context)
    const { args, attempt, id, threadId, toolCallId } = context.task
    const span = beginTool(
      spans,
      run?.span,
      { tool, toolCallId, args },
      {
        [attributes.conversationId]: threadId,
        [attributes.taskId]: id,
        [attributes.taskAttempt]: attempt
      }
    )
    const signal = context.signal()
    const halted = (): void => {
      const { reason } = signal
      const isTimeout = reason instanceof DOMException && reason.name === "TimeoutError"
      spans.end(span, isTimeout ? failedWith(reason) : stopped)
    }
    signal.addEventListener("abort", halted, { once: true })
    const seen: TaskContext = {
      ...context,
      suspend: data =>
        Effect.suspend(() => {
          tell(span, { [attributes.isSuspended]: true })
          spans.end(span, done)
          return context.suspend(data)
        })
    }
    const executing = tracedBy(within(execute(seen), span), spans)
    return Effect.onExit(executing, exit =>
      Effect.sync(() => {
        signal.removeEventListener("abort", halted)
        if (Exit.isSuccess(exit)) endTool(spans, span, exit.value.value)
        else spans.end(span, endingOf(exit.cause))
      })
    )
  })
