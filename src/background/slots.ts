/**
 * Who runs when: a semaphore for all tasks, and one for those of each agent. A semaphore wakes everybody who waits for it at each
 * release, so nobody does: what would find no permit waits in one queue, in the order in which it came.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type First, FirstComeFirstServed } from "./firstComeFirstServed.js"

/** Starts a fiber at once, on this stack, in the scope of the manager. */
export type Start = (effect: Effect.Effect<void>) => unknown

interface AgentSlots {
  readonly semaphore: Effect.Semaphore
  limit: number
  /** Permits that are taken. */
  running: number
}

/**
 * What is to be done in a slot, and what comes of it when the slot is free again. `undefined`: it could not be begun, and is to
 * be tried again in a while, when nothing else begins either.
 */
export type Work = Effect.Effect<Effect.Effect<void> | undefined>

interface Job {
  readonly limit: number
  readonly work: Work
}

/** There is a permit: nobody takes one who has not counted them. */
const withPermit = <A>(semaphore: Effect.Semaphore, effect: Effect.Effect<A>): Effect.Effect<A> =>
  Effect.flatMap(semaphore.withPermitsIfAvailable(1)(effect), done =>
    Option.isSome(done)
      ? Effect.succeed(done.value)
      : Effect.dieMessage("A slot was counted as free that was not.")
  )

const newSlots = (limit: number): AgentSlots => ({
  semaphore: Effect.unsafeMakeSemaphore(limit),
  limit,
  running: 0
})

/** Milliseconds until what could not be begun is tried again. */
const pause = 1000

export class Slots {
  private readonly semaphore: Effect.Semaphore
  /** Permits that are taken. */
  private running = 0
  private readonly agents = new Map<string, AgentSlots>()
  private readonly queue = new FirstComeFirstServed<Job>()
  private isDraining = false
  private isPaused = false
  private isClosed = false

  /** `start` is for work, which is to be finished; `fork` for waiting, which may be broken off. */
  constructor(
    private readonly start: Start,
    private readonly limit: number,
    private readonly fork: Start = start
  ) {
    this.semaphore = Effect.unsafeMakeSemaphore(limit)
  }

  /** Tasks that have a slot, tasks that wait for one, and agents that have any. */
  get counts(): { readonly running: number; readonly waiting: number; readonly agents: number } {
    return { running: this.running, waiting: this.queue.size, agents: this.agents.size }
  }

  /** Begins the work as soon as there is a slot for it and for everybody who came before. `limit` is that of the agent. */
  enqueue(agentId: string, limit: number, work: Work): void {
    if (this.isClosed) return
    this.limitTo(agentId, limit)
    this.queue.add(agentId, { limit, work })
    this.drain()
  }

  /** Begins the work now, in front of nobody who waits; whether there was a slot. */
  begin(agentId: string, limit: number, work: Work): boolean {
    if (this.isClosed || this.queue.size > 0) return false
    this.limitTo(agentId, limit)
    return this.enter(agentId, { limit, work }, undefined)
  }

  /** Nothing begins any more. */
  close(): void {
    this.isClosed = true
  }

  private drain(): void {
    // A job that ends at once comes back here from below.
    if (this.isDraining) return
    this.isDraining = true
    try {
      for (;;) {
        const next = this.queue.first()
        if (next === undefined || this.isPaused || this.isClosed) return
        if (!this.hasSlot(next.owner)) {
          if (this.running >= this.limit) return
          this.queue.block()
          continue
        }
        // Taken first: what cannot be begun is put back.
        this.queue.take()
        this.enter(next.owner, next.job, next)
      }
    } finally {
      this.isDraining = false
    }
  }

  /** What was said last of an agent counts, also for what waits; one that may run more than before is blocked no longer. */
  private limitTo(agentId: string, limit: number): void {
    const known = this.agents.get(agentId)
    if (known === undefined || known.limit === limit) return
    const isWider = known.limit < limit
    known.limit = limit
    this.start(known.semaphore.resize(limit))
    if (isWider) this.queue.unblock(agentId)
  }

  private hasSlot(agentId: string): boolean {
    const known = this.agents.get(agentId)
    return this.running < this.limit && (known === undefined || known.running < known.limit)
  }

  private enter(agentId: string, job: Job, waited: First<Job> | undefined): boolean {
    if (!this.hasSlot(agentId)) return false
    const slots = this.agents.get(agentId) ?? newSlots(job.limit)
    this.agents.set(agentId, slots)
    slots.running++
    this.running++
    this.start(
      Effect.matchCauseEffect(withPermit(slots.semaphore, withPermit(this.semaphore, job.work)), {
        onFailure: cause => {
          this.release(agentId, slots)
          return Effect.failCause(cause)
        },
        onSuccess: after => {
          if (after === undefined) this.postpone(agentId, job, waited)
          this.release(agentId, slots)
          return after ?? Effect.void
        }
      })
    )
    return true
  }

  private release(agentId: string, slots: AgentSlots): void {
    slots.running--
    this.running--
    if (slots.running === 0) this.agents.delete(agentId)
    this.queue.unblock(agentId)
    this.drain()
  }

  /** Nothing begins for a while; then this does, where it was in the queue. */
  private postpone(agentId: string, job: Job, waited: First<Job> | undefined): void {
    if (waited === undefined) this.queue.add(agentId, job)
    else this.queue.putBack(waited)
    if (this.isPaused) return
    this.isPaused = true
    this.fork(
      Effect.map(Effect.sleep(pause), () => {
        this.isPaused = false
        this.drain()
      })
    )
  }
}
