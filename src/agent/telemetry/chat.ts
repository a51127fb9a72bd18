/** One model call, as traces and metrics have it: `chat {model}`. */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Answer } from "../../model/Answer.js"
import type { LanguageModel, ModelRequest } from "../../model/ModelPort.js"
import { RunTimedOut } from "../../protocol/Errors.js"
import type { Usage } from "../../protocol/tokens.js"
import { type Content, messagesContent, promptContent } from "./contents.js"
import { errorType } from "./failures.js"
import { measure } from "./measures.js"
import { attributes, finishReason, providerName } from "./names.js"
import { type Attributes, done, type Ending, stopped, type Traced, tell, within } from "./spans.js"

/** Starts a fiber at once, on this stack. */
export type RunFork = (effect: Effect.Effect<void>) => unknown

/** What is asked. */
export interface Call {
  readonly model: LanguageModel
  readonly request: ModelRequest
  /** 0 for the first call of this model in this step. */
  readonly retry: number
}

/** Tokens, by the names of the conventions. */
export const usageAttributes = (usage: Usage): Attributes => ({
  [attributes.inputTokens]: usage.inputTokens,
  [attributes.outputTokens]: usage.outputTokens,
  [attributes.cachedInputTokens]: usage.cachedInputTokens,
  [attributes.reasoningTokens]: usage.reasoningTokens
})

/** Contents by these names, and whether anything of them was left out. */
export const contentAttributes = (contents: Readonly<Record<string, Content | undefined>>): Attributes => {
  const known = Object.entries(contents)
  return {
    ...Object.fromEntries(known.map(([name, content]) => [name, content?.text])),
    [attributes.isTruncated]: known.some(([, content]) => content?.isTruncated === true) ? true : undefined
  }
}

/** Of the settings those that the conventions know: headers are none of them. */
const requestAttributes = ({ model, request, retry }: Call): Attributes => {
  const { settings = {} } = request
  return {
    [attributes.operation]: "chat",
    [attributes.provider]: providerName(model.provider),
    [attributes.requestModel]: model.modelId,
    [attributes.requestStream]: true,
    [attributes.temperature]: settings.temperature,
    [attributes.maxTokens]: settings.maxOutputTokens,
    [attributes.topP]: settings.topP,
    [attributes.topK]: settings.topK,
    [attributes.presencePenalty]: settings.presencePenalty,
    [attributes.frequencyPenalty]: settings.frequencyPenalty,
    [attributes.stopSequences]: settings.stopSequences,
    [attributes.seed]: settings.seed,
    [attributes.retry]: retry === 0 ? undefined : retry
  }
}

const inputAttributes = ({ request }: Call, limit: number): Attributes => {
  const { input, instructions } = promptContent(request.messages, limit)
  return contentAttributes({
    [attributes.systemInstructions]: instructions,
    [attributes.inputMessages]: input
  })
}

const outputAttributes = (answer: Answer, limit: number): Attributes => {
  const message = answer.toMessage(false)
  if (message === undefined) return {}
  const reason = finishReason(answer.finished?.reason ?? "other")
  return contentAttributes({ [attributes.outputMessages]: messagesContent([message], limit, reason) })
}

/** Runs plain code with the span as the current one, so that what instruments requests finds it. */
const runWithin = <A>(run: () => A, { span }: Traced, runFork: RunFork): A => {
  let ran: { readonly value: A } | { readonly thrown: unknown } | undefined
  const running = Effect.sync(() => {
    try {
      ran = { value: run() }
    } catch (thrown) {
      ran = { thrown }
    }
  })
  runFork(within(running, span))
  // A fiber that was not begun at once has not run it.
  if (ran === undefined) return run()
  if ("thrown" in ran) throw ran.thrown
  return ran.value
}

const seconds = (from: bigint, to: bigint): number => Number(to - from) / 1e9

export class Chat {
  private readonly startedAt: bigint
  private firstAt: bigint | undefined
  private isOver = false

  constructor(
    private readonly call: Call,
    private readonly clock: Clock.Clock,
    /** `undefined`: nobody listens. */
    private readonly traced: Traced | undefined
  ) {
    this.startedAt = clock.unsafeCurrentTimeNanos()
  }

  /** The model, which is asked within the span. */
  model(runFork: RunFork): LanguageModel {
    const { call, traced } = this
    if (traced === undefined) return call.model
    const { modelId, provider } = call.model
    return {
      provider,
      modelId,
      answer: (request, signal) => {
        const begun = runWithin(() => call.model.answer(request, signal), traced, runFork)
        return Effect.isEffect(begun) ? within(begun, traced.span) : begun
      }
    }
  }

  /** The first chunk is there. */
  readonly heard = (): void => {
    if (!this.isOver) this.firstAt ??= this.clock.unsafeCurrentTimeNanos()
  }

  /** Everything of the answer is there. */
  ended(answer: Answer, failure: unknown): void {
    this.over(answer, failure === undefined ? done : { _tag: "Failed", error: failure })
  }

  /** It is not wanted any more. */
  halted(answer: Answer, reason: unknown): void {
    this.over(answer, reason instanceof RunTimedOut ? { _tag: "Failed", error: reason } : stopped)
  }

  private over(answer: Answer, ending: Ending): void {
    if (this.isOver) return
    this.isOver = true
    const { call, firstAt, startedAt, traced } = this
    const answeredBy = answer.response.modelId
    const toFirst = firstAt === undefined ? undefined : seconds(startedAt, firstAt)
    measure({
      model: call.model,
      answeredBy,
      errorType: ending._tag === "Failed" ? errorType(ending.error) : undefined,
      seconds: seconds(startedAt, this.clock.unsafeCurrentTimeNanos()),
      secondsToFirstChunk: toFirst,
      usage: answer.usage
    })
    if (traced === undefined) return
    const { span, spans } = traced
    tell(span, {
      [attributes.responseId]: answer.response.id,
      [attributes.responseModel]: answeredBy,
      [attributes.finishReasons]:
        answer.finished === undefined ? undefined : [finishReason(answer.finished.reason)],
      [attributes.timeToFirstChunk]: toFirst,
      ...usageAttributes(answer.usage),
      ...(spans.settings.captureContent ? outputAttributes(answer, spans.settings.contentLimit) : {})
    })
    spans.end(span, ending)
  }
}

/** Begins one; below the span of its run, when there is one. */
export const begin = (call: Call, clock: Clock.Clock, run: Traced | undefined): Chat => {
  if (run === undefined) return new Chat(call, clock, undefined)
  const { span: parent, spans } = run
  const { captureContent, contentLimit } = spans.settings
  const span = spans.begin({
    name: `chat ${call.model.modelId}`,
    kind: "client",
    parent,
    attributes: {
      ...requestAttributes(call),
      ...(captureContent ? inputAttributes(call, contentLimit) : {})
    }
  })
  return new Chat(call, clock, { spans, span })
}
