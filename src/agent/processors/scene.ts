/** What the hooks of one step know of their run. */
import type { Chunk } from "../../protocol/Chunk.js"
import type { DataPart } from "../../tool/ToolContext.js"
import { type Run, stepNumberOf } from "../loop/run.js"
import type { Scene } from "./context.js"

/** What all hooks of a step know. */
export const sceneOf = <R>(
  run: Run<R>,
  { messages, trip, writeData }: Pick<Scene, "messages" | "trip" | "writeData">
): Scene => {
  const stepNumber = stepNumberOf(run)
  return {
    runId: run.runId,
    agentId: run.agentId,
    stepNumber,
    retryCount: run.processors?.retriesOf(stepNumber) ?? 0,
    requestContext: run.requestContext,
    messages,
    trip,
    writeData
  }
}

/** Tells data of a processor; late ones are dropped. */
export const tellData =
  <R>(run: Run<R>, tell: (chunk: Chunk) => void) =>
  ({ data, id, transient, type }: DataPart): void => {
    if (run.isOver) return
    const more = { ...(id === undefined ? {} : { id }), ...(transient === undefined ? {} : { transient }) }
    tell({ type, runId: run.runId, from: "USER", data, ...more })
  }
