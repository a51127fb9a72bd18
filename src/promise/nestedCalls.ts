/** The turns of threads that plain code works under: an agent that a tool runs does not wait for the run that called the tool. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { Caller } from "../agent/caller.js"
import type { ThreadTurn } from "../storage/ThreadStore.js"

type Turns = ReadonlyArray<ThreadTurn>

/** Where the runtime has no such storage (Node before 20.16, browsers), runs that tools start wait like all others. */
const storage = (() => {
  const hooks = globalThis.process?.getBuiltinModule?.("node:async_hooks")
  return hooks === undefined ? undefined : new hooks.AsyncLocalStorage<Turns>()
})()

/** Calls plain code of a tool or a step, which may run agents. */
export const callWithin = <A>(services: Context.Context<never>, call: () => A): A => {
  const { turns } = Context.get(services, Caller)
  return storage === undefined || turns.length === 0 ? call() : storage.run(turns, call)
}

/** A run that the plain code on this stack starts. */
export const startedWithin = <A, E, R>(run: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  const turns = storage?.getStore()
  if (turns === undefined) return run
  return Effect.flatMap(Caller, caller => Effect.provideService(run, Caller, { ...caller, turns }))
}
