/** The order of chunks in one run (contract: Chunks, Order), as a checker that says what is wrong with a sequence. */
import type { Chunk } from "eddy"
import { expect } from "vitest"

type BlockKind = "text" | "reasoning"

interface Input {
  isOpen: boolean
}

interface Call {
  readonly isProviderExecuted: boolean
  readonly step: number
  outcomes: number
}

const endReasons = {
  error: "error",
  abort: "aborted",
  tripwire: "tripwire",
  "tool-call-approval": "suspended",
  "tool-call-suspended": "suspended"
} as const

type EndType = keyof typeof endReasons

const isTaskEvent = (type: string): boolean => type.startsWith("background-task-")

const isSuspension = (type: string): boolean =>
  type === "tool-call-approval" || type === "tool-call-suspended"

/** A judgement is the last thing of its step, unless something ends the run. */
const mayFollowGoal = (type: string): boolean =>
  type === "goal" || type === "step-finish" || type === "finish" || type in endReasons || isTaskEvent(type)

class Checker {
  readonly violations: Array<string> = []
  private index = 0
  private steps = 0
  private isStepOpen = false
  /** What the last `step-finish` said about another step; `undefined` before the first. */
  private isContinued: boolean | undefined
  /** Whether a call of this step that we answer has its outcome: no content comes after it. */
  private hasOutcome = false
  /** What the last judgement of this step said; `undefined` before the first. */
  private goal: Chunk.PayloadOf<"goal"> | undefined
  private end: EndType | undefined
  /** Whether a processor rejected the last step that has finished. */
  private isRejected = false
  private isLeftToClient = false
  private isFinished = false
  private readonly ids = new Set<string>()
  private readonly blocks = new Map<string, BlockKind>()
  private readonly inputs = new Map<string, Input>()
  private readonly calls = new Map<string, Call>()

  /** Calls of the run that waited before it was resumed, as this leg tells them. */
  private readonly waiting = new Set<string>()
  /** Those that were decided in this leg. */
  private readonly decided = new Set<string>()
  /** Calls that the end of the run says wait for somebody. */
  private readonly suspended = new Set<string>()

  constructor(
    private readonly runId: string | undefined,
    waiting: Iterable<string>
  ) {
    for (const id of waiting) this.waiting.add(id)
  }

  private fault(what: string): void {
    this.violations.push(`[${this.index}] ${what}`)
  }

  private claim(id: string, what: string): void {
    if (id === "") this.fault(`${what} has an empty id`)
    if (this.ids.has(id)) this.fault(`${what} uses the id "${id}" again`)
    this.ids.add(id)
  }

  take(chunk: Chunk.Chunk): void {
    if (chunk.runId !== this.runId) this.fault(`${chunk.type} belongs to another run, ${chunk.runId}`)
    if (this.isFinished) this.fault(`${chunk.type} after finish`)
    if (this.index === 0 && chunk.type !== "start") this.fault(`the run begins with ${chunk.type}`)
    if (this.end !== undefined && chunk.type !== "finish" && !isTaskEvent(chunk.type)) {
      if (!(isSuspension(this.end) && isSuspension(chunk.type))) this.fault(`${chunk.type} after ${this.end}`)
    }
    if (this.goal !== undefined && this.isStepOpen && !mayFollowGoal(chunk.type)) {
      this.fault(`${chunk.type} after goal`)
    }
    this.check(chunk)
    this.index++
  }

