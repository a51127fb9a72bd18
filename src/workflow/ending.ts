/** How runs end: the chunks that say so. Pure. */
import type { Chunk, Of } from "../protocol/Chunk.js"
import type { Usage } from "../protocol/tokens.js"
import { statuses, type WorkflowEnd, type WorkflowRun } from "./run.js"
import { suspendedSteps } from "./state.js"

const reasons = {
  Success: "stop",
  Suspended: "suspended",
  Failure: "error",
  Aborted: "aborted"
} as const satisfies Record<WorkflowEnd["_tag"], string>

/** Why a run did not end by itself. */
export const causeOf = (runId: string, end: WorkflowEnd): ReadonlyArray<Chunk> => {
  switch (end._tag) {
    case "Failure":
      return [{ type: "error", runId, from: "WORKFLOW", payload: { error: end.error } }]
    case "Aborted":
      return [
        {
          type: "abort",
          runId,
          from: "WORKFLOW",
          payload: end.reason === undefined ? {} : { reason: end.reason }
        }
      ]
    default:
      return []
  }
}

/** The last chunk of a run. */
export const finishOf =
  <R>(run: WorkflowRun<R>, end: WorkflowEnd) =>
  (usage: Usage): Of<"finish"> => ({
    type: "finish",
    runId: run.runId,
    from: "WORKFLOW",
    payload: {
      stepResult: { reason: reasons[end._tag], isContinued: false },
      output: {
        usage,
        text: "",
        ...(end._tag === "Success" ? { result: end.result } : {}),
        ...(end._tag === "Suspended" ? { suspended: suspendedSteps(run.steps) } : {})
      },
      metadata: { workflowId: run.graph.id, status: statuses[end._tag] },
      messages: { all: [], user: [], nonUser: [] },
      response: { messages: [], uiMessages: [] }
    }
  })
