/** How long a model says nothing: the limits on its first content, and on what comes between its parts. */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Limits } from "../settings.js"

/** The limits of a model's silence. */
export type SilenceLimits = Pick<Limits, "firstContent" | "betweenChunks">

/** Which of them is over, and what it was in milliseconds. */
export interface Silence {
  readonly limit: keyof SilenceLimits
  readonly milliseconds: number
}

/** Watches one model call. Parts are only noted: nothing is set or cleared for each. */
export class SilenceWatch {
  private readonly begunAt: number
  private heardAt: number
  private isHeld = false

  constructor(
    private readonly limits: SilenceLimits,
    private readonly clock: Clock.Clock,
    /** Whether there is content yet. */
    private readonly isShown: () => boolean
  ) {
    this.begunAt = clock.unsafeCurrentTimeMillis()
    this.heardAt = this.begunAt
  }

  /** A part came. */
  readonly heard = (): void => {
    this.heardAt = this.clock.unsafeCurrentTimeMillis()
  }

  /** Readers hold the model, or no longer: while they do, it is not its silence. */
  readonly hold = (isHeld: boolean): void => {
    this.isHeld = isHeld
    this.heard()
  }

  /** How long to wait before there can be news, in milliseconds; or what is over. */
  private look(): number | Silence {
    const { betweenChunks = Number.POSITIVE_INFINITY, firstContent = Number.POSITIVE_INFINITY } = this.limits
    const now = this.clock.unsafeCurrentTimeMillis()
    if (!this.isShown()) {
      const left = this.begunAt + firstContent - now
      // Content may come meanwhile, and then the other limit counts.
      return left > 0 ? Math.min(left, betweenChunks) : { limit: "firstContent", milliseconds: firstContent }
    }
    const left = (this.isHeld ? now : this.heardAt) + betweenChunks - now
    return left > 0 ? left : { limit: "betweenChunks", milliseconds: betweenChunks }
  }

  /** Waits until the model has been silent for too long. */
  readonly over: Effect.Effect<Silence> = Effect.suspend(() => {
    const found = this.look()
    if (typeof found !== "number") return Effect.succeed(found)
    if (found === Number.POSITIVE_INFINITY) return Effect.never
    return Effect.zipRight(Effect.sleep(found), this.over)
  })
}

/** Whether there is anything to watch. */
export const isLimited = ({ betweenChunks, firstContent }: SilenceLimits): boolean =>
  betweenChunks !== undefined || firstContent !== undefined