  private check(chunk: Chunk.Chunk) {
    switch (chunk.type) {
      case "start":
        if (this.index > 0) this.fault("a second start")
        return
      case "step-start":
        return this.stepStart()
      case "step-finish":
        return this.stepFinish(chunk)
      case "finish":
        return this.finish(chunk)
      case "error":
      case "abort":
      case "tripwire":
      case "tool-call-approval":
      case "tool-call-suspended":
        return this.runEnds(
          chunk.type,
          "toolCallId" in chunk.payload ? String(chunk.payload.toolCallId) : undefined
        )
      case "goal":
        return this.judged(chunk.payload)
      case "text-start":
        return this.blockStart(chunk.payload.id, "text")
      case "reasoning-start":
        return this.blockStart(chunk.payload.id, "reasoning")
      case "text-delta":
        return this.inside(chunk.payload.id, "text", chunk.type)
      case "reasoning-delta":
      case "reasoning-signature":
        return this.inside(chunk.payload.id, "reasoning", chunk.type)
      case "text-end":
        return this.blockEnd(chunk.payload.id, "text")
      case "reasoning-end":
        return this.blockEnd(chunk.payload.id, "reasoning")
      case "tool-call-input-streaming-start":
        this.content(chunk.type)
        this.claim(chunk.payload.toolCallId, "a tool input")
        this.inputs.set(chunk.payload.toolCallId, { isOpen: true })
        return
      case "tool-call-delta":
        return this.insideInput(chunk.payload.toolCallId, chunk.type)
      case "tool-call-input-streaming-end": {
        const { toolCallId } = chunk.payload
        this.insideInput(toolCallId, chunk.type)
        this.inputs.set(toolCallId, { isOpen: false })
        return
      }
      case "tool-call":
        return this.call(chunk)
      case "tool-result": {
        const isProviderExecuted = chunk.payload.providerExecuted === true
        if (isProviderExecuted) this.content("a result of the provider's")
        return this.outcome(chunk.payload.toolCallId, chunk.type, isProviderExecuted)
      }
      case "tool-error":
      case "tool-output-denied":
        return this.outcome(chunk.payload.toolCallId, chunk.type, false)
      case "source":
        this.content(chunk.type)
        return this.claim(chunk.payload.id, "a source")
      case "file":
      case "raw":
      case "response-metadata":
      case "object":
        return this.content(chunk.type)
      case "tool-output":
        return this.written(chunk.payload.toolCallId)
      default:
        // A processor of the input may write before the step whose model it has to do with.
        return
    }
  }

  private stepStart(): void {
    if (this.isStepOpen) this.fault("step-start inside a step")
    if (this.isContinued === false) this.fault("a step after one that said it was the last")
    this.isStepOpen = true
    this.hasOutcome = false
    this.steps++
  }

  private content(what: string): void {
    if (!this.isStepOpen) this.fault(`${what} outside a step`)
    if (this.hasOutcome) this.fault(`${what} after an outcome of the step's calls`)
  }

  private blockStart(id: string, kind: BlockKind): void {
    this.content(`${kind}-start`)
    this.claim(id, `a ${kind} block`)
    this.blocks.set(id, kind)
  }

  private inside(id: string, kind: BlockKind, what: string): void {
    this.content(what)
    if (this.blocks.get(id) !== kind) this.fault(`${what} outside its block "${id}"`)
  }

  private blockEnd(id: string, kind: BlockKind): void {
    this.inside(id, kind, `${kind}-end`)
    this.blocks.delete(id)
  }

  private insideInput(id: string, what: string): void {
    this.content(what)
    if (this.inputs.get(id)?.isOpen !== true) this.fault(`${what} outside its input "${id}"`)
  }

  private call({ payload }: Chunk.ToolCall): void {
    const { providerExecuted, toolCallId } = payload
    this.content("tool-call")
    const input = this.inputs.get(toolCallId)
    if (input === undefined) this.claim(toolCallId, "a tool call")
    else if (input.isOpen) this.fault(`tool-call "${toolCallId}" before the end of its input`)
    else if (this.calls.has(toolCallId)) this.fault(`a second tool-call "${toolCallId}"`)
    this.calls.set(toolCallId, {
      isProviderExecuted: providerExecuted === true,
      step: this.steps,
      outcomes: 0
    })
  }

