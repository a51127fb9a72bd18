/** What an agent is: data that a run is made from. */
import type { LanguageModel } from "../model/ModelPort.js"
import type { Tool } from "../tool/Tool.js"
import type { Defaults } from "./RunOptions.js"

/** @since 0.1.0 @category symbols */
export const TypeId: unique symbol = Symbol.for("eddy/Agent")

/** @since 0.1.0 @category symbols */
export type TypeId = typeof TypeId

/** An agent whose tools need `R`. Made by `Agent.make`. @since 0.1.0 @category models */
export interface Agent<out R = never> {
  readonly [TypeId]: TypeId
  readonly id: string
  readonly name: string
  readonly description: string | undefined
  readonly instructions: string | undefined
  readonly model: LanguageModel
  readonly toolsByName: ReadonlyMap<string, Tool<string, R>>
  readonly defaults: Defaults
}
