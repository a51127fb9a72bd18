/**
 * Language models: the port, and the models that stand behind it.
 *
 * @since 0.1.0
 */

export { type AiSdkCallOptions, type AiSdkModel, type AiSdkStreamResult, make as fromAiSdk } from "./AiSdk.js"
export type {
  JsonSchema,
  LanguageModel,
  ModelAnswer,
  ModelRequest,
  ModelSettings,
  ToolChoice,
  ToolDefinition
} from "./ModelPort.js"
export { fromId, type ModelId } from "./ModelRouter.js"
