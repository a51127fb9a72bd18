/**
 * Language models of `@effect/ai` for agents. Needs the package `@effect/ai`.
 *
 * @since 0.1.0
 */
export * as EffectAi from "./model/effectai/EffectAi.js"
