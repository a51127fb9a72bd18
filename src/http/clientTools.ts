/** Tools that clients execute, as requests bring them: allowed by the host, few enough, each name once. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { JsonSchema } from "../model/ModelPort.js"
import { isRecord } from "../protocol/safeJson.js"
import type { Asked } from "./asked.js"
import { checkSize } from "./clientSchema.js"
import type { HostRunOptions } from "./Host.js"
import { type ClientTool, clientTool } from "./mapping/clientTools.js"
import type { Fields } from "./reading.js"
import { invalidBody, type Refusal } from "./refusal.js"

type Told = Pick<HostRunOptions, "clientTools">

/** As many as OpenAI takes. Their size is the body's. */
const most = 128

const isSchema = (value: unknown): value is JsonSchema => Predicate.isRecord(value)

/** Tools of the client. `field` is what its protocol calls them. */
export const toolsOf = (
  { settings }: Pick<Asked, "settings">,
  tools: ReadonlyArray<ClientTool>,
  field: string
): Effect.Effect<Told, Refusal> => {
  if (tools.length === 0) return Effect.succeed({})
  if (!settings.clientOptions.has("tools")) return invalidBody(field, "of clients are not taken here")
  if (tools.length > most) return invalidBody(field, `are more than ${most}`)
  const names = new Set(tools.map(({ name }) => name))
  if (names.size < tools.length) return invalidBody(field, "hold two of one name")
  const clientTools = Object.fromEntries(
    tools.map(({ inputSchema, name, ...tool }) => [
      name,
      { ...tool, ...(isSchema(inputSchema) ? { inputSchema } : {}) }
    ])
  )
  return Effect.as(
    checkSize(
      tools.map(({ inputSchema }) => inputSchema),
      field
    ),
    { clientTools }
  )
}

/**
 * Tools by name, in any of the words that clients have for their schema. What else they hold, for example `id` or
 * `outputSchema`, is for the client.
 */
export const readTools = (
  asked: Pick<Asked, "settings">,
  body: Fields,
  field: string
): Effect.Effect<Told, Refusal> => {
  const given = body[field]
  if (given === undefined || given === null) return Effect.succeed({})
  if (!isRecord(given) || Array.isArray(given))
    return invalidBody(field, "must be an object of tools by name")
  const tools: Array<ClientTool> = []
  for (const [name, tool] of Object.entries(given)) {
    if (!isRecord(tool)) return invalidBody(`${field}.${name}`, "must be an object")
    const { description, inputSchema, parameters = inputSchema } = tool
    if (description !== undefined && description !== null && typeof description !== "string") {
      return invalidBody(`${field}.${name}.description`, "must be a text")
    }
    if (parameters !== undefined && parameters !== null && !isRecord(parameters)) {
      return invalidBody(`${field}.${name}.inputSchema`, "must be a JSON Schema")
    }
    tools.push(clientTool(name, description ?? undefined, parameters))
  }
  return toolsOf(asked, tools, field)
}
