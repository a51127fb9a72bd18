/** What an agent is: data that runs are made from. */
import type { LanguageModel } from "../model/ModelPort.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import type * as Tool from "../tool/Tool.js"
import { defaultFields, refuseUnknown, settingsOf, toolsByName } from "./checkOptions.js"
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
  readonly toolsByName: ReadonlyMap<string, Tool.Tool<string, R>>
  readonly defaults: Defaults
}

/** What an agent is made of, and the settings that its runs have unless they say otherwise. @since 0.1.0 @category models */
export interface Options<Tools extends ReadonlyArray<Tool.Any>> extends Defaults {
  readonly id: string
  /** Default: the id. */
  readonly name?: string
  readonly description?: string
  /** The system prompt. */
  readonly instructions?: string
  readonly model: LanguageModel
  readonly tools?: Tools
}

/** What the tools of a list need. @since 0.1.0 @category models */
export type RequirementsOf<Tools extends ReadonlyArray<Tool.Any>> = Tool.Requirements<Tools[number]>

const agentFields = ["id", "name", "description", "instructions", "model", "tools", ...defaultFields]

/** Whether a value implements the port to a model. */
export const isLanguageModel = (value: unknown): value is LanguageModel =>
  typeof value === "object" && value !== null && "answer" in value && typeof value.answer === "function"

/**
 * Makes an agent. Throws `InvalidConfiguration`, which names the field and the remedy, when it cannot work: no id, no
 * model, two tools of one name, an unknown option, a limit below 1.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <const Tools extends ReadonlyArray<Tool.Any> = []>(
  options: Options<Tools>
): Agent<RequirementsOf<Tools>> => {
  const { description, id, instructions, model, name, tools, ...defaults } = options
  if (typeof id !== "string" || id === "") {
    throw new InvalidConfiguration({
      field: "id",
      message: "An agent needs an `id`: a string that is not empty."
    })
  }
  if (!isLanguageModel(model)) {
    throw new InvalidConfiguration({
      field: "model",
      message: `Agent "${id}" has no model. Give it a LanguageModel, for example LanguageModel.fromAiSdk(openai("gpt-5")).`
    })
  }
  refuseUnknown(`Agent "${id}"`, options, agentFields)
  settingsOf(defaults, {})
  return {
    [TypeId]: TypeId,
    id,
    name: name ?? id,
    description,
    instructions,
    model,
    toolsByName: toolsByName(toolsOf(tools)),
    defaults
  }
}

/** A tool's requirements are what the type of the list says they are. */
export const toolsOf = <Tools extends ReadonlyArray<Tool.Any>>(
  tools: Tools | undefined
): ReadonlyArray<Tool.Tool<string, RequirementsOf<Tools>>> =>
  (tools ?? []) as ReadonlyArray<Tool.Tool<string, RequirementsOf<Tools>>>
