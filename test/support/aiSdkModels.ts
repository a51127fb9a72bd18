/** The real provider packages against a local server, one per API and specification. */
import { createAnthropic } from "@ai-sdk/anthropic"
import { createGoogle } from "@ai-sdk/google"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { createOpenAICompatible as createOpenAICompatibleV2 } from "openai-compatible-v2"
import { createOpenAICompatible as createOpenAICompatibleV3 } from "openai-compatible-v3"
import * as AiSdk from "../../src/model/AiSdk.js"
import type { LanguageModel } from "../../src/model/ModelPort.js"

const apiKey = "no-key-at-all"

export const chatV2 = (url: string): LanguageModel =>
  AiSdk.make(createOpenAICompatibleV2({ name: "brook", baseURL: url, apiKey, includeUsage: true })("brook-1"))

export const chatV3 = (url: string): LanguageModel =>
  AiSdk.make(createOpenAICompatibleV3({ name: "brook", baseURL: url, apiKey, includeUsage: true })("brook-1"))

export const chatV4 = (url: string): LanguageModel =>
  AiSdk.make(createOpenAICompatible({ name: "brook", baseURL: url, apiKey, includeUsage: true })("brook-1"))

export const openaiChat = (url: string): LanguageModel =>
  AiSdk.make(createOpenAI({ baseURL: url, apiKey }).chat("gpt-4o"))

export const openaiResponses = (url: string): LanguageModel =>
  AiSdk.make(createOpenAI({ baseURL: url, apiKey }).responses("gpt-5"))

export const anthropic = (url: string): LanguageModel =>
  AiSdk.make(createAnthropic({ baseURL: url, apiKey })("claude-sonnet-4-5"))

/** Google sends no call ids; its package makes them up, here by counting. */
export const google = (url: string): LanguageModel => {
  let calls = 0
  return AiSdk.make(
    createGoogle({ baseURL: url, apiKey, generateId: () => `call_${++calls}` })("gemini-2.5-flash")
  )
}
