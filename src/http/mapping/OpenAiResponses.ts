/**
 * Chunks as responses of OpenAI: what `client.responses` of `openai` reads, as a stream of events or whole.
 *
 * @since 0.1.0
 */
import type { Chunk } from "../../protocol/Chunk.js"
import type { Usage } from "../../protocol/Usage.js"
import { Frames } from "./Frames.js"
import { type Mapper, type MapperOptions, maskedError } from "./Mapper.js"
import type { Failure } from "./OpenAiError.js"
import { type ClientCall, type Listener, OpenAiAnswer } from "./openAiAnswer.js"

/** @since 0.1.0 @category models */
export interface Options extends MapperOptions {
  /** The agent, as the request has named it. */
  readonly model: string
  /** When the response began, in seconds since 1970. The same when it is read again. */
  readonly created: number
  /** Tools that the client executes, as the request has given them. Default: none. */
  readonly clientTools?: ReadonlyArray<string>
}

type Status = "in_progress" | "completed" | "incomplete"

interface TextPart {
  readonly type: "output_text"
  readonly text: string
  readonly annotations: readonly []
  readonly logprobs: readonly []
}

/** @since 0.1.0 @category models */
type OutputItem =
  | {
      readonly type: "message"
      readonly id: string
      readonly status: Status
      readonly role: "assistant"
      readonly content: ReadonlyArray<TextPart>
    }
  | {
      readonly type: "function_call"
      readonly id: string
      readonly call_id: string
      readonly name: string
      readonly arguments: string
      readonly status: Status
    }

/** @since 0.1.0 @category models */
export interface Response {
  readonly id: string
  readonly object: "response"
  readonly created_at: number
  readonly model: string
  readonly status: "in_progress" | "completed" | "incomplete" | "failed"
  readonly output: ReadonlyArray<OutputItem>
  readonly error: { readonly code: string; readonly message: string } | null
  readonly incomplete_details: { readonly reason: "max_output_tokens" | "content_filter" } | null
  readonly instructions: null
  readonly metadata: null
  readonly parallel_tool_calls: boolean
  readonly temperature: null
  readonly tool_choice: "auto"
  readonly tools: readonly []
  readonly top_p: null
  readonly usage?: {
    readonly input_tokens: number
    readonly input_tokens_details: { readonly cached_tokens?: number }
    readonly output_tokens: number
    readonly output_tokens_details: { readonly reasoning_tokens?: number }
    readonly total_tokens: number
  }
}

interface Numbered {
  readonly sequence_number: number
}

interface InItem {
  readonly item_id: string
  readonly output_index: number
}

interface InPart extends InItem {
  readonly content_index: 0
}

type Event =
  | {
      readonly type:
        | "response.created"
        | "response.in_progress"
        | "response.completed"
        | "response.incomplete"
        | "response.failed"
      readonly response: Response
    }
  | {
      readonly type: "response.output_item.added" | "response.output_item.done"
      readonly output_index: number
      readonly item: OutputItem
    }
  | ({
      readonly type: "response.content_part.added" | "response.content_part.done"
      readonly part: TextPart
    } & InPart)
  | ({
      readonly type: "response.output_text.delta"
      readonly delta: string
      readonly logprobs: readonly []
    } & InPart)
  | ({
      readonly type: "response.output_text.done"
      readonly text: string
      readonly logprobs: readonly []
    } & InPart)
  | ({ readonly type: "response.function_call_arguments.delta"; readonly delta: string } & InItem)
  | ({
      readonly type: "response.function_call_arguments.done"
      readonly name: string
      readonly arguments: string
    } & InItem)

/** One frame of a stream: its `type` is the name of the server-sent event, too. @since 0.1.0 @category models */
export type ResponseEvent = Event & Numbered

/** Counts that nobody knows are no zeros: without both of them there are none. */
const usageOf = ({ cachedInputTokens, inputTokens, outputTokens, reasoningTokens, totalTokens }: Usage) =>
  inputTokens === undefined || outputTokens === undefined
    ? {}
    : {
        usage: {
          input_tokens: inputTokens,
          input_tokens_details: cachedInputTokens === undefined ? {} : { cached_tokens: cachedInputTokens },
          output_tokens: outputTokens,
          output_tokens_details: reasoningTokens === undefined ? {} : { reasoning_tokens: reasoningTokens },
          total_tokens: totalTokens ?? inputTokens + outputTokens
        }
      }

const textPart = (text: string): TextPart => ({ type: "output_text", text, annotations: [], logprobs: [] })

interface OpenMessage {
  readonly at: InPart
  text: string
}

class OpenAiResponses extends Frames<ResponseEvent> implements Listener {
  private runId = ""
  private sequence = 0
  private readonly output: Array<OutputItem> = []
  /** Items in the order in which they were begun. */
  private items = 0
  private message: OpenMessage | undefined
  private readonly calls = new Map<ClientCall, InItem>()
  private readonly answer: OpenAiAnswer

