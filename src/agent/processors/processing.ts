/**
 * What an answer tells, on its way through the processors of its stream: between the answer and whatever holds it back until it
 * says something.
 *
 * Hooks that are plain code run on the stack of the model's chunk. One that gives an Effect is waited for: what comes meanwhile
 * queues, in order, and the model is held when that is much.
 */
import * as Effect from "effect/Effect"
import type { Tripwire } from "../../output/FullOutput.js"
import type { Chunk } from "../../protocol/Chunk.js"
import type { ProcessorFailed } from "../../protocol/Errors.js"
import { squash } from "../../protocol/foreignValue.js"
import type { Processor } from "./definition.js"
import { failedIn, gaveWrong } from "./failing.js"
import { readGiven } from "./given.js"

/** Why nothing passes any more. */
export type Stopped = { readonly tripwire: Tripwire } | { readonly error: ProcessorFailed }

/** A hook of the stream, with its context. */
interface StreamHook {
  readonly processor: Processor
  readonly call: (chunk: Chunk) => unknown
}

/** Whom the chunks are for, and who waits for them. */
export interface Outlet {
  readonly hooks: ReadonlyArray<StreamHook>
  /** Remembers what is told of a chunk of the answer. */
  readonly record: (chunk: Chunk, emitted: Chunk) => void
  readonly tell: (chunk: Chunk) => void
  /** Starts an effect, and gives what stops it. */
  readonly fork: (effect: Effect.Effect<void>) => (reason: unknown) => void
  /** Nothing passes any more. */
  readonly onStopped: (stopped: Stopped) => void
  /** Everything that had queued has passed. */
  readonly onIdle: () => void
}

/** Chunks that queue behind one that is waited for, before the model is held. */
const capacity = 16

/** A chunk that has passed the first hooks. */
interface Queued {
  readonly chunk: Chunk
  /** The chunk of the answer that it was made of. */
  readonly emitted: Chunk
  /** The hook that it is for next. */
  readonly at: number
}

const ignore = (): void => undefined

export class Processing {
  /** Blocks and inputs that were told to begin, and not to end. */
  private readonly open = new Map<string, "text" | "reasoning" | "input">()
  private queue: Array<Queued> = []
  private isAwaiting = false
  private isPassing = false
  private isOver = false
  private stopAwaiting: (reason: unknown) => void = ignore
  private writers: Array<() => void> = []
  /** The start of the step, until it is told. */
  private beginning: Chunk | undefined
  private hasBegun = false
  /** Why nothing passes any more; `undefined` also when that is only because the answer is over. */
  stopped: Stopped | undefined

  constructor(private readonly outlet: Outlet) {}

  /** Takes the next chunk of the answer. */
  readonly emit = (chunk: Chunk): void => {
    if (!this.hasBegun && chunk.type === "step-start") this.beginning = chunk
    if (this.isOver) {
      if (!this.hasBegun) this.begin()
    } else if (this.isPassing || this.isAwaiting || this.queue.length > 0) {
      this.queue.push({ chunk, emitted: chunk, at: 0 })
    } else {
      this.isPassing = true
      this.pass(chunk, chunk, 0)
      this.isPassing = false
      if (this.queue.length > 0) this.drain()
    }
  }

  /** Moves a chunk through the hooks from this one on. */
  private pass(first: Chunk, emitted: Chunk, from: number) {
    const { hooks } = this.outlet
    let chunk = first
    for (let at = from; at < hooks.length; at++) {
      const hook = hooks[at]
      if (hook === undefined) continue
      let given: unknown
      try {
        given = hook.call(chunk)
      } catch (cause) {
        return this.fail(failedIn(hook.processor, "processOutputStream", cause))
      }
      if (this.isOver) return
      if (given === chunk) continue
      if (Effect.isEffect(given))
        return this.await(given as Effect.Effect<unknown, unknown>, chunk, emitted, at)
      const made = this.made(given, chunk, hook.processor)
      if (made === undefined || made.length === 0) return
      const [one] = made
      if (one === undefined || made.length > 1) return this.requeue(made, emitted, at + 1)
      chunk = one
    }
    this.tell(chunk, emitted)
  }

  private made(given: unknown, chunk: Chunk, processor: Processor): ReadonlyArray<Chunk> | undefined {
    const made = readGiven(given, chunk, this.open)
    if (typeof made !== "string") return made
    this.fail(gaveWrong(processor, "processOutputStream", made))
    return undefined
  }

