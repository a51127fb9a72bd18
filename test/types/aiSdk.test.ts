/** The structural types of an AI SDK model, held against the real ones of every specification. */
import { createAnthropic } from "@ai-sdk/anthropic"
import type { LanguageModelV4 } from "@ai-sdk/provider"
import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import type { Effect } from "effect"
import type { LanguageModelV2 } from "provider-v2"
import type { LanguageModelV3 } from "provider-v3"
import * as AiSdk from "../../src/model/AiSdk.js"
import type { LanguageModel, ModelAnswer } from "../../src/model/ModelPort.js"
import type { ModelError } from "../../src/protocol/Errors.js"

// Each is an assignment that compiles only while our structural type is wide enough for the real one.
const fromV2 = (model: LanguageModelV2): AiSdk.AiSdkModel => model
const fromV3 = (model: LanguageModelV3): AiSdk.AiSdkModel => model
const fromV4 = (model: LanguageModelV4): AiSdk.AiSdkModel => model

describe("AiSdkModel", () => {
  it("accepts the real models of specifications V2, V3 and V4", () => {
    expectTypeOf(fromV2).returns.toEqualTypeOf<AiSdk.AiSdkModel>()
    expectTypeOf(fromV3).returns.toEqualTypeOf<AiSdk.AiSdkModel>()
    expectTypeOf(fromV4).returns.toEqualTypeOf<AiSdk.AiSdkModel>()
    const model = createAnthropic({ apiKey: "none" })("claude-sonnet-4-5")
    expect(AiSdk.make(model).provider).toBe("anthropic.messages")
  })

  it("refuses other specifications", () => {
    interface V1 extends Omit<AiSdk.AiSdkModel, "specificationVersion"> {
      readonly specificationVersion: "v1"
    }
    expectTypeOf<V1>().not.toExtend<AiSdk.AiSdkModel>()
    expectTypeOf<string>().not.toExtend<AiSdk.AiSdkModel>()
  })

  it("becomes a model that fails with ModelError and needs nothing but a signal", () => {
    expectTypeOf(AiSdk.make).returns.toEqualTypeOf<LanguageModel>()
    expectTypeOf<LanguageModel["answer"]>().returns.toEqualTypeOf<
      Effect.Effect<ModelAnswer, ModelError> | Promise<ModelAnswer>
    >()
    expectTypeOf<LanguageModel["answer"]>().parameter(1).toEqualTypeOf<AbortSignal>()
  })
})
