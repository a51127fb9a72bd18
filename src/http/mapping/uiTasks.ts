/** Background tasks of one message: one part of data each, replaced as the task goes on. */
import type { Of } from "../../protocol/Chunk.js"
import { unnest } from "../../protocol/Nesting.js"
import type { ErrorText } from "./Mapper.js"
import { NestedProgress } from "./nestedProgress.js"
import { changesOf, identityOf, type TaskChunk } from "./taskChanges.js"
import type { UiFrame } from "./uiFrames.js"
import { dataFrame, isData } from "./uiParts.js"
import type { UiTools } from "./uiTools.js"

interface Task {
  data: { readonly [field: string]: unknown }
  readonly nested: NestedProgress
}

export class UiTasks {
  private readonly tasks = new Map<string, Task>()

  constructor(
    private readonly send: (frame: UiFrame) => void,
    private readonly errorText: ErrorText,
    private readonly tools: UiTools
  ) {}

  private change(chunk: TaskChunk | Of<"background-task-output">, changes: Task["data"]): void {
    const identity = identityOf(chunk)
    const task = this.tasks.get(identity.taskId) ?? { data: identity, nested: new NestedProgress() }
    task.data = { ...task.data, ...changes }
    this.tasks.set(identity.taskId, task)
    this.send({ type: "data-background-task", id: identity.taskId, data: task.data })
  }

  take(chunk: TaskChunk) {
    const { taskId, toolCallId } = chunk.payload
    // Who dispatches a task and who runs it tell of it by themselves: it may be running already.
    if (chunk.type === "background-task-started" && this.tasks.has(taskId)) return
    this.change(chunk, changesOf(chunk, this.errorText))
    const { runId } = identityOf(chunk)
    switch (chunk.type) {
      case "background-task-completed":
        return this.tools.taskOutcome(toolCallId, runId, { output: chunk.payload.result })
      case "background-task-failed":
        return this.tools.taskOutcome(toolCallId, runId, this.errorText(chunk.payload.error))
      case "background-task-cancelled":
        return this.tools.taskOutcome(toolCallId, runId, "The background task was cancelled.")
      default:
    }
  }

  output(chunk: Of<"background-task-output">) {
    const { taskId } = chunk.payload
    const { chunk: inner, path } = unnest(chunk)
    if (path.length === 0) return this.change(chunk, { output: chunk.payload.payload.payload.output ?? null })
    if (isData(inner)) return this.send(dataFrame(inner))
    if (path.length > 1) return
    if (!this.tasks.has(taskId)) this.change(chunk, { status: "running" })
    const nested = this.tasks.get(taskId)?.nested
    if (nested?.take(inner) === true) this.change(chunk, { progress: nested.progress })
    if (inner.type === "text-delta") {
      const data = { taskId, textDelta: inner.payload.text }
      this.send({ type: "data-background-task-output", data, transient: true })
    }
  }
}
