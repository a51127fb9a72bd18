/**
 * Chunks as chat completions of OpenAI: what `client.chat.completions` of `openai` reads, as a stream or whole.
 *
 * @since 0.1.0
 */
import type { Chunk } from "../../protocol/Chunk.js"
import type { Usage } from "../../protocol/Usage.js"
import { Frames } from "./Frames.js"
import { type Mapper, type MapperOptions, maskedError } from "./Mapper.js"
import type { ErrorBody, Failure } from "./OpenAiError.js"
import { type ClientCall, type Ending, type Listener, OpenAiAnswer } from "./openAiAnswer.js"

/** @since 0.1.0 @category models */
export interface Options extends MapperOptions {
  /** The agent, as the request has named it. */
  readonly model: string
  /** When the response began, in seconds since 1970. The same when it is read again. */
  readonly created: number
  /** Names of the tools that the client executes. Default: none. */
  readonly clientTools?: ReadonlyArray<string>
  /** Whether a stream tells at its end what was used. Default false. */
  readonly includeUsage?: boolean
}

interface CallDelta {
  readonly index: number
  readonly id?: string
  readonly type?: "function"
  readonly function: { readonly name?: string; readonly arguments: string }
}

interface Delta {
  readonly role?: "assistant"
  readonly content?: string
  readonly tool_calls?: ReadonlyArray<CallDelta>
}

/** @since 0.1.0 @category models */
interface ChatUsage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens: number
  readonly prompt_tokens_details?: { readonly cached_tokens: number }
  readonly completion_tokens_details?: { readonly reasoning_tokens: number }
}

/** One frame of a stream; a stream ends with the line `[DONE]`, which is none of them. @since 0.1.0 @category models */
export type ChatChunk =
  | {
      readonly id: string
      readonly object: "chat.completion.chunk"
      readonly created: number
      readonly model: string
      readonly choices: ReadonlyArray<{
        readonly index: 0
        readonly delta: Delta
        readonly finish_reason: Ending | null
      }>
      readonly usage?: ChatUsage
    }
  | ErrorBody

/** An answer as a whole. @since 0.1.0 @category models */
export interface ChatCompletion {
  readonly id: string
  readonly object: "chat.completion"
  readonly created: number
  readonly model: string
  readonly choices: readonly [
    {
      readonly index: 0
      readonly message: {
        readonly role: "assistant"
        readonly content: string | null
        readonly refusal: null
        readonly tool_calls?: ReadonlyArray<{
          readonly id: string
          readonly type: "function"
          readonly function: { readonly name: string; readonly arguments: string }
        }>
      }
      readonly finish_reason: Ending
      readonly logprobs: null
    }
  ]
  readonly usage?: ChatUsage
}

/** Counts that nobody knows are no zeros: without both of them there are none. */
const usageOf = ({ cachedInputTokens, inputTokens, outputTokens, reasoningTokens, totalTokens }: Usage) =>
  inputTokens === undefined || outputTokens === undefined
    ? undefined
    : {
        prompt_tokens: inputTokens,
        completion_tokens: outputTokens,
        total_tokens: totalTokens ?? inputTokens + outputTokens,
        ...(cachedInputTokens === undefined
          ? {}
          : { prompt_tokens_details: { cached_tokens: cachedInputTokens } }),
        ...(reasoningTokens === undefined
          ? {}
          : { completion_tokens_details: { reasoning_tokens: reasoningTokens } })
      }

class OpenAiChat extends Frames<ChatChunk> implements Listener {
  private id = ""
  private readonly answer: OpenAiAnswer
  private said = ""

  constructor(private readonly options: Options) {
    super()
    const { clientTools = [], errorText = maskedError } = options
    this.answer = new OpenAiAnswer(this, errorText, new Set(clientTools))
  }

  protected take(chunk: Chunk): void {
    this.answer.take(chunk)
  }

  protected conclude(failure: unknown) {
    this.answer.end(failure)
    const failed = this.answer.failure
    if (failed !== undefined) return this.send({ error: failed.error })
    this.choice({}, this.answer.ending)
    const usage = usageOf(this.answer.usage)
    if (this.options.includeUsage === true && usage !== undefined) {
      this.send({ ...this.envelope, choices: [], usage })
    }
  }

  private get envelope() {
    const { created, model } = this.options
    return { id: this.id, object: "chat.completion.chunk" as const, created, model }
  }

  private choice(delta: Delta, finish_reason: Ending | null = null): void {
    this.send({ ...this.envelope, choices: [{ index: 0, delta, finish_reason }] })
  }

  begun(runId: string): void {
    this.id = `chatcmpl-${runId}`
    this.choice({ role: "assistant", content: "" })
  }

  text(content: string): void {
    this.said += content
    this.choice({ content })
  }

  callBegun({ id, index, name }: ClientCall): void {
    this.choice({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] })
  }

  callDelta({ index }: ClientCall, delta: string): void {
    this.choice({ tool_calls: [{ index, function: { arguments: delta } }] })
  }

  callEnded(): void {}

  whole(): ChatCompletion | Failure {
    const { clientCalls, ending, failure } = this.answer
    if (failure !== undefined) return failure
    const usage = usageOf(this.answer.usage)
    const { created, id, model } = this.envelope
    const calls = clientCalls.map(call => ({
      id: call.id,
      type: "function" as const,
      function: { name: call.name, arguments: call.arguments }
    }))
    const message = {
      role: "assistant" as const,
      content: this.said === "" && calls.length > 0 ? null : this.said,
      refusal: null,
      ...(calls.length === 0 ? {} : { tool_calls: calls })
    }
    return {
      id,
      object: "chat.completion",
      created,
      model,
      choices: [{ index: 0, message, finish_reason: ending, logprobs: null }],
      ...(usage === undefined ? {} : { usage })
    }
  }
}

/** The mapping of one streamed response. @since 0.1.0 @category constructors */
export const make = (options: Options): Mapper<ChatChunk> => new OpenAiChat(options)

/** A response as a whole: the answer, or why there is none. @since 0.1.0 @category constructors */
export const collect = (
  options: Options
): {
  readonly push: (chunk: Chunk) => void
  readonly end: (failure?: unknown) => ChatCompletion | Failure
} => {
  const chat = new OpenAiChat(options)
  return {
    push: chunk => {
      chat.push(chunk)
    },
    end: failure => {
      chat.end(failure)
      return chat.whole()
    }
  }
}
