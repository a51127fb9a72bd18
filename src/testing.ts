/**
 * What the tests of an agent need: a model that says what a script tells it. And what a store of threads has to do.
 *
 * @since 0.1.0
 */
export * as ScriptedModel from "./model/ScriptedModel.js"
export * as ThreadStoreConformance from "./storage/ThreadStoreConformance.js"
