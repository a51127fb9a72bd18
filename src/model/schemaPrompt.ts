/** How a model is told of a schema that nothing else binds it to. */
import type { JsonSchema } from "./ModelPort.js"

export const schemaPrompt = (schema: JsonSchema): string =>
  `Give your final answer as JSON only, without prose or code fences. It must match this JSON Schema:\n${JSON.stringify(schema)}`