  constructor(private readonly options: Options) {
    super()
    const { clientTools = [], errorText = maskedError } = options
    this.answer = new OpenAiAnswer(this, errorText, new Set(clientTools))
  }

  protected take(chunk: Chunk): void {
    this.answer.take(chunk)
  }

  protected conclude(failure: unknown): void {
    this.answer.end(failure)
    this.closeMessage()
    this.tell({ type: `response.${this.status}`, response: this.response(this.status) })
  }

  get failure(): Failure | undefined {
    return this.answer.failure
  }

  private get status(): "completed" | "incomplete" | "failed" {
    if (this.answer.failure !== undefined) return "failed"
    return this.answer.ending === "length" || this.answer.ending === "content_filter"
      ? "incomplete"
      : "completed"
  }

  private tell(event: Event): void {
    this.send({ ...event, sequence_number: this.sequence++ })
  }

  response(status: Response["status"]): Response {
    const { created, model } = this.options
    const { ending, failure, usage } = this.answer
    const reason = ending === "content_filter" ? "content_filter" : "max_output_tokens"
    return {
      id: `resp_${this.runId}`,
      object: "response",
      created_at: created,
      model,
      status,
      output: this.output.filter(item => item !== undefined),
      error:
        status === "failed" && failure !== undefined
          ? { code: failure.error.code ?? "server_error", message: failure.error.message }
          : null,
      incomplete_details: status === "incomplete" ? { reason } : null,
      instructions: null,
      metadata: null,
      parallel_tool_calls: true,
      temperature: null,
      tool_choice: "auto",
      tools: [],
      top_p: null,
      ...(status === "in_progress" ? {} : usageOf(usage))
    }
  }

  begun(runId: string): void {
    this.runId = runId
    this.tell({ type: "response.created", response: this.response("in_progress") })
    this.tell({ type: "response.in_progress", response: this.response("in_progress") })
  }

  text(delta: string): void {
    const message = this.message ?? this.openMessage()
    message.text += delta
    this.tell({ type: "response.output_text.delta", ...message.at, delta, logprobs: [] })
  }

  private openMessage(): OpenMessage {
    const output_index = this.items++
    const id = `msg_${this.runId}_${output_index}`
    const message: OpenMessage = { at: { item_id: id, output_index, content_index: 0 }, text: "" }
    this.message = message
    const item = { type: "message", id, status: "in_progress", role: "assistant", content: [] } as const
    this.tell({ type: "response.output_item.added", output_index, item })
    this.tell({ type: "response.content_part.added", ...message.at, part: textPart("") })
    return message
  }

  private closeMessage(): void {
    if (this.message === undefined) return
    const { at, text } = this.message
    this.message = undefined
    const { item_id: id, output_index } = at
    const part = textPart(text)
    this.tell({ type: "response.output_text.done", ...at, text, logprobs: [] })
    this.tell({ type: "response.content_part.done", ...at, part })
    const item: OutputItem = { type: "message", id, status: "completed", role: "assistant", content: [part] }
    this.output[output_index] = item
    this.tell({ type: "response.output_item.done", output_index, item })
  }

  private itemOf({ id, name }: ClientCall, { item_id }: InItem, status: Status, text: string): OutputItem {
    return { type: "function_call", id: item_id, call_id: id, name, arguments: text, status }
  }

  callBegun(call: ClientCall): void {
    this.closeMessage()
    const output_index = this.items++
    const at: InItem = { item_id: `fc_${this.runId}_${output_index}`, output_index }
    this.calls.set(call, at)
    const item = this.itemOf(call, at, "in_progress", "")
    this.tell({ type: "response.output_item.added", output_index, item })
  }

  callDelta(call: ClientCall, delta: string): void {
    const at = this.calls.get(call)
    if (at !== undefined) this.tell({ type: "response.function_call_arguments.delta", ...at, delta })
  }

  callEnded(call: ClientCall): void {
    const at = this.calls.get(call)
    if (at === undefined) return
    const { output_index } = at
    const item = this.itemOf(call, at, "completed", call.arguments)
    this.output[output_index] = item
    const { arguments: text, name } = call
    this.tell({ type: "response.function_call_arguments.done", ...at, name, arguments: text })
    this.tell({ type: "response.output_item.done", output_index, item })
  }
}

/** The mapping of one streamed response. @since 0.1.0 @category constructors */
export const make = (options: Options): Mapper<ResponseEvent> => new OpenAiResponses(options)

/** A response as a whole, or why there is none. @since 0.1.0 @category constructors */
export const collect = (
  options: Options
): {
  readonly push: (chunk: Chunk) => void
  readonly end: (failure?: unknown) => Response | Failure
} => {
  const responses = new OpenAiResponses(options)
  return {
    push: chunk => {
      responses.push(chunk)
    },
    end: failure => {
      const last = responses.end(failure).at(-1)
      return (
        responses.failure ??
        (last !== undefined && "response" in last ? last.response : responses.response("completed"))
      )
    }
  }
}
