/** What the requests of several protocols share: tools of the client, and arguments as text. */
import { isRecord } from "../../protocol/safeJson.js"

/** A tool that the client executes: the run ends with its call, and the client sends the result with the next request. */
export interface ClientTool {
  readonly name: string
  readonly description?: string
  /** A JSON Schema. */
  readonly inputSchema: { readonly [key: string]: unknown }
}

/** Arguments of a call. Text that is no JSON stays text: a model has written it. */
export const inputOf = (text: string): unknown => {
  if (text.trim() === "") return {}
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A tool as a request describes it; without parameters it takes any object. */
export const clientTool = (
  name: string,
  description: string | undefined,
  parameters: unknown
): ClientTool => ({
  name,
  ...(description === undefined ? {} : { description }),
  inputSchema: isRecord(parameters) ? parameters : { type: "object" }
})
