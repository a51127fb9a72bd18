/**
 * What is handed to an agent, read into {@link Message}s: texts, messages of the AI SDK's models, messages of its user
 * interfaces, in any mixture. The outcome is a prompt that every provider accepts.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { settle } from "./conversationPairs.js"
import { toUiParts } from "./conversationUiParts.js"
import { InvalidMessage } from "./Errors.js"
import type { Message, UIMessage } from "./Message.js"
import { isRecord, wellFormed } from "./safeJson.js"

/** Provider name, then key. Values are made safe for JSON. @since 0.1.0 @category models */
export type OptionsInput = { readonly [provider: string]: { readonly [key: string]: unknown } }

interface WithOptions {
  /** For the provider: what it said with this part before, or a setting of this part (a cache mark). */
  readonly providerOptions?: OptionsInput | undefined
}

interface WithId {
  /** Names the message in a thread: one with an id that the thread has takes that one's place. */
  readonly id?: string | undefined
}

/** Text, of whoever says it. @since 0.1.0 @category models */
export interface TextInput extends WithOptions {
  readonly type: "text"
  readonly text: string
}

/** What a model thought before it answered. @since 0.1.0 @category models */
export interface ReasoningInput extends WithOptions {
  readonly type: "reasoning"
  readonly text: string
}

/**
 * A file: base64 text, a `data:` or `http:` URL as a string or a `URL`, or bytes. The tagged forms are those of the AI
 * SDK's version 7. A provider's reference to an uploaded file type checks but is refused: give its URL.
 *
 * @since 0.1.0
 * @category models
 */
export type FileDataInput =
  | string
  | URL
  | Uint8Array
  | ArrayBuffer
  | { readonly type: "data"; readonly data: string | Uint8Array | ArrayBuffer }
  | { readonly type: "url"; readonly url: string | URL }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "reference"; readonly reference: object }
  | { readonly [provider: string]: string }

/** A file, with what it is. @since 0.1.0 @category models */
export interface FileInput extends WithOptions {
  readonly type: "file"
  readonly data: FileDataInput
  /** May be absent only where `mimeType` or a data URL tells it. */
  readonly mediaType?: string | undefined
  /** The older word for `mediaType`. */
  readonly mimeType?: string | undefined
  readonly filename?: string | undefined
}

/** An image; becomes a file. `mediaType` defaults to `image/*`. @since 0.1.0 @category models */
export interface ImageInput extends WithOptions {
  readonly type: "image"
  readonly image: FileDataInput
  readonly mediaType?: string | undefined
  /** The older word for `mediaType`. */
  readonly mimeType?: string | undefined
}

/** A call that the model made. Without an outcome in the same input it is left out. @since 0.1.0 @category models */
export interface ToolCallInput extends WithOptions {
  readonly type: "tool-call"
  readonly toolCallId: string
  readonly toolName: string
  /** The parsed arguments; `{}` when absent. */
  readonly input?: unknown
  /** The older word for `input`. */
  readonly args?: unknown
  readonly providerExecuted?: boolean | undefined
}

/**
 * The outcome of a call: `output` as the AI SDK tags it (`{ type: "json", value }`, `text`, `error-text`, `error-json`,
 * `content`, `execution-denied`), or the older bare `result` with `isError`. One of both must be there. Without its call
 * in the same input it is left out.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolResultInput extends WithOptions {
  readonly type: "tool-result"
  readonly toolCallId: string
  /** Read only as long as its call is not known: that says which tool it is. */
  readonly toolName?: string | undefined
  readonly output?:
    | { readonly type: string; readonly value?: unknown; readonly reason?: string | undefined }
    | undefined
  readonly result?: unknown
  readonly isError?: boolean | undefined
}

/** Parts of model messages that type check and are left out. @since 0.1.0 @category models */
export interface SkippedInput {
  readonly type:
    | "tool-approval-request"
    | "tool-approval-response"
    | "reasoning-file"
    | "redacted-reasoning"
    | "custom"
}

/**
 * A model message: the AI SDK's `ModelMessage` (`CoreMessage` of its version 4), a message of a provider's prompt
 * (specifications V2 to V4), or a {@link Message} of this library.
 *
 * @since 0.1.0
 * @category models
 */
