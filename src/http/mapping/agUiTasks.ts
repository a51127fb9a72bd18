/** Background tasks and agents that were called, as activities of AG-UI: told once, then patched. */
import type { Chunk, Of } from "../../protocol/Chunk.js"
import { unnest } from "../../protocol/Nesting.js"
import type { AddOperation, AgUiEvent } from "./agUiEvents.js"
import type { ErrorText } from "./Mapper.js"
import { NestedProgress } from "./nestedProgress.js"
import { changesOf, identityOf, type TaskChunk } from "./taskChanges.js"
import { isData } from "./uiParts.js"

const taskActivity = "background-task"
const agentActivity = "sub-agent"

const add = (path: string, value: unknown): AddOperation => ({ op: "add", path, value: value ?? null })

const patchOf = (changes: { readonly [field: string]: unknown }): ReadonlyArray<AddOperation> =>
  Object.entries(changes).map(([field, value]) => add(`/${field}`, value))

export const customOf = (chunk: Of<`data-${string}`>): AgUiEvent => ({
  type: "CUSTOM",
  name: chunk.type,
  value: chunk.data ?? null
})

export class AgUiTasks {
  private readonly tasks = new Map<string, NestedProgress>()
  private readonly agents = new Map<string, NestedProgress>()

  constructor(
    private readonly send: (event: AgUiEvent) => void,
    private readonly errorText: ErrorText
  ) {}

  private change(
    chunk: TaskChunk | Of<"background-task-output">,
    changes: { readonly [field: string]: unknown },
    patch = patchOf(changes)
  ): NestedProgress {
    const identity = identityOf(chunk)
    const { taskId: messageId } = identity
    const known = this.tasks.get(messageId)
    if (known === undefined) {
      const nested = new NestedProgress()
      this.tasks.set(messageId, nested)
      const content = { ...identity, outputs: [], ...changes }
      this.send({ type: "ACTIVITY_SNAPSHOT", messageId, activityType: taskActivity, content })
      return nested
    }
    this.send({ type: "ACTIVITY_DELTA", messageId, activityType: taskActivity, patch })
    return known
  }

  take(chunk: TaskChunk): void {
    // Who dispatches a task and who runs it tell of it by themselves: it may be running already.
    if (chunk.type === "background-task-started" && this.tasks.has(chunk.payload.taskId)) return
    this.change(chunk, changesOf(chunk, this.errorText))
  }

  taskOutput(chunk: Of<"background-task-output">): void {
    const { chunk: inner, path } = unnest(chunk)
    if (path.length === 0) {
      const { output } = chunk.payload.payload.payload
      this.change(chunk, { status: "running", outputs: [output ?? null] }, [add("/outputs/-", output)])
    } else if (isData(inner)) this.send(customOf(inner))
    else if (path.length === 1) {
      const nested = this.tasks.get(chunk.payload.taskId) ?? this.change(chunk, { status: "running" })
      if (nested.take(inner)) this.change(chunk, { progress: nested.progress })
    }
  }

  /** What a call writes, or an agent does that was called. */
  output(chunk: Of<"tool-output">, toolCallId: string): void {
    const { chunk: inner, path } = unnest(chunk)
    if (path.length === 0) {
      const value = { toolCallId, output: chunk.payload.output ?? null }
      this.send({ type: "CUSTOM", name: "tool-output", value })
    } else if (isData(inner)) this.send(customOf(inner))
    else if (path.length === 1) this.agent(inner, chunk.runId, toolCallId)
  }

  private agent(inner: Chunk, runId: string, toolCallId: string): void {
    const messageId = `${runId}:${toolCallId}:agent`
    const known = this.agents.get(messageId)
    const nested = known ?? new NestedProgress()
    this.agents.set(messageId, nested)
    if (!nested.take(inner)) return
    this.send({
      type: "ACTIVITY_SNAPSHOT",
      messageId,
      activityType: agentActivity,
      content: { toolCallId, ...nested.progress }
    })
  }
}
