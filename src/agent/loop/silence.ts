/** How long a model says nothing: the limits on its first content, and on what comes between its parts. */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { ModelPart } from "../../model/ModelPart.js"
import type { Limits } from "../settings.js"

/** The limits of a model's silence. */
export type SilenceLimits = Pick<Limits, "firstContent" | "betweenChunks">

/** Which of them is over, and what it was in milliseconds. */
export interface Silence {
  readonly limit: keyof SilenceLimits
  readonly milliseconds: number
}

/** Whether a part is progress: content, or the edge of a block. A model that sends anything else, however often, is silent. */
const isProgress = (part: ModelPart): boolean => {
  switch (part.type) {
    case "text-delta":
    case "reasoning-delta":
    case "tool-input-delta":
      return Boolean(part.delta)
    case "text-start":
    case "text-end":
    case "reasoning-start":
    case "reasoning-end":
    case "tool-input-start":
    case "tool-input-end":
    case "tool-call":
    case "tool-result":
    case "source":
    case "file":
    case "finish":
    case "error":
      return true
    default:
      return false
  }
}

/**
 * Watches one model call. Parts are only noted: nothing is set or cleared for each. Reads the nanoseconds of the clock, which
 * are monotonic: a machine whose time of day is set back or forward changes no limit.
 */
export class SilenceWatch {
  private readonly startedAt: bigint
  private heardAt: bigint
  private hasContent = false
  /** When readers began to hold the model; `undefined`: they do not. */
  private heldAt: bigint | undefined
  private onReleased: () => void = () => undefined

  constructor(
    private readonly limits: SilenceLimits,
    private readonly clock: Clock.Clock,
    /** Whether there is content yet. */
    private readonly isShown: () => boolean
  ) {
    this.startedAt = clock.unsafeCurrentTimeNanos()
    this.heardAt = this.startedAt
  }

  /** A part came, and the answer has accepted it. */
  readonly heard = (part: ModelPart): void => {
    const isFirst = !this.hasContent && this.isShown()
    if (isFirst) this.hasContent = true
    if (isFirst || isProgress(part)) this.heardAt = this.clock.unsafeCurrentTimeNanos()
  }

  /** Readers hold the model. That time is not its silence: the limit goes on at {@link release}. */
  readonly hold = (): void => {
    this.heldAt = this.clock.unsafeCurrentTimeNanos()
  }

  /** Readers hold the model no longer. */
  readonly release = (): void => {
    if (this.heldAt !== undefined) this.heardAt += this.clock.unsafeCurrentTimeNanos() - this.heldAt
    this.heldAt = undefined
    this.onReleased()
  }

  /** Milliseconds since then, whole ones. */
  private since(then: bigint): number {
    return Number((this.clock.unsafeCurrentTimeNanos() - then) / 1_000_000n)
  }

  /** How long to wait before there can be news, in milliseconds; or what is over. */
  private look(): number | Silence {
    const { betweenChunks = Number.POSITIVE_INFINITY, firstContent = Number.POSITIVE_INFINITY } = this.limits
    if (!this.isShown()) {
      const left = firstContent - this.since(this.startedAt)
      // Content may come meanwhile, and then the other limit counts.
      return left > 0 ? Math.min(left, betweenChunks) : { limit: "firstContent", milliseconds: firstContent }
    }
    const left = betweenChunks - this.since(this.heardAt)
    return left > 0 ? left : { limit: "betweenChunks", milliseconds: betweenChunks }
  }

  private readonly released: Effect.Effect<void> = Effect.async(resume => {
    this.onReleased = () => resume(Effect.void)
    if (this.heldAt === undefined) this.onReleased()
  })

  /** Waits until the model has been silent for too long. */
  readonly over: Effect.Effect<Silence> = Effect.suspend(() => {
    if (this.isShown() && this.heldAt !== undefined) return Effect.zipRight(this.released, this.over)
    const found = this.look()
    if (typeof found !== "number") return Effect.succeed(found)
    if (found === Number.POSITIVE_INFINITY) return Effect.never
    return Effect.zipRight(Effect.sleep(found), this.over)
  })
}

/** Whether there is anything to watch. */
export const isLimited = ({ betweenChunks, firstContent }: SilenceLimits): boolean =>
  betweenChunks !== undefined || firstContent !== undefined
