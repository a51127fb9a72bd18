/**
 * Storage of a container that lives as long as its process.
 *
 * @since 0.1.0
 */
import type * as Layer from "effect/Layer"
import { refuseUnknown } from "../agent/checkOptions.js"
import * as ThreadStore from "../storage/ThreadStore.js"

/** Where a container keeps what is to be kept. @since 0.1.0 @category models */
export interface Storage {
  readonly id: string
  readonly layer: Layer.Layer<ThreadStore.ThreadStore>
}

/** @since 0.1.0 @category models */
export interface InMemoryStoreOptions {
  /** Default `memory`. */
  readonly id?: string
}

/**
 * Keeps threads in memory: for tests and first steps. Everything is gone with the process; two containers that share one
 * have different threads.
 *
 * @since 0.1.0
 * @category models
 */
export class InMemoryStore implements Storage {
  readonly id: string
  readonly layer: Layer.Layer<ThreadStore.ThreadStore> = ThreadStore.layerMemory

  constructor(options: InMemoryStoreOptions = {}) {
    refuseUnknown("InMemoryStore", options, ["id"])
    this.id = options.id ?? "memory"
  }
}
