/** What every store makes of a driver that fails, dies or does not answer. Called within a `describe`. */
import { expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, Option } from "effect"

/** `ask` asks a store whose driver answers everything with this effect. */
export const failingDrivers = <Name extends string>(
  service: string,
  names: ReadonlyArray<Name>,
  ask: (name: Name, answer: Effect.Effect<never, unknown>) => Effect.Effect<unknown, unknown>
): void => {
  it.effect.each([...names])("fails makes %s fail with a StorageError", name =>
    Effect.gen(function* () {
      const cause = new Error("password=secret")
      const error = yield* Effect.flip(ask(name, Effect.fail(cause)))
      expect(error).toMatchObject({ _tag: "StorageError", operation: `${service}.${name}` })
      expect(error).toHaveProperty("cause", cause)
      expect(JSON.stringify(error)).toContain(`${service}.${name}`)
      expect(JSON.stringify(error)).not.toContain("secret")
    })
  )

  it.effect.each([...names])("dies makes %s die", name =>
    Effect.gen(function* () {
      const defect = new Error("a bug")
      const exit = yield* Effect.exit(ask(name, Effect.die(defect)))
      expect(Exit.isFailure(exit) && Option.getOrUndefined(Cause.dieOption(exit.cause))).toBe(defect)
    })
  )

  it.live.each([...names])("is interrupted is interrupted by %s", name =>
    Effect.gen(function* () {
      const asked = yield* Effect.makeLatch()
      const left = yield* Effect.makeLatch()
      const hanging = Effect.onInterrupt(Effect.zipRight(asked.open, Effect.never), () => left.open)
      yield* Effect.raceFirst(ask(name, hanging), asked.await)
      yield* left.await
    })
  )
}
