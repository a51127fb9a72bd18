/** Stores of a container around a store of threads that a test has made. */
import { RunStore, TaskStore, type ThreadStore } from "eddy"
import { Layer } from "effect"

/** With the other stores in memory. */
export const withThreads = <Others>(threads: Layer.Layer<ThreadStore.ThreadStore | Others>) =>
  Layer.mergeAll(threads, TaskStore.layerMemory, RunStore.layerMemory)
