/** One call of a step that runs in the background: checked, dispatched, acknowledged. */
import * as Effect from "effect/Effect"
import type { Resolution } from "../../background/resolution.js"
import type { Dispatched } from "../../background/TaskManager.js"
import { acknowledgement, taskMetadata } from "../../background/taskChunks.js"
import type { AnsweredCall } from "../../model/Answer.js"
import type { Message } from "../../protocol/Message.js"
import { isRecord, type JsonValue, toJson } from "../../protocol/safeJson.js"
import * as Usage from "../../protocol/tokens.js"
import type { Tool } from "../../tool/Tool.js"
import * as ToolOutcome from "../../tool/ToolOutcome.js"
import { type Run, turnsOf } from "../loop/run.js"
import type { RunTasks } from "./runTasks.js"
import { executorOf } from "./taskExecutor.js"

const isJsonRecord = (value: JsonValue): value is { readonly [key: string]: JsonValue } => isRecord(value)

/** A call that is to run in the background. */
export interface BackgroundCall<R> {
  readonly call: AnsweredCall
  readonly tool: Tool<string, R>
  readonly execute: NonNullable<Tool<string, R>["call"]>
  readonly resolution: Resolution
}

/** What a call that was dispatched is told, at once. */
export const acknowledged = (call: AnsweredCall, taskId: string): ToolOutcome.ToolOutcome => {
  const { toolName } = call.chunk.payload
  const { chunk, part } = ToolOutcome.succeeded(call.chunk, acknowledgement({ id: taskId, toolName }))
  const metadata = taskMetadata(taskId, "running")
  return chunk.type === "tool-result"
    ? {
        chunk: { ...chunk, payload: { ...chunk.payload, providerMetadata: metadata } },
        part: { ...part, providerOptions: metadata }
      }
    : { chunk, part }
}

/**
 * Checks the arguments and dispatches the call. `undefined`: there is no slot, and the call is to run in the foreground. Fails
 * with `InvalidToolArguments` when nothing was dispatched.
 */
export const dispatch = Effect.fnUntraced(function* <R>(
  run: Run<R>,
  tasks: RunTasks<R>,
  { call, execute, resolution, tool }: BackgroundCall<R>,
  messages: ReadonlyArray<Message>
) {
  yield* tool.check(call.input)
  const args = toJson(call.input)
  const used: Array<() => Usage.Usage> = []
  const fiberRefs = yield* Effect.getFiberRefs
  const executor = executorOf(tool, execute, tasks.settings, tasks.services, {
    requestContext: run.requestContext,
    messages,
    depth: run.caller.depth + 1,
    maxDepth: Math.min(run.caller.maxDepth, run.caller.depth + run.settings.maxDepth),
    turns: turnsOf(run),
    counts: count => used.push(count),
    traced: run.telemetry.traced,
    fiberRefs
  })
  const { resourceId, thread } = run
  const dispatching = tasks.dispatcher.dispatch(
    {
      toolName: tool.name,
      toolCallId: call.chunk.payload.toolCallId,
      args: isJsonRecord(args) ? args : {},
      agentId: run.agentId,
      runId: run.runId,
      ...(thread === undefined ? {} : { threadId: thread.id }),
      ...(resourceId === undefined ? {} : { resourceId }),
      timeoutMs: resolution.timeoutMs,
      maxRetries: resolution.maxRetries
    },
    executor
  )
  const begun = (dispatched: Dispatched): string => {
    const sum = () => used.reduce((total, count) => Usage.combine(total, count()), Usage.empty)
    tasks.since ??= run.clock.unsafeCurrentTimeMillis()
    tasks.calls.set(call.chunk.payload.toolCallId, {
      dispatched,
      waitTimeoutMs: resolution.waitTimeoutMs,
      waitedSince: undefined,
      state: "open",
      isStored: false
    })
    tasks.answered?.began(dispatched)
    // What it used counts into the step in which it settles, or into whatever answers to it later.
    dispatched.onSettled(() => {
      tasks.answered?.settled(dispatched.taskId, dispatched.outcome())
      if (run.isOver) tasks.answered?.owes(dispatched.taskId, sum)
      else run.nested.push(sum)
      run.inbox.notify()
    })
    return dispatched.taskId
  }
  // A run that is stopped meanwhile waits for the answer: nobody else would know of the task.
  return yield* Effect.uninterruptible(
    Effect.map(dispatching, dispatched => (dispatched === undefined ? undefined : begun(dispatched)))
  )
})
