/**
 * Storage of a container that lives as long as its process.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { lazily } from "../protocol/lazily.js"
import { checkOptions, id } from "../protocol/options.js"
import type * as RunStore from "../storage/RunStore.js"
import type * as TaskStore from "../storage/TaskStore.js"
import * as ThreadStore from "../storage/ThreadStore.js"

/** Where a container keeps what is to be kept. @since 0.1.0 @category models */
export interface Storage {
  readonly id: string
  /** The stores. One that cannot be reached fails, and so does everything of the container that needs them. */
  readonly layer: Layer.Layer<ThreadStore.ThreadStore | TaskStore.TaskStore | RunStore.RunStore, unknown>
}

/** Loaded by the container that uses them. */
const others = Layer.unwrapEffect(
  Effect.map(
    lazily(() => Promise.all([import("../storage/TaskStore.js"), import("../storage/RunStore.js")])),
    ([tasks, runs]) => Layer.merge(tasks.layerMemory, runs.layerMemory)
  )
)

/** @since 0.1.0 @category models */
export interface InMemoryStoreOptions {
  /** Default `memory`. */
  readonly id?: string
}

/**
 * Keeps threads, background tasks and suspended runs in memory: for tests and first steps. Everything is gone with the
 * process; two containers that share one have nothing in common.
 *
 * @since 0.1.0
 * @category models
 */
export class InMemoryStore implements Storage {
  readonly id: string
  readonly layer: Storage["layer"] = Layer.merge(ThreadStore.layerMemory, others)

  constructor(options: InMemoryStoreOptions = {}) {
    checkOptions("InMemoryStore", options, { kinds: { id } })
    this.id = options.id ?? "memory"
  }
}