  /** These come before whatever queues already. */
  private requeue(chunks: ReadonlyArray<Chunk>, emitted: Chunk, at: number): void {
    this.queue = [...chunks.map(chunk => ({ chunk, emitted, at })), ...this.queue]
  }

  private await(effect: Effect.Effect<unknown, unknown>, chunk: Chunk, emitted: Chunk, at: number): void {
    const processor = this.outlet.hooks[at]?.processor
    if (processor === undefined) return
    this.isAwaiting = true
    const settled = Effect.matchCause(effect, {
      onFailure: cause => this.fail(failedIn(processor, "processOutputStream", squash(cause))),
      onSuccess: given => {
        if (this.isOver) return
        this.isAwaiting = false
        this.stopAwaiting = ignore
        const made = given === chunk ? [chunk] : this.made(given, chunk, processor)
        if (made === undefined) return
        this.requeue(made, emitted, at + 1)
        if (!this.isPassing) this.drain()
      }
    })
    const stop = this.outlet.fork(settled)
    if (this.isOver) stop(undefined)
    else if (this.isAwaiting) this.stopAwaiting = stop
  }

  private drain(): void {
    this.isPassing = true
    while (!this.isOver && !this.isAwaiting) {
      const next = this.queue.shift()
      if (next === undefined) break
      this.pass(next.chunk, next.emitted, next.at)
    }
    this.isPassing = false
    if (this.isIdle) this.idle()
  }

  private idle(): void {
    const { writers } = this
    this.writers = []
    for (const writer of writers) writer()
    this.outlet.onIdle()
  }

  /** A chunk has passed. */
  private tell(chunk: Chunk, emitted: Chunk): void {
    switch (chunk.type) {
      case "step-start":
        this.hasBegun = true
        break
      case "text-start":
        this.open.set(chunk.payload.id, "text")
        break
      case "reasoning-start":
        this.open.set(chunk.payload.id, "reasoning")
        break
      case "tool-call-input-streaming-start":
        this.open.set(chunk.payload.toolCallId, "input")
        break
      case "text-end":
      case "reasoning-end":
        this.open.delete(chunk.payload.id)
        break
      case "tool-call-input-streaming-end":
        this.open.delete(chunk.payload.toolCallId)
        break
      default:
        break
    }
    this.outlet.record(chunk, emitted)
    this.outlet.tell(chunk)
  }

  private begin(): void {
    const { beginning } = this
    if (this.hasBegun || beginning === undefined) return
    this.tell(beginning, beginning)
  }

  /** A processor stops the answer. Counts until that is over. */
  readonly trip = (tripwire: Tripwire): void => this.halt({ tripwire })

  private fail(error: ProcessorFailed): void {
    this.halt({ error })
  }

  private halt(stopped: Stopped): void {
    if (this.isOver) return
    this.stopped = stopped
    this.discard()
    this.outlet.onStopped(stopped)
  }

  /** Nothing passes any more, and nothing is waited for. */
  discard(): void {
    if (this.isOver) return
    const { isIdle } = this
    this.isOver = true
    this.queue = []
    this.stopAwaiting(undefined)
    this.isAwaiting = false
    if (!isIdle) this.idle()
  }

  /** The same; and ends what was told to begin, so that no processor sees that. */
  end(): void {
    this.discard()
    this.begin()
    const runId = this.beginning?.runId ?? ""
    for (const [id, kind] of this.open) {
      if (kind === "input") {
        this.outlet.tell({
          type: "tool-call-input-streaming-end",
          runId,
          from: "AGENT",
          payload: { toolCallId: id }
        })
      } else {
        this.outlet.tell({ type: `${kind}-end`, runId, from: "AGENT", payload: { id } })
      }
    }
    this.open.clear()
  }

  /** Whether everything that the answer has emitted has passed. */
  get isIdle(): boolean {
    return this.queue.length === 0 && !this.isAwaiting
  }

  /** Whether the model is to be held. */
  get isFull(): boolean {
    return this.queue.length >= capacity
  }

  /** Settles when everything has passed, or nothing does any more. */
  drained(): Promise<void> {
    return new Promise(resolve => {
      if (this.isIdle) resolve()
      else this.writers.push(resolve)
    })
  }
}
