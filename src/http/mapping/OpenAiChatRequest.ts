/**
 * What `client.chat.completions.create` of `openai` posts.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type { ModelSettings, ToolChoice } from "../../model/ModelPort.js"
import type { FileInput, ModelMessageInput, TextInput } from "../../protocol/Conversation.js"
import { type ClientTool, clientTool, inputOf } from "./clientTools.js"
import { InvalidRequest } from "./InvalidRequest.js"
import { mediaTypeOf, sampling, settingsOf, ToolChoiceBody, toolChoiceOf } from "./openAiBody.js"
import { bodyReader, loose, OpenRecord } from "./requestShape.js"

/** How an answer is to look. @since 0.1.0 @category models */
export type OpenAiFormat =
  | { readonly type: "json_object" }
  | { readonly type: "json_schema"; readonly schema: { readonly [key: string]: unknown } }

/** What both protocols of OpenAI ask for. @since 0.1.0 @category models */
export interface OpenAiRequest {
  /** The agent: `model` of the request. */
  readonly agentId: string
  /** The conversation, without the roles `system` and `developer`. */
  readonly messages: ReadonlyArray<ModelMessageInput>
  /** What stands in those roles, for a host that lets clients instruct its agents. */
  readonly instructions: ReadonlyArray<string>
  readonly isStream: boolean
  /** Whether a stream tells what was used. */
  readonly includeUsage: boolean
  readonly tools: ReadonlyArray<ClientTool>
  readonly toolChoice: ToolChoice | undefined
  /** How the answer is to look, when it is no plain text, for a host that lets clients ask for it. */
  readonly format: OpenAiFormat | undefined
  /** Settings of the model, for a host that lets clients choose them. */
  readonly settings: ModelSettings
}

const Part = Schema.Union(
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literal("refusal"), refusal: Schema.String }),
  Schema.Struct({ type: Schema.Literal("image_url"), image_url: Schema.Struct({ url: Schema.String }) }),
  Schema.Struct({
    type: Schema.Literal("input_audio"),
    input_audio: Schema.Struct({ data: Schema.String, format: Schema.String })
  }),
  Schema.Struct({
    type: Schema.Literal("file"),
    file: Schema.Struct({ file_data: Schema.String, filename: loose(Schema.String) })
  })
)

const Content = Schema.Union(Schema.String, Schema.Array(Part))

const Message = Schema.Union(
  Schema.Struct({ role: Schema.Literal("system", "developer"), content: Content }),
  Schema.Struct({ role: Schema.Literal("user"), content: Content }),
  Schema.Struct({
    role: Schema.Literal("assistant"),
    content: loose(Content),
    tool_calls: loose(
      Schema.Array(
        Schema.Struct({
          id: Schema.String,
          function: Schema.Struct({ name: Schema.String, arguments: Schema.String })
        })
      )
    )
  }),
  Schema.Struct({ role: Schema.Literal("tool"), tool_call_id: Schema.String, content: Content })
)

const Body = Schema.Struct({
  model: Schema.NonEmptyString,
  messages: Schema.Array(Message),
  stream: loose(Schema.Boolean),
  stream_options: loose(Schema.Struct({ include_usage: loose(Schema.Boolean) })),
  n: loose(Schema.Literal(1)),
  tools: loose(
    Schema.Array(
      Schema.Struct({
        type: Schema.Literal("function"),
        function: Schema.Struct({
          name: Schema.NonEmptyString,
          description: loose(Schema.String),
          parameters: loose(Schema.Unknown)
        })
      })
    )
  ),
  tool_choice: loose(ToolChoiceBody),
  max_tokens: loose(Schema.Number),
  max_completion_tokens: loose(Schema.Number),
  presence_penalty: loose(Schema.Number),
  frequency_penalty: loose(Schema.Number),
  seed: loose(Schema.Number),
  stop: loose(Schema.Union(Schema.String, Schema.Array(Schema.String))),
  response_format: loose(
    Schema.Union(
      Schema.Struct({ type: Schema.Literal("text", "json_object") }),
      Schema.Struct({
        type: Schema.Literal("json_schema"),
        json_schema: Schema.Struct({ schema: OpenRecord })
      })
    )
  ),
  ...sampling
})

