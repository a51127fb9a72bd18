/**
 * Storage of a container that lives as long as its process.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { lazily } from "../protocol/lazily.js"
import { checkOptions, id } from "../protocol/options.js"
import * as memoryThreads from "../storage/memoryThreads.js"
import type * as RunStore from "../storage/RunStore.js"
import type * as TaskStore from "../storage/TaskStore.js"
import * as ThreadStore from "../storage/ThreadStore.js"

/** Where a container keeps what is to be kept. @since 0.1.0 @category models */
export interface Storage {
  readonly id: string
  /** The stores. One that cannot be reached fails, and so does everything of the container that needs them. */
  readonly layer: Layer.Layer<ThreadStore.ThreadStore | TaskStore.TaskStore | RunStore.RunStore, unknown>
}

/** Loaded by the first container that uses a store. */
const modules = lazily(() =>
  Promise.all([
    import("../storage/TaskStore.js"),
    import("../storage/RunStore.js"),
    import("../storage/memoryTasks.js"),
    import("../storage/memoryRuns.js")
  ])
)

type Others = Context.Context<TaskStore.TaskStore | RunStore.RunStore>

/** A layer that gives the same stores to everything that is built with it, whatever ends meanwhile. */
const sharedLayer = (): Storage["layer"] => {
  const threads = ThreadStore.make(memoryThreads.make())
  let made: Others | undefined
  const others = Effect.map(modules, ([tasks, runs, memoryTasks, memoryRuns]): Others => {
    // One clock for all: it judges the leases that they have on one another's tasks and runs.
    const clock = Clock.make()
    made ??= Context.make(tasks.TaskStore, tasks.make(memoryTasks.make(clock))).pipe(
      Context.add(runs.RunStore, runs.make(memoryRuns.make(clock)))
    )
    return made
  })
  return Layer.merge(Layer.succeed(ThreadStore.ThreadStore, threads), Layer.effectContext(others))
}

/** @since 0.1.0 @category models */
export interface InMemoryStoreOptions {
  /** Default `memory`. */
  readonly id?: string
}

/**
 * Keeps threads, background tasks and suspended runs in memory: for tests and first steps. One store is one storage: containers
 * that have it see the same, also what another one has left when it was shut down, as processes with one database do. Everything
 * is gone with the process.
 *
 * @since 0.1.0
 * @category models
 */
export class InMemoryStore implements Storage {
  readonly id: string
  readonly layer: Storage["layer"] = sharedLayer()

  constructor(options: InMemoryStoreOptions = {}) {
    checkOptions("InMemoryStore", options, { kinds: { id } })
    this.id = options.id ?? "memory"
  }
}
