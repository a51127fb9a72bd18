/**
 * What the tests of an agent need: a model that says what a script tells it.
 *
 * @since 0.1.0
 */
export * as ScriptedModel from "./model/ScriptedModel.js"
