/**
 * The order of chunks in a run of a workflow:
 *
 *     Run     = start watch (Step | Output)* watch End? finish
 *     Step    = step-start watch … step-finish watch          one of each for an attempt to run a step, in any interleaving
 *     Output  = step-output | data-*                          only while its step runs
 *     End     = error | abort                                 a run that waits has neither: its finish says `suspended`
 *
 * No step is open at the end, steps below another one are inside it, and every chunk is from the workflow.
 */
import type { Chunk } from "eddy"
import { expect } from "vitest"

const endReasons = { error: "error", abort: "aborted" } as const

class Checker {
  readonly violations: Array<string> = []
  private index = 0
  private readonly open = new Set<string>()
  private end: "error" | "abort" | undefined
  private isFinished = false
  private before: Chunk.Chunk | undefined

  constructor(private readonly runId: string | undefined) {}

  private fault(what: string): void {
    this.violations.push(`[${this.index}] ${what}`)
  }

  take(chunk: Chunk.Chunk): void {
    if (chunk.runId !== this.runId) this.fault(`${chunk.type} belongs to another run, ${chunk.runId}`)
    if (chunk.from !== "WORKFLOW") this.fault(`${chunk.type} is from ${chunk.from}`)
    if (this.isFinished) this.fault(`${chunk.type} after finish`)
    if (this.index === 0 && chunk.type !== "start") this.fault(`the run begins with ${chunk.type}`)
    if (this.index === 1 && chunk.type !== "watch") this.fault(`the second chunk is ${chunk.type}`)
    if (this.end !== undefined && chunk.type !== "finish") this.fault(`${chunk.type} after ${this.end}`)
    const changes = this.before?.type === "step-start" || this.before?.type === "step-finish"
    if (changes && chunk.type !== "watch") this.fault(`${chunk.type} between a change and its watch`)
    this.check(chunk)
    this.before = chunk
    this.index++
  }

  private check(chunk: Chunk.Chunk) {
    switch (chunk.type) {
      case "start":
        if (this.index > 0) this.fault("a second start")
        return
      case "step-start":
        return this.stepStart(String(chunk.payload.request["stepId"]))
      case "step-finish":
        return this.stepFinish(chunk.payload)
      case "step-output":
        if (!this.open.has(chunk.payload.stepId))
          this.fault(`output of "${chunk.payload.stepId}", which is not open`)
        return
      case "error":
      case "abort":
        this.end = chunk.type
        if (this.before?.type !== "watch") this.fault(`${chunk.type} after ${this.before?.type}`)
        return
      case "watch":
        return
      case "finish":
        return this.finish(chunk.payload)
      default:
        if (!chunk.type.startsWith("data-")) this.fault(`${chunk.type} in a workflow`)
        if (this.open.size === 0) this.fault(`${chunk.type} outside a step`)
    }
  }

  private stepStart(stepId: string): void {
    if (this.open.has(stepId)) this.fault(`"${stepId}" begins again`)
    const above = stepId.split(".").slice(0, -1).join(".")
    if (above !== "" && !this.open.has(above)) this.fault(`"${stepId}" begins outside "${above}"`)
    this.open.add(stepId)
  }

  private stepFinish({ id, metadata, output, stepResult }: Chunk.PayloadOf<"step-finish">): void {
    const stepId = String(id)
    if (!this.open.delete(stepId)) this.fault(`"${stepId}" ends, and was not open`)
    for (const other of this.open)
      if (other.startsWith(`${stepId}.`)) this.fault(`"${stepId}" ends before "${other}"`)
    const known = { success: "stop", failed: "error", suspended: "suspended", aborted: "aborted" }
    const expected = Object.entries(known).find(([status]) => status === metadata["status"])?.[1]
    if (stepResult.reason !== expected)
      this.fault(`"${stepId}" is ${metadata["status"]}, and says ${stepResult.reason}`)
    if (metadata["stepId"] !== stepId) this.fault(`step-finish of "${stepId}" names ${metadata["stepId"]}`)
    if (Object.values(output.usage).some(count => !(count >= 0)))
      this.fault(`usage of "${stepId}" is no number`)
  }

  private finish({ stepResult: { isContinued, reason } }: Chunk.PayloadOf<"finish">): void {
    this.isFinished = true
    if (isContinued) this.fault("finish says that the run goes on")
    for (const stepId of this.open) this.fault(`finish while "${stepId}" is open`)
    if (this.end !== undefined) {
      if (reason !== endReasons[this.end]) this.fault(`finish says "${reason}" after ${this.end}`)
    } else {
      if (this.before?.type !== "watch") this.fault(`finish after ${this.before?.type}`)
      if (reason !== "stop" && reason !== "suspended")
        this.fault(`finish says "${reason}", and no chunk says why`)
    }
  }

  close(): void {
    if (!this.isFinished) this.fault("no finish")
  }
}

/** What is wrong with the chunks of a run of a workflow; empty when they are in order. */
const workflowViolations = (chunks: ReadonlyArray<Chunk.Chunk>): ReadonlyArray<string> => {
  const checker = new Checker(chunks[0]?.runId)
  for (const chunk of chunks) checker.take(chunk)
  checker.close()
  return checker.violations
}

/** The chunks of a run of a workflow are in order. */
export const expectWorkflow = (chunks: ReadonlyArray<Chunk.Chunk>): void => {
  expect(workflowViolations(chunks)).toStrictEqual([])
}
