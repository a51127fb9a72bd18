/** Modules that take long to load, and that not everybody needs. */
import * as Effect from "effect/Effect"

/** A module that is loaded by whoever is going to need it, before that. */
export interface Part<out A> {
  /** Loads it. Costs nothing when it is there. */
  readonly load: Effect.Effect<A>
  /** It, for plain code that comes after whoever has loaded it. */
  readonly get: () => A
}

/** A module that is loaded before it is needed first, and is at hand from then on. */
export const part = <A>(load: () => Promise<A>): Part<A> => {
  let loaded: { readonly module: A; readonly effect: Effect.Effect<A> } | undefined
  const loading = Effect.promise(async () => {
    const module = await load()
    loaded = { module, effect: Effect.succeed(module) }
    return module
  })
  return {
    load: Effect.suspend(() => loaded?.effect ?? loading),
    get: () => {
      if (loaded === undefined) throw new Error("A part of eddy was needed before it was loaded.")
      return loaded.module
    }
  }
}

/** A module that is loaded when it is needed first, and is at hand from then on. */
export const lazily = <A>(load: () => Promise<A>): Effect.Effect<A> => part(load).load
