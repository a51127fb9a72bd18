/**
 * Language models of `@effect/ai` behind the model port: an application that has a model layer, for example of
 * `@effect/ai-openai`, gives it to an agent.
 *
 *     const agent = Effect.map(EffectAi.make(), model => Agent.make({ id: "helper", model }))
 *
 * The agent executes the tools, so `@effect/ai` is only told of them: it neither executes a call nor checks its arguments.
 *
 * Sampling, limits and headers are settings of the provider's layer, or of its `withConfigOverride` around a run: a
 * request of `@effect/ai` has no place for them. The model warns of those that it is given per request. `OpenAiLanguageModel`
 * asks for strict tool schemas unless its layer is made with `config: { strict: false }`.
 *
 * @since 0.1.0
 */
import type * as AiError from "@effect/ai/AiError"
import * as AiLanguageModel from "@effect/ai/LanguageModel"
import * as AiModel from "@effect/ai/Model"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as Cause from "effect/Cause"
import * as Batch from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Warning } from "../../protocol/Chunk.js"
import type { ModelError } from "../../protocol/Errors.js"
import { squash } from "../../protocol/foreignValue.js"
import type { Message } from "../../protocol/Message.js"
import type * as Part from "../ModelPart.js"
import type { LanguageModel, ModelAnswer, ModelRequest, ResponseFormat } from "../ModelPort.js"
import { schemaPrompt } from "../schemaPrompt.js"
import { type Place, toModelError } from "./effectAiFailure.js"
import { type StreamPart, toModelPart } from "./effectAiParts.js"
import { makePrompt } from "./effectAiPrompt.js"
import { Drafts, rescue } from "./effectAiRescue.js"
import { begin } from "./effectAiSource.js"
import * as Tools from "./effectAiTools.js"

/**
 * A tool that the provider executes itself, as provider modules make them: `OpenAiTool.WebSearch({})`.
 *
 * @since 0.1.0
 * @category models
 */
export type ProviderTool = Tools.ProviderTool

/** @since 0.1.0 @category models */
export interface Options {
  /** Default: the name that the layer gives, when it is made by `Model.make` of `@effect/ai`; otherwise `effect-ai`. */
  readonly provider?: string
  /** Default `unknown`: `@effect/ai` does not tell before the model answers. */
  readonly modelId?: string
  /** Offered with every request, beside the tools of the agent. */
  readonly providerTools?: ReadonlyArray<ProviderTool>
}

const perLayer = "An @effect/ai model takes this from the configuration of its layer, not with a request."

/** What a request of `@effect/ai` has no place for. */
const warningsOf = ({ includeRawChunks, providerOptions, settings = {} }: ModelRequest) => {
  const asked = Object.entries({ ...settings, providerOptions }).filter(([, value]) => value !== undefined)
  const warnings = asked.map(([feature]): Warning => ({ type: "unsupported", feature, details: perLayer }))
  const raw = { type: "unsupported", feature: "includeRawChunks", details: "@effect/ai has no raw parts." }
  return includeRawChunks ? [...warnings, raw] : warnings
}

const formats = new WeakMap<ResponseFormat, Message>()

/** The messages, with what the answer is to be: a request of `@effect/ai` has no other place for that. */
const withFormat = ({ messages, responseFormat }: ModelRequest): ReadonlyArray<Message> => {
  if (responseFormat === undefined) return messages
  const told = formats.get(responseFormat) ?? { role: "system", content: schemaPrompt(responseFormat.schema) }
  formats.set(responseFormat, told)
  const first = messages.findIndex(({ role }) => role !== "system")
  const at = first < 0 ? messages.length : first
  return [...messages.slice(0, at), told, ...messages.slice(at)]
}

/** Before the first part, once there is one: the request has been answered then. */
const prepend = (warnings: ReadonlyArray<Warning>) => {
  let first: ReadonlyArray<Part.ModelPart> = warnings.length === 0 ? [] : [{ type: "stream-start", warnings }]
  return (batch: Batch.Chunk<Part.ModelPart>): Batch.Chunk<Part.ModelPart> => {
    if (first.length === 0 || Batch.isEmpty(batch)) return batch
    const begun = Batch.appendAll(Batch.unsafeFromArray(first), batch)
    first = []
    return begun
  }
}

