/**
 * Tools as `@effect/ai` is told of them. It decodes every call and result of an answer with their schemas, and what does
 * not fit fails the whole answer. So these accept everything as it is: arguments are checked where tools are executed.
 */
import type * as AiLanguageModel from "@effect/ai/LanguageModel"
import * as AiTool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { JsonSchema, ToolChoice, ToolDefinition } from "../ModelPort.js"

/** A tool that the provider executes itself, as provider modules make them: `OpenAiTool.WebSearch({})`. */
export type ProviderTool = AiTool.Any & AiTool.Tool.ProviderDefinedProto

export type Tools = Record<string, AiTool.Any>

const schemaWords = ["type", "oneOf", "anyOf", "$ref"]

/** Without one of these words the annotation would be added to a schema of `Unknown`, instead of taking its place. */
const asObject = (inputSchema: JsonSchema): JsonSchema =>
  schemaWords.some(word => word in inputSchema) ? inputSchema : { ...inputSchema, type: "object" }

/** The schema of a parameter list that accepts every value, also one that is no object. */
const anything = (jsonSchema: JsonSchema = {}) =>
  Object.assign(Schema.Unknown.annotations({ jsonSchema }), {
    fields: {},
    make: (value: unknown) => value
  })

const anyOutcome = { success: Schema.Unknown, failure: Schema.Unknown }

const functionTool = ({ description, inputSchema, name }: ToolDefinition): AiTool.Any =>
  AiTool.make(name, { ...anyOutcome, ...(description === undefined ? {} : { description }) }).setParameters(
    anything(asObject(inputSchema))
  )

/** A copy: the tool is the caller's. */
const passThrough = (tool: ProviderTool): AiTool.Any =>
  Object.assign(Object.create(Object.getPrototypeOf(tool)), tool, {
    parametersSchema: anything(),
    successSchema: Schema.Unknown,
    failureSchema: Schema.Unknown
  })

/** A toolkit that is only told of: nobody calls its handler, as the resolution of calls is off. */
const toolkitOf = (tools: ReadonlyArray<AiTool.Any>): Toolkit.WithHandler<Tools> => ({
  tools: Object.fromEntries(tools.map(tool => [tool.name, tool])),
  handle: name => Effect.dieMessage(`Tool "${name}" was called outside the agent's loop.`)
})

/** The toolkit of a request. A tool of the provider's takes the place of one of the same name. */
export const makeToolkit = (
  definitions: ReadonlyArray<ToolDefinition>,
  providerTools: ReadonlyArray<ProviderTool>
): Toolkit.WithHandler<Tools> =>
  toolkitOf([...definitions.map(functionTool), ...providerTools.map(passThrough)])

/** A toolkit that knows these names too. */
export const withNames = (
  toolkit: Toolkit.WithHandler<Tools>,
  names: ReadonlyArray<string>
): Toolkit.WithHandler<Tools> =>
  toolkitOf([...Object.values(toolkit.tools), ...names.map(name => functionTool({ name, inputSchema: {} }))])

export const toolChoice = (choice: ToolChoice): AiLanguageModel.ToolChoice<string> =>
  typeof choice === "string" ? choice : { tool: choice.toolName }
