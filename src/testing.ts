/**
 * What the tests of an agent need: a model that says what a script tells it. And what stores have to do.
 *
 * @since 0.1.0
 */
export * as ScriptedModel from "./model/ScriptedModel.js"
export * as RunStoreConformance from "./storage/RunStoreConformance.js"
export * as TaskStoreConformance from "./storage/TaskStoreConformance.js"
export * as ThreadStoreConformance from "./storage/ThreadStoreConformance.js"