/** What an answer says, in parts of the port. */
const toParts = (
  said: Stream.Stream<StreamPart, AiError.AiError>,
  toolkit: Toolkit.WithHandler<Tools.Tools>,
  names: Pick<LanguageModel, "provider" | "modelId">
): Stream.Stream<Part.ModelPart, ModelError> => {
  const drafts = new Drafts()
  let reason: Place["reason"] = "request"
  const modelError = (cause: unknown) => toModelError(cause, { ...names, reason })
  const convert = (part: StreamPart): Part.ModelPart => {
    reason = "stream"
    drafts.note(part)
    return part.type === "error" ? { type: "error", error: modelError(part.error) } : toModelPart(part)
  }
  const end = Effect.fnUntraced(function* (cause: Cause.Cause<AiError.AiError>) {
    const error = Cause.failureOption(cause)
    const saved = Option.isSome(error) ? yield* rescue(error.value, drafts, toolkit) : Option.none()
    return Option.match(saved, {
      onNone: () => Stream.fail(modelError(squash(cause))),
      onSome: parts => Stream.fromIterable(parts)
    })
  })
  return said.pipe(
    Stream.map(convert),
    Stream.catchAllCause(cause => Stream.unwrap(end(cause)))
  )
}

/** The source holds nothing but parts of the port. */
const identity = (part: unknown): Part.ModelPart => part as Part.ModelPart

/**
 * An `@effect/ai` language model service as a {@link LanguageModel}. See {@link make}, which takes the service from the
 * context.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromService = (service: AiLanguageModel.Service, options: Options = {}): LanguageModel => {
  const { modelId = "unknown", provider = "effect-ai", providerTools = [] } = options
  const promptOf = makePrompt()
  const ask = (request: ModelRequest) =>
    Stream.suspend(() => {
      const toolkit = Tools.makeToolkit(request.tools, providerTools)
      const said = Stream.suspend(() =>
        service.streamText({
          prompt: promptOf(withFormat(request)),
          toolkit,
          toolChoice: request.toolChoice === undefined ? undefined : Tools.toolChoice(request.toolChoice),
          disableToolCallResolution: true
        })
      )
      const parts = toParts(said, toolkit, { provider, modelId })
      return Stream.mapChunks(parts, prepend(warningsOf(request)))
    })
  const answer = (request: ModelRequest, signal: AbortSignal): Effect.Effect<ModelAnswer, ModelError> =>
    Effect.map(begin(ask(request), signal), source => ({ source, normalize: identity }))
  return { provider, modelId, answer }
}

/**
 * The `@effect/ai` language model of the context as a {@link LanguageModel}, for `Agent.make`.
 *
 * An answer runs with the context of its run: what a provider reads there, such as the configuration of
 * `OpenAiLanguageModel.withConfigOverride`, is read per run. It is interrupted at once when the run is stopped.
 *
 * It fails with a `ModelError`: of reason `request` when the provider fails before the first part, otherwise of reason
 * `stream`. `statusCode`, `isRetryable` and `retryAfter` are there for HTTP failures. Messages quote neither addresses nor
 * headers nor bodies; the `AiError` is the `cause`.
 *
 * Where `@effect/ai` gives an answer up at a call, because its tool is not offered or its arguments are no JSON, the answer
 * ends with that call instead, without usage: the agent tells the model what is wrong with it, and goes on.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  options: Options = {}
): Effect.Effect<LanguageModel, never, AiLanguageModel.LanguageModel> =>
  Effect.gen(function* () {
    const service = yield* AiLanguageModel.LanguageModel
    const provider = yield* Effect.serviceOption(AiModel.ProviderName)
    const named = Option.isSome(provider) ? { provider: provider.value } : {}
    return fromService(service, { ...named, ...options })
  })