export type ModelMessageInput =
  | ({ readonly role: "system" | "user" | "assistant"; readonly content: string } & WithOptions & WithId)
  | ({
      readonly role: "user"
      readonly content: string | ReadonlyArray<TextInput | ImageInput | FileInput>
    } & WithOptions &
      WithId)
  | ({
      readonly role: "assistant"
      readonly content:
        | string
        | ReadonlyArray<
            TextInput | ReasoningInput | FileInput | ToolCallInput | ToolResultInput | SkippedInput
          >
    } & WithOptions &
      WithId)
  | ({
      readonly role: "tool"
      readonly content: ReadonlyArray<ToolResultInput | SkippedInput>
    } & WithOptions &
      WithId)

interface WithMetadata {
  readonly providerMetadata?: OptionsInput | undefined
}

interface UIToolInput extends WithMetadata {
  readonly toolCallId: string
  /** A call counts when its outcome is known: `output-available` (not preliminary), `output-error`, `output-denied`. */
  readonly state: string
  readonly input?: unknown
  readonly output?: unknown
  readonly errorText?: string | undefined
  readonly preliminary?: boolean | undefined
  readonly approval?: { readonly reason?: string | undefined } | undefined
  readonly providerExecuted?: boolean | undefined
  readonly callProviderMetadata?: OptionsInput | undefined
  readonly resultProviderMetadata?: OptionsInput | undefined
}

/** Parts that version 4 of the AI SDK has in other words; `source` is for the eye. @since 0.1.0 @category models */
export type OlderUIPart =
  | {
      readonly type: "tool-invocation"
      readonly toolInvocation: {
        readonly state: string
        readonly toolCallId: string
        readonly toolName: string
        readonly args?: unknown
        readonly result?: unknown
      }
    }
  | { readonly type: "reasoning"; readonly reasoning: string; readonly details: ReadonlyArray<unknown> }
  | { readonly type: "file"; readonly mimeType: string; readonly data: string }
  | { readonly type: "source" }

/** A part of a {@link UIMessageInput}. `source-*` and `data-*` are for the eye and left out. @since 0.1.0 @category models */
export type UIPartInput =
  | ({ readonly type: "text" | "reasoning"; readonly text: string } & WithMetadata)
  | ({
      readonly type: "file"
      /** A `data:` or `http:` URL. */
      readonly url: string
      readonly mediaType?: string | undefined
      readonly filename?: string | undefined
    } & WithMetadata)
  | (UIToolInput & { readonly type: `tool-${string}` })
  | (UIToolInput & { readonly type: "dynamic-tool"; readonly toolName: string })
  | OlderUIPart
  | { readonly type: "step-start" | "reasoning-file" | "custom" | `source-${string}` | `data-${string}` }

/** A `UIMessage` of the AI SDK (version 5 on), as `useChat` sends it. @since 0.1.0 @category models */
export interface UIMessageInput {
  readonly id?: string | undefined
  readonly role: "system" | "user" | "assistant"
  readonly parts: ReadonlyArray<UIPartInput>
}

/** One message, in any of the kinds that are read. @since 0.1.0 @category models */
export type MessageInput = ModelMessageInput | UIMessageInput | Message | UIMessage

/**
 * What may be handed to an agent. A string is a message of the user; in an array each element is a message, and kinds may
 * be mixed.
 *
 * @since 0.1.0
 * @category models
 */
export type Input = string | MessageInput | ReadonlyArray<string | MessageInput>

/**
 * A message as it was handed over. `id` is the one that the other side gave it; of a UI message that becomes several
 * messages the second has the id with `:2`, and so on.
 *
 * @since 0.1.0
 * @category models
 */
export interface Entry {
  readonly id: string | undefined
  readonly message: Message
}

const fromText = (text: string): ReadonlyArray<Entry> =>
  text === ""
    ? []
    : [{ id: undefined, message: { role: "user", content: [{ type: "text", text: wellFormed(text) }] } }]

const isTexts = (items: ReadonlyArray<unknown>): items is ReadonlyArray<string> =>
  items.every(item => typeof item === "string")

