/** What a run has lived through: a property over scenarios that never come to a thing says nothing of it. */
import { type Chunk, Errors } from "eddy"
import { runsIn } from "./runsIn.js"
import type { World } from "./world.js"

const hasCut = (chunks: ReadonlyArray<Chunk.Chunk>): boolean =>
  chunks.filter(({ type }) => type === "step-start").length >
  chunks.filter(({ type }) => type === "step-finish").length

/** How one run went, in words. */
export const reached = (
  world: World,
  chunks: ReadonlyArray<Chunk.Chunk>,
  isLeft: boolean
): ReadonlySet<string> => {
  const [first, ...below] = runsIn(chunks)
  const top = first?.chunks ?? []
  const found = new Set<string>()
  const note = (what: string, isSo: boolean): void => {
    if (isSo) found.add(what)
  }
  const finish = top.at(-1)
  if (finish?.type === "finish") {
    const { reason, stoppedBy } = finish.payload.stepResult
    found.add(`ends: ${reason}`)
    if (stoppedBy !== undefined) found.add(`stopped by: ${stoppedBy}`)
  }
  for (const chunk of top) {
    if (chunk.type === "error") {
      const { error } = chunk.payload
      const reason = error instanceof Errors.ModelError ? ` ${error.reason}` : ""
      if (error instanceof Error) found.add(`error: ${error.name}${reason}`)
    }
    if (chunk.type === "tool-error") {
      const { error } = chunk.payload
      if (error instanceof Error) found.add(`tool-error: ${error.name}`)
    }
  }
  const steps = top.filter(({ type }) => type === "step-finish").length
  const aborted = top.some(({ type }) => type === "abort")
  note("three steps", steps >= 3)
  note("left in the middle", isLeft && top.length > 3)
  note("aborted in an answer", aborted && hasCut(top))
  note(
    "aborted among tools",
    aborted &&
      top.some(chunk => chunk.type === "tool-error" && chunk.payload.error instanceof Errors.RunAborted)
  )
  const asked = world.asked.filter(({ agent }) => agent === "top").length
  note("asked again", asked > top.filter(({ type }) => type === "step-start").length)
  note(
    "another model took over",
    top.some(chunk => chunk.type === "finish" && chunk.payload.metadata["modelId"] !== "top model 0")
  )
  note("an agent below", below.length > 0)
  note(
    "an agent below an agent",
    below.some(({ call }) => below.some(({ runId }) => runId === call?.runId))
  )
  note(
    "an agent below that was stopped",
    below.some(run => run.chunks.some(({ type }) => type === "abort") || run.chunks.at(-1)?.type !== "finish")
  )
  note(
    "an agent below that failed",
    below.some(run => run.chunks.some(({ type }) => type === "error"))
  )
  note("a long answer", top.length > 150)
  note(
    "stopped a tool",
    world.executions.some(({ isOver }) => !isOver)
  )
  return found
}

/** What all scenarios together have to come to. */
export const toBeReached: ReadonlyArray<string> = [
  ...["stop", "length", "content-filter", "tool-calls", "error", "aborted", "other"].map(
    reason => `ends: ${reason}`
  ),
  "stopped by: max-steps",
  "stopped by: client-tool",
  "error: InvalidConfiguration",
  "error: ModelError incomplete",
  "error: ModelError stream",
  "error: ModelError timeout",
  "error: RunTimedOut",
  "error: StorageError",
  "tool-error: AgentDepthExceeded",
  "tool-error: InvalidToolArguments",
  "tool-error: ModelError",
  "tool-error: RunAborted",
  "tool-error: RunTimedOut",
  "tool-error: ToolCallCutOff",
  "tool-error: ToolFailed",
  "tool-error: ToolNotFound",
  "tool-error: ToolTimedOut",
  "three steps",
  "left in the middle",
  "aborted in an answer",
  "aborted among tools",
  "asked again",
  "another model took over",
  "an agent below",
  "an agent below an agent",
  "an agent below that failed",
  "an agent below that was stopped",
  "a long answer",
  "stopped a tool"
]