type Body = typeof Body.Type

const readBody = bodyReader(Body, "Send what chat completions of OpenAI take, with n = 1 and function tools.")

type PartOf = typeof Part.Type

const partOf = (part: PartOf): TextInput | FileInput => {
  switch (part.type) {
    case "text":
      return part
    case "refusal":
      return { type: "text", text: part.refusal }
    case "image_url":
      return { type: "file", data: part.image_url.url, mediaType: mediaTypeOf(part.image_url.url, "image/*") }
    case "input_audio":
      return { type: "file", data: part.input_audio.data, mediaType: `audio/${part.input_audio.format}` }
    case "file": {
      const { file_data, filename } = part.file
      const mediaType = mediaTypeOf(file_data, "application/octet-stream")
      return { type: "file", data: file_data, mediaType, ...(filename === undefined ? {} : { filename }) }
    }
  }
}

const textOf = (content: typeof Content.Type): string =>
  typeof content === "string"
    ? content
    : content.map(part => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n")

const formatOf = (format: Body["response_format"]): OpenAiFormat | undefined => {
  switch (format?.type) {
    case "json_schema":
      return { type: "json_schema", schema: format.json_schema.schema }
    case "json_object":
      return { type: "json_object" }
    default:
      return undefined
  }
}

const messageOf = (message: Body["messages"][number]): ReadonlyArray<ModelMessageInput> => {
  switch (message.role) {
    case "user": {
      const { content } = message
      return [{ role: "user", content: typeof content === "string" ? content : content.map(partOf) }]
    }
    case "assistant": {
      const text = message.content === undefined ? "" : textOf(message.content)
      const calls = (message.tool_calls ?? []).map(call => ({
        type: "tool-call" as const,
        toolCallId: call.id,
        toolName: call.function.name,
        input: inputOf(call.function.arguments)
      }))
      return [
        { role: "assistant", content: [...(text === "" ? [] : [{ type: "text" as const, text }]), ...calls] }
      ]
    }
    case "tool": {
      const output = { type: "text", value: textOf(message.content) }
      return [{ role: "tool", content: [{ type: "tool-result", toolCallId: message.tool_call_id, output }] }]
    }
    default:
      return []
  }
}

/**
 * Reads the body of a request. What its messages hold is read when a run is told them. Fails with `InvalidRequest`, also for
 * what cannot be done here: several choices, tools that are no functions.
 *
 * @since 0.1.0
 * @category conversions
 */
export const read = (body: unknown): Either.Either<OpenAiRequest, InvalidRequest> =>
  Either.flatMap(readBody(body), request => {
    const messages = request.messages.flatMap(messageOf)
    if (messages.length === 0) {
      const message = "messages: there is nothing to answer. Send a message of the user."
      return Either.left(new InvalidRequest({ field: "messages", message }))
    }
    const { stop } = request
    return Either.right({
      agentId: request.model,
      messages,
      instructions: request.messages.flatMap(message =>
        message.role === "system" || message.role === "developer" ? [textOf(message.content)] : []
      ),
      isStream: request.stream === true,
      includeUsage: request.stream_options?.include_usage === true,
      tools: (request.tools ?? []).map(({ function: { description, name, parameters } }) =>
        clientTool(name, description, parameters)
      ),
      toolChoice: toolChoiceOf(request.tool_choice),
      format: formatOf(request.response_format),
      settings: settingsOf({
        maxOutputTokens: request.max_completion_tokens ?? request.max_tokens,
        temperature: request.temperature,
        topP: request.top_p,
        presencePenalty: request.presence_penalty,
        frequencyPenalty: request.frequency_penalty,
        stopSequences: typeof stop === "string" ? [stop] : stop,
        seed: request.seed
      })
    })
  })
