/** The real provider packages against a local server, one per API and specification. */
import { createAnthropic } from "@ai-sdk/anthropic"
import { createGoogle } from "@ai-sdk/google"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { createOpenAICompatible as createOpenAICompatibleV2 } from "openai-compatible-v2"
import { createOpenAICompatible as createOpenAICompatibleV3 } from "openai-compatible-v3"
import * as AiSdk from "../../src/model/AiSdk.js"
import type { LanguageModel } from "../../src/model/ModelPort.js"

/** What every package sends as its key. It must never be seen in a chunk. */
export const apiKey = "no-key-at-all"

/** A model as its package makes it, talking to this address. */
export type MakeSdkModel = (url: string) => AiSdk.AiSdkModel

const brook = (url: string) => ({ name: "brook", baseURL: url, apiKey, includeUsage: true })

const sdkChatV2: MakeSdkModel = url => createOpenAICompatibleV2(brook(url))("brook-1")

const sdkChatV3: MakeSdkModel = url => createOpenAICompatibleV3(brook(url))("brook-1")

const sdkChatV4: MakeSdkModel = url => createOpenAICompatible(brook(url))("brook-1")

const sdkOpenaiChat: MakeSdkModel = url => createOpenAI({ baseURL: url, apiKey }).chat("gpt-4o")

const sdkOpenaiResponses: MakeSdkModel = url => createOpenAI({ baseURL: url, apiKey }).responses("gpt-5")

const sdkAnthropic: MakeSdkModel = url => createAnthropic({ baseURL: url, apiKey })("claude-sonnet-4-5")

/** Google sends no call ids; its package makes them up, here by counting. */
const sdkGoogle: MakeSdkModel = url => {
  let calls = 0
  return createGoogle({ baseURL: url, apiKey, generateId: () => `call_${++calls}` })("gemini-2.5-flash")
}

/** The models of the packages, before they stand behind the port. */
export const sdk = {
  chatV2: sdkChatV2,
  chatV3: sdkChatV3,
  chatV4: sdkChatV4,
  openaiChat: sdkOpenaiChat,
  openaiResponses: sdkOpenaiResponses,
  anthropic: sdkAnthropic,
  google: sdkGoogle
}

const behindThePort =
  (makeModel: MakeSdkModel) =>
  (url: string): LanguageModel =>
    AiSdk.make(makeModel(url))

export const chatV2 = behindThePort(sdkChatV2)

export const chatV3 = behindThePort(sdkChatV3)

export const chatV4 = behindThePort(sdkChatV4)

export const openaiChat = behindThePort(sdkOpenaiChat)

export const openaiResponses = behindThePort(sdkOpenaiResponses)

export const anthropic = behindThePort(sdkAnthropic)

export const google = behindThePort(sdkGoogle)
