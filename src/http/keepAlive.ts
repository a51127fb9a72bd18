/** A stream that is never silent for long. */
import * as Batch from "effect/Chunk"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"

/**
 * Says `beat` whenever the stream has been silent for so long. What is pulled is pulled by a fiber of its own, which a beat
 * does not interrupt: nothing of the stream is lost.
 */
export const keepAlive = <E, R>(
  stream: Stream.Stream<string, E, R>,
  every: Duration.Duration,
  beat: string
): Stream.Stream<string, E, R> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const pull = yield* Stream.toPull(stream)
      let pending: Fiber.RuntimeFiber<Exit.Exit<Batch.Chunk<string>, Option.Option<E>>> | undefined
      const next = Effect.gen(function* () {
        pending ??= yield* Effect.forkIn(Effect.exit(pull), scope)
        const exit = yield* Effect.timeoutOption(Fiber.join(pending), every)
        if (Option.isNone(exit)) return Batch.of(beat)
        pending = undefined
        return yield* exit.value
      })
      return Stream.repeatEffectChunkOption(next)
    })
  )
