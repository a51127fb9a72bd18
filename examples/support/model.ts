/**
 * The model of an example: a real one when a key is in the environment, otherwise the script that the example brings.
 * `EDDY_MODEL` names another model of the same provider.
 */
import type { AiSdkModel, LanguageModel } from "eddy/promise"

const { ANTHROPIC_API_KEY, EDDY_MODEL, GOOGLE_GENERATIVE_AI_API_KEY, OPENAI_API_KEY } = process.env

// Imported when it is chosen, so that an example without a key loads no provider package.
export const pickModel = async (script: LanguageModel): Promise<AiSdkModel | LanguageModel> => {
  if (OPENAI_API_KEY) return (await import("@ai-sdk/openai")).openai(EDDY_MODEL ?? "gpt-5-mini")
  if (ANTHROPIC_API_KEY)
    return (await import("@ai-sdk/anthropic")).anthropic(EDDY_MODEL ?? "claude-haiku-4-5")
  if (GOOGLE_GENERATIVE_AI_API_KEY) {
    return (await import("@ai-sdk/google")).google(EDDY_MODEL ?? "gemini-2.5-flash")
  }
  return script
}
