/**
 * Language models of the AI SDK, specifications V2, V3 and V4, behind the model port. The provider packages stay the
 * caller's: nothing of the AI SDK is imported here, types included.
 *
 * @since 0.1.0
 */
import * as Predicate from "effect/Predicate"
import { InvalidConfiguration, ModelError } from "../protocol/Errors.js"
import { normalize, warningsOf } from "./aiSdkParts.js"
import { makePrompt } from "./aiSdkPrompt.js"
import type * as Types from "./aiSdkTypes.js"
import { versions } from "./aiSdkTypes.js"
import { describe } from "./failureInfo.js"
import type { LanguageModel, ModelAnswer, ModelRequest, ToolChoice, ToolDefinition } from "./ModelPort.js"

/**
 * Any AI SDK language model of specification V2, V3 or V4, as a provider package makes it: `openai("gpt-5")`.
 *
 * @since 0.1.0
 * @category models
 */
export type AiSdkModel = Types.AiSdkModel

/**
 * Options of one call of an {@link AiSdkModel}, as far as they are used here.
 *
 * @since 0.1.0
 * @category models
 */
export type AiSdkCallOptions = Types.AiSdkCallOptions

/**
 * What a call of an {@link AiSdkModel} comes to.
 *
 * @since 0.1.0
 * @category models
 */
export type AiSdkStreamResult = Types.AiSdkStreamResult

const functionTool = ({ name, description, inputSchema }: ToolDefinition): object => ({
  type: "function",
  name,
  ...(description === undefined ? {} : { description }),
  inputSchema
})

const toolChoice = (choice: ToolChoice): { readonly type: string; readonly toolName?: string } =>
  typeof choice === "string" ? { type: choice } : choice

/** Without tools there is neither a list nor a choice: some providers refuse an empty list. */
const toolOptions = (request: ModelRequest): Pick<AiSdkCallOptions, "tools" | "toolChoice"> => ({
  ...(request.tools.length === 0 ? {} : { tools: request.tools.map(functionTool) }),
  ...(request.tools.length === 0 || request.toolChoice === undefined
    ? {}
    : { toolChoice: toolChoice(request.toolChoice) })
})

/** Copies, because providers may change what they are given. */
const settingOptions = ({
  settings = {},
  providerOptions,
  responseFormat
}: ModelRequest): Partial<AiSdkCallOptions> => ({
  ...settings,
  ...(settings.stopSequences === undefined ? {} : { stopSequences: [...settings.stopSequences] }),
  ...(settings.headers === undefined ? {} : { headers: { ...settings.headers } }),
  ...(providerOptions === undefined ? {} : { providerOptions }),
  ...(responseFormat === undefined ? {} : { responseFormat: structuredClone(responseFormat) })
})

const isStreamResult = (result: unknown): boolean =>
  Predicate.hasProperty(result, "stream") && Predicate.hasProperty(result.stream, "getReader")

const requestFailure = ({ provider, modelId }: AiSdkModel, cause: unknown): ModelError =>
  new ModelError({ reason: "request", provider, modelId, ...describe(cause), cause })

const answerOf = ({ stream, request, response, warnings }: AiSdkStreamResult): ModelAnswer => ({
  source: stream,
  normalize,
  warnings: warningsOf(warnings),
  ...(request?.body === undefined ? {} : { requestBody: request.body }),
  ...(response?.headers === undefined ? {} : { responseHeaders: response.headers })
})

const check = (model: unknown): void => {
  const version = Predicate.hasProperty(model, "specificationVersion")
    ? model.specificationVersion
    : undefined
  if (versions.some(known => known === version)) return
  const found =
    version === undefined ? "no specificationVersion" : `specificationVersion "${String(version)}"`
  throw new InvalidConfiguration({
    field: "model.specificationVersion",
    message: `The model has ${found}; eddy reads AI SDK specifications v2, v3 and v4. Pass a language model of a provider package such as @ai-sdk/openai, in a version that implements one of them.`
  })
}

/**
 * An AI SDK language model as a {@link LanguageModel}. Throws `InvalidConfiguration` when the model implements none of the
 * specifications V2, V3 and V4.
 *
 * `answer` rejects with a `ModelError` of reason `request` when `doStream` throws or rejects; what goes wrong later is for
 * the reader of the answer: an `error` part, or a source that fails.
 *
 * When the provider's body ends too early, what comes depends on the provider package: an `error` part and a `finish`
 * with reason `error`; a `finish` with reason `other` whose `rawReason` is absent or `interrupted`; or no `finish`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (model: AiSdkModel): LanguageModel => {
  check(model)
  const { provider, modelId, specificationVersion } = model
  const prompt = makePrompt(specificationVersion, provider)
  const answer = async (request: ModelRequest, abortSignal: AbortSignal): Promise<ModelAnswer> => {
    try {
      const result = await model.doStream({
        ...settingOptions(request),
        ...toolOptions(request),
        prompt: prompt(request.messages, request.providerOptions),
        includeRawChunks: request.includeRawChunks,
        abortSignal
      })
      if (!isStreamResult(result)) throw new TypeError("The provider answered without a stream.")
      return answerOf(result)
    } catch (cause) {
      throw requestFailure(model, cause)
    }
  }
  return { provider, modelId, answer }
}
