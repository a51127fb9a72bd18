/** Tools that whoever asks for a run executes: definitions, without anything to execute. */
import * as Predicate from "effect/Predicate"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { at, checkOptions, type Kind, type Known, read, text } from "../protocol/options.js"
import * as Tool from "./Tool.js"
import type * as ToolSchema from "./ToolSchema.js"

/** A tool of whoever asks for a run: what the model is told of it. @since 0.1.0 @category models */
export interface ClientTool {
  /** Tells the model what the tool is for. */
  readonly description?: string
  /** What the arguments must be. Nobody checks them here: the client does. Default: any object. */
  readonly inputSchema?: ToolSchema.Source
}

const anyObject = { type: "object" } as const

const known: Known = {
  kinds: { description: text, inputSchema: read } satisfies Record<keyof ClientTool, Kind>,
  places: { parameters: at("inputSchema"), input: at("inputSchema") }
}

const wrong = (field: string, message: string): InvalidConfiguration =>
  new InvalidConfiguration({ field, message: `\`${field}\` ${message}` })

const made = (name: string, tool: ClientTool): Tool.Tool => {
  const field = `clientTools.${name}`
  checkOptions(`\`${field}\``, tool, known, field)
  const { description, inputSchema = anyObject } = tool
  try {
    return Tool.make(name, { input: inputSchema, ...(description === undefined ? {} : { description }) })
  } catch (cause) {
    if (!(cause instanceof InvalidConfiguration)) throw cause
    throw new InvalidConfiguration({
      field: cause.field === "name" ? field : `${field}.inputSchema`,
      message: cause.message.replaceAll(`${name}.input`, `${field}.inputSchema`)
    })
  }
}

/** The tools, none of which has the name of another one of the run. Throws `InvalidConfiguration`. */
export const toClientTools = (
  given: Readonly<Record<string, ClientTool>> | undefined,
  known: ReadonlyMap<string, unknown>
): ReadonlyArray<Tool.Tool> => {
  if (given === undefined) return []
  if (!Predicate.isRecord(given)) {
    throw wrong("clientTools", "are no tools by name. Give { name: { description, inputSchema } }.")
  }
  return Object.entries(given).map(([name, tool]) => {
    if (!known.has(name)) return made(name, tool)
    throw wrong(`clientTools.${name}`, "has the name of a tool of the agent. Give it another one.")
  })
}
