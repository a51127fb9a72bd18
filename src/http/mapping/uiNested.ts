/** What tools write while they run, and what agents do that were called: preliminary outputs of the call. */
import type { Of } from "../../protocol/Chunk.js"
import type { Nested } from "../../protocol/Nesting.js"
import { NestedProgress } from "./nestedProgress.js"
import type { UiFrame } from "./uiFrames.js"
import { dataFrame, isData } from "./uiParts.js"
import type { UiTools } from "./uiTools.js"

export class UiNested {
  private readonly runs = new Map<string, NestedProgress>()

  constructor(
    private readonly send: (frame: UiFrame) => void,
    private readonly tools: UiTools
  ) {}

  take({ payload, runId }: Of<"tool-output">, { chunk, path }: Nested) {
    const { toolCallId } = payload
    if (path.length === 0) return this.tools.preliminary(toolCallId, payload.output)
    if (isData(chunk)) return this.send(dataFrame(chunk))
    if (path.length > 1) return
    // A model may use the id of a call again in a later turn.
    const key = `${runId} ${toolCallId}`
    const run = this.runs.get(key) ?? new NestedProgress()
    this.runs.set(key, run)
    const isWorthTelling = run.take(chunk)
    if (chunk.type === "text-delta") {
      const data = { toolCallId, textDelta: chunk.payload.text }
      return this.send({ type: "data-tool-output", data, transient: true })
    }
    if (chunk.type === "tool-result" || chunk.type === "tool-error" || chunk.type === "tool-output-denied") {
      this.tools.outcomeBelow(toolCallId, chunk)
    }
    if (isWorthTelling) this.tools.preliminary(toolCallId, run.progress)
  }
}
