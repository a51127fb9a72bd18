/** How far an agent has come that another agent has called: what a client is shown of its run while it goes. */
import type { Chunk } from "../../protocol/Chunk.js"

/** Characters of text and calls that are shown: what is told again and again must stay small. */
const maxText = 8192
const maxCalls = 32

interface NestedCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly status: "called" | "completed" | "failed" | "denied" | "suspended"
}

export interface Progress {
  readonly status: "running" | "completed" | "failed" | "aborted" | "blocked" | "suspended"
  /** The end of what it has said. */
  readonly text: string
  /** The last calls that it has made. */
  readonly toolCalls: ReadonlyArray<NestedCall>
}

const endings: Readonly<Record<string, Progress["status"]>> = {
  error: "failed",
  aborted: "aborted",
  tripwire: "blocked",
  suspended: "suspended"
}

export class NestedProgress {
  private status: Progress["status"] = "running"
  private text = ""
  private readonly calls = new Map<string, NestedCall>()

  private call(toolCallId: string, status: NestedCall["status"], toolName?: string): void {
    const name = toolName ?? this.calls.get(toolCallId)?.toolName
    if (name === undefined) return
    this.calls.set(toolCallId, { toolCallId, toolName: name, status })
    if (this.calls.size > maxCalls)
      for (const first of this.calls.keys()) return void this.calls.delete(first)
  }

  /** Takes one chunk of the run below; whether it is worth to be told of. Deltas are not: their block will be. */
  take(chunk: Chunk): boolean {
    switch (chunk.type) {
      case "text-start":
        if (this.text !== "") this.text += "\n\n"
        return false
      case "text-delta":
        this.text += chunk.payload.text
        if (this.text.length > maxText * 2) this.text = this.text.slice(-maxText)
        return false
      case "text-end":
        return true
      case "tool-call":
        this.call(chunk.payload.toolCallId, "called", chunk.payload.toolName)
        return true
      case "tool-result":
        this.call(chunk.payload.toolCallId, chunk.payload.isError === true ? "failed" : "completed")
        return true
      case "tool-error":
        this.call(chunk.payload.toolCallId, "failed")
        return true
      case "tool-output-denied":
        this.call(chunk.payload.toolCallId, "denied")
        return true
      case "tool-call-approval":
      case "tool-call-suspended":
        this.call(chunk.payload.toolCallId, "suspended", chunk.payload.toolName)
        return true
      case "finish":
        this.status = endings[chunk.payload.stepResult.reason] ?? "completed"
        return true
      default:
        return false
    }
  }

  get progress(): Progress {
    return {
      status: this.status,
      text: this.text.slice(-maxText).toWellFormed(),
      toolCalls: [...this.calls.values()]
    }
  }
}