  private outcome(id: string, what: string, isProviderExecuted: boolean) {
    if (!this.isStepOpen) this.fault(`${what} outside a step`)
    if (!isProviderExecuted) this.hasOutcome = true
    if (this.waiting.has(id) && !this.calls.has(id)) {
      // The first step of a leg holds the outcome of the call that was decided.
      if (this.steps > 1) this.fault(`${what} of "${id}" behind the step that it belongs to`)
      this.waiting.delete(id)
      this.calls.set(id, { isProviderExecuted: false, step: this.steps, outcomes: 1 })
      this.decided.add(id)
      return
    }
    const call = this.calls.get(id)
    if (call === undefined) return this.fault(`${what} without a call, "${id}"`)
    call.outcomes++
    if (call.outcomes > 1) this.fault(`${what} is outcome ${call.outcomes} of "${id}"`)
    if (call.step !== this.steps && !isProviderExecuted) {
      this.fault(`${what} of a call of another step, "${id}"`)
    }
  }

  /** The answer is whole, and the numbers add up. */
  private judged(goal: Chunk.PayloadOf<"goal">): void {
    const { iteration, maxRunsReached, passed, status, timedOut } = goal
    if (!this.isStepOpen) this.fault("goal outside a step")
    this.nothingOpen("goal")
    this.allAnswered("goal")
    if (iteration < 1) this.fault(`goal of iteration ${iteration}`)
    if (passed && status !== "done") this.fault(`goal has passed, and is ${status}`)
    if (passed && timedOut) this.fault("goal has passed, and took too long")
    if (maxRunsReached !== (status === "paused" && iteration >= goal.maxRuns)) {
      this.fault(
        `goal ${iteration} of ${goal.maxRuns} is ${status}, and says ${maxRunsReached} of its budget`
      )
    }
    if (this.goal !== undefined && this.goal.status !== "active") this.fault(`goal after ${this.goal.status}`)
    this.goal = goal
  }

  private written(id: string): void {
    if (!this.isStepOpen) this.fault("tool-output outside a step")
    if (this.waiting.has(id)) return
    const call = this.calls.get(id)
    if (call === undefined) this.fault(`tool-output without a call, "${id}"`)
    else if (call.outcomes > 0) this.fault(`tool-output after the outcome of "${id}"`)
  }

  private nothingOpen(what: string): void {
    for (const [id, kind] of this.blocks) this.fault(`${what} while the ${kind} block "${id}" is open`)
    for (const [id, { isOpen }] of this.inputs) {
      if (isOpen) this.fault(`${what} while the input "${id}" is open`)
    }
  }

  private stepFinish({ payload }: Chunk.Of<"step-finish">): void {
    if (!this.isStepOpen) this.fault("step-finish outside a step")
    this.nothingOpen("step-finish")
    const isRejected = payload.stepResult.reason === "tripwire"
    if (isRejected) {
      if (payload.output.text !== "") this.fault("step-finish of a rejected step has text")
      if (payload.output.toolCalls.length > 0) this.fault("step-finish of a rejected step lists calls")
    }
    for (const id of this.inputs.keys()) {
      if (!isRejected && !this.calls.has(id))
        this.fault(`step-finish, and the input "${id}" never became a call`)
    }
    this.isLeftToClient = payload.stepResult.stoppedBy === "client-tool"
    this.open = this.isLeftToClient ? [] : this.unanswered()
    const called = [...this.calls]
      .filter(([id, { step }]) => step === this.steps && !this.decided.has(id))
      .map(([id]) => id)
    const listed = payload.output.toolCalls.map(call => call.toolCallId)
    if (!isRejected && called.join() !== listed.join()) {
      this.fault(`step-finish lists the calls [${listed.join()}], the step made [${called.join()}]`)
    }
    this.isContinued = payload.stepResult.isContinued
    if (this.goal !== undefined && this.goal.status !== "active" && this.isContinued) {
      this.fault(`step-finish says that the run goes on, and its goal is ${this.goal.status}`)
    }
    this.goal = undefined
    this.isRejected = isRejected
    for (const [id] of this.inputs) if (isRejected) this.inputs.delete(id)
    this.isStepOpen = false
  }

