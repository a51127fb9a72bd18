/** Stops what a predicate says is to be stopped. */
import type * as Effect from "effect/Effect"
import type { Chunk } from "../../protocol/Chunk.js"
import { InvalidConfiguration } from "../../protocol/Errors.js"
import type { Message } from "../../protocol/Message.js"
import { refuseUnknown } from "../../protocol/options.js"
import { make, type Processor, type ProcessorContext } from "./definition.js"

/** Whether it is to be stopped; a text is the reason. @since 0.1.0 @category models */
export type Verdict = boolean | string

/** What is stopped, and how. At least one predicate must be given. @since 0.1.0 @category models */
export interface BlockOptions {
  /** Default `block-when`. */
  readonly id?: string
  /**
   * Of a text: among `inputProcessors` all text of each new message, among `outputProcessors` the whole text of each answer,
   * when it is complete.
   */
  readonly text?: (text: string) => Verdict
  /** Of a new message; for `inputProcessors`. */
  readonly message?: (message: Message) => Verdict
  /** Of a chunk of an answer, before anybody is told of it; for `outputProcessors`. */
  readonly chunk?: (chunk: Chunk) => Verdict
  /** What is said of it when a predicate gives no text. Default: that it is not allowed. */
  readonly reason?: string
  /** Whether an answer is tried again, with the reason as feedback. Default false. */
  readonly retry?: boolean
  /** Goes into the `tripwire` chunk. */
  readonly metadata?: unknown
}

const optionNames = [
  "id",
  "text",
  "message",
  "chunk",
  "reason",
  "retry",
  "metadata"
] as const satisfies ReadonlyArray<keyof BlockOptions>

/** All text of a message. */
const textOf = ({ content }: Message): string =>
  typeof content === "string"
    ? content
    : content.map(part => (part.type === "text" ? part.text : "")).join("")

/**
 * Stops the run when a predicate says so. Throws `InvalidConfiguration` when it has none.
 *
 * @since 0.1.0
 * @category processors
 */
export const blockWhen = (options: BlockOptions): Processor => {
  const { chunk, id = "block-when", message, metadata, reason, retry, text } = options
  refuseUnknown("`blockWhen`", options, optionNames)
  if (text === undefined && message === undefined && chunk === undefined) {
    throw new InvalidConfiguration({
      field: "blockWhen",
      message: "`blockWhen` has no predicate. Give it `text`, `message` or `chunk`."
    })
  }
  /** Stops; or `undefined`, when there is nothing to stop. */
  const block = (verdict: Verdict, context: ProcessorContext): Effect.Effect<never> | undefined =>
    verdict === false || verdict === ""
      ? undefined
      : context.abort(typeof verdict === "string" ? verdict : (reason ?? "This is not allowed."), {
          ...(retry === undefined ? {} : { retry }),
          ...(metadata === undefined ? {} : { metadata })
        })
  const found = (said: Message): Verdict => text?.(textOf(said)) || message?.(said) || false
  return make({
    id,
    ...(text === undefined && message === undefined
      ? {}
      : {
          processInput: (messages, context) => {
            for (const said of messages) {
              const blocked = block(found(said), context)
              if (blocked !== undefined) return blocked
            }
            return undefined
          }
        }),
    ...(text === undefined
      ? {}
      : { processOutputStep: (answer, context) => block(text(answer.text), context) }),
    ...(chunk === undefined
      ? {}
      : { processOutputStream: (said, context) => block(chunk(said), context) ?? said })
  })
}
