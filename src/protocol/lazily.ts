/** Modules that take long to load, and that not everybody needs. */
import * as Effect from "effect/Effect"

/** A module that is loaded when it is needed first, and is at hand from then on. */
export const lazily = <A>(load: () => Promise<A>): Effect.Effect<A> => {
  let loaded: Effect.Effect<A> | undefined
  const loading = Effect.map(Effect.promise(load), module => {
    loaded = Effect.succeed(module)
    return module
  })
  return Effect.suspend(() => loaded ?? loading)
}