  /** Calls of the last step without an outcome: the run must say that they wait. */
  private open: ReadonlyArray<string> = []

  private unanswered(): ReadonlyArray<string> {
    return [...this.calls].flatMap(([id, { isProviderExecuted, outcomes }]) =>
      !isProviderExecuted && outcomes === 0 ? [id] : []
    )
  }

  /** Calls that this side answers; what a provider owes it may tell in a later answer. */
  private allAnswered(what: string): void {
    for (const [id, { isProviderExecuted, outcomes }] of this.calls) {
      if (!isProviderExecuted && outcomes === 0) this.fault(`${what}, and the call "${id}" has no outcome`)
    }
  }

  private runEnds(type: EndType, toolCallId: string | undefined): void {
    this.nothingOpen(type)
    if (!isSuspension(type)) this.allAnswered(type)
    else if (toolCallId !== undefined) this.waits(toolCallId)
    this.end = type
  }

  private waits(id: string): void {
    if (this.isStepOpen) this.fault(`"${id}" waits inside a step`)
    if (this.suspended.has(id)) this.fault(`"${id}" waits twice`)
    this.suspended.add(id)
    // Of a call of an agent below, the first of the ids is that of the call here.
    const own = this.calls.has(id) || this.waiting.has(id) ? id : (id.split("/")[0] ?? id)
    const call = this.calls.get(own)
    if (call === undefined && !this.waiting.has(own)) this.fault(`"${id}" waits, and was not called`)
    if (call !== undefined && call.outcomes > 0) this.fault(`"${id}" waits, and has its outcome`)
  }

  /** What has no outcome waits, and the run says so. */
  private allWait(): void {
    for (const id of this.open) {
      const isTold = [...this.suspended].some(told => told === id || told.startsWith(`${id}/`))
      if (!isTold) this.fault(`the call "${id}" has no outcome, and does not wait`)
    }
  }

  private finish({ payload }: Chunk.Of<"finish">): void {
    this.isFinished = true
    const { isContinued, reason } = payload.stepResult
    if (isContinued) this.fault("finish says that the run goes on")
    if (this.isRejected && this.isContinued === false && reason !== "tripwire") {
      this.fault(`finish says "${reason}" after a step that was rejected for good`)
    }
    this.allWait()
    // What is left of a leg may be decided elsewhere: then there is nothing to tell.
    if (this.end === undefined && reason === "suspended" && this.decided.size > 0) return
    if (this.end !== undefined) {
      if (reason !== endReasons[this.end]) this.fault(`finish says "${reason}" after ${this.end}`)
      return
    }
    if (this.isStepOpen) this.fault("finish inside a step of a run that ended by itself")
    if (this.steps === 0) this.fault("a run that ended by itself without a step")
    if (this.isContinued === true) this.fault("finish after a step that said another follows")
    const reasons: ReadonlyArray<string> = Object.values(endReasons)
    if (reasons.includes(reason)) this.fault(`finish says "${reason}", and no chunk says why`)
    if (!this.isLeftToClient) this.allAnswered("finish")
  }

  close(): void {
    if (!this.isFinished) this.fault("no finish")
  }
}

/**
 * What is wrong with the chunks of one run, each with its place; empty when they are in order. Of a leg of a run that was
 * suspended, `waiting` names the calls that waited.
 */
export const violationsOf = (
  chunks: ReadonlyArray<Chunk.Chunk>,
  waiting: Iterable<string> = []
): ReadonlyArray<string> => {
  const checker = new Checker(chunks[0]?.runId, waiting)
  for (const chunk of chunks) checker.take(chunk)
  checker.close()
  return checker.violations
}

/** The chunks of one run are in order. */
export const expectGrammar = (chunks: ReadonlyArray<Chunk.Chunk>, waiting: Iterable<string> = []): void => {
  expect(violationsOf(chunks, waiting)).toStrictEqual([])
}