/** The ids of the messages that one with this id becomes. @since 0.1.0 @category conversions */
export const partId = (id: string, index: number): string => (index === 0 ? id : `${id}:${index + 1}`)

/** An empty message would take a number, and the messages behind it another one each time. */
const withIds = (item: unknown, messages: ReadonlyArray<Message>): ReadonlyArray<Entry> => {
  const id = isRecord(item) && typeof item["id"] === "string" && item["id"] !== "" ? item["id"] : undefined
  return messages
    .filter(message => message.content.length > 0)
    .map((message, index) => ({ id: id === undefined ? undefined : partId(id, index), message }))
}

type Read<A> = Either.Either<ReadonlyArray<A>, InvalidMessage>

/**
 * Reads items that are not all texts. The reader of foreign shapes is loaded when the first of them comes: it needs schemas,
 * and most programs that start an agent never hand it one.
 */
const readItems = (items: ReadonlyArray<unknown>, isList: boolean): Effect.Effect<Read<Entry>> =>
  Effect.map(
    Effect.promise(() => import("./conversationMessages.js")),
    ({ fromMessage }) => {
      const entries: Array<Entry> = []
      for (const [index, item] of items.entries()) {
        if (typeof item === "string") {
          entries.push(...fromText(item))
          continue
        }
        const read = Either.map(fromMessage(item, isList ? [index] : []), messages => withIds(item, messages))
        // The items behind the first fault are not read: an error for each of a long list costs seconds.
        if (Either.isLeft(read)) return Either.left(read.left)
        entries.push(...read.right)
      }
      return Either.right(entries)
    }
  )

/**
 * Reads what is handed to an agent, message by message, before anything is brought together: an outcome may belong to a
 * call that stands elsewhere. See {@link fromInput}, which is for an input that stands alone.
 *
 * @since 0.1.0
 * @category conversions
 */
export const readInput = (input: Input): Effect.Effect<ReadonlyArray<Entry>, InvalidMessage> =>
  Effect.suspend(() => {
    const items: ReadonlyArray<unknown> = Array.isArray(input) ? input : [input]
    return isTexts(items)
      ? Effect.succeed(items.flatMap(fromText))
      : Effect.flatMap(readItems(items, Array.isArray(input)), read => read)
  })

/**
 * A prompt that every provider accepts: each call has its outcome in the tool message right behind it, in call order, or is
 * left out, and so is what has no call and what is empty. Fails with `InvalidMessage` when nothing is left to say.
 *
 * @since 0.1.0
 * @category conversions
 */
export const settled = (messages: ReadonlyArray<Message>): Read<Message> => {
  const prompt = settle(messages)
  return prompt.length > 0 ? Either.right(prompt) : Either.left(nothing)
}

/**
 * Reads what is handed to an agent.
 *
 * The result is well formed whatever was cut off before: every call has its outcome in the tool message right behind it,
 * and calls without an outcome, results without a call, empty texts that carry no options and empty messages are left
 * out. Values that JSON cannot hold are made safe (see `Json`), media are base64 text or a `URL`.
 *
 * Fails with `InvalidMessage`, which names the place (`[2].content[0].data`) and what belongs there; also when nothing is
 * left to say, as in `""` and `[]`.
 *
 * @since 0.1.0
 * @category conversions
 */
export const fromInput = (input: Input): Effect.Effect<ReadonlyArray<Message>, InvalidMessage> =>
  Effect.flatMap(readInput(input), entries => settled(entries.map(({ message }) => message)))

const nothing = new InvalidMessage({
  path: "",
  message:
    "There is nothing to say: the input is empty, or all of its messages are. Give a text or a message with content."
})

/**
 * Folds the assistant and tool messages of one run into one UI message of the AI SDK: `step-start` before each answer,
 * each call as one part with its outcome (`input-available` when it has none). Messages of other roles are passed over.
 * Provider options are kept, of calls and results as `callProviderMetadata` and `resultProviderMetadata`.
 *
 * @since 0.1.0
 * @category conversions
 */
export const toUIMessage = (messages: ReadonlyArray<Message>, id: string): UIMessage => ({
  id,
  role: "assistant",
  parts: toUiParts(messages)
})
