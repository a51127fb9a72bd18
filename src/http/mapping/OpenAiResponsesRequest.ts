/**
 * What `client.responses.create` of `openai` posts.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type { FileInput, ModelMessageInput, TextInput } from "../../protocol/Conversation.js"
import { clientTool, inputOf } from "./clientTools.js"
import { InvalidRequest } from "./InvalidRequest.js"
import type { OpenAiFormat, OpenAiRequest } from "./OpenAiChatRequest.js"
import { mediaTypeOf, sampling, settingsOf, ToolChoiceBody, toolChoiceOf } from "./openAiBody.js"
import { bodyReader, loose, OpenRecord } from "./requestShape.js"

const Part = Schema.Union(
  Schema.Struct({ type: Schema.Literal("input_text", "output_text", "text"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literal("refusal"), refusal: Schema.String }),
  Schema.Struct({ type: Schema.Literal("input_image"), image_url: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("input_file"),
    file_data: loose(Schema.String),
    file_url: loose(Schema.String),
    filename: loose(Schema.String)
  }).pipe(
    Schema.filter(({ file_data, file_url }) =>
      file_data === undefined && file_url === undefined
        ? { path: ["file_data"], message: "is missing: files that were uploaded elsewhere cannot be read" }
        : undefined
    )
  )
)

const Content = Schema.Union(Schema.String, Schema.Array(Part))

const Item = Schema.Union(
  Schema.Struct({ type: Schema.Literal("function_call_output"), call_id: Schema.String, output: Content }),
  Schema.Struct({
    type: Schema.Literal("function_call"),
    call_id: Schema.String,
    name: Schema.String,
    arguments: Schema.String
  }),
  Schema.Struct({ type: Schema.Literal("reasoning") }),
  Schema.Struct({
    type: loose(Schema.Literal("message")),
    role: Schema.Literal("user", "assistant", "system", "developer"),
    content: Content
  })
)

type Item = typeof Item.Type

type Body = typeof Body.Type

const Body = Schema.Struct({
  model: Schema.NonEmptyString,
  input: Schema.Union(Schema.String, Schema.Array(Item)),
  instructions: loose(Schema.String),
  stream: loose(Schema.Boolean),
  previous_response_id: loose(Schema.String),
  conversation: loose(Schema.Unknown),
  background: loose(Schema.Literal(false)),
  tools: loose(
    Schema.Array(
      Schema.Struct({
        type: Schema.Literal("function"),
        name: Schema.NonEmptyString,
        description: loose(Schema.String),
        parameters: loose(Schema.Unknown)
      })
    )
  ),
  tool_choice: loose(ToolChoiceBody),
  max_output_tokens: loose(Schema.Number),
  text: loose(
    Schema.Struct({
      format: loose(
        Schema.Union(
          Schema.Struct({ type: Schema.Literal("text", "json_object") }),
          Schema.Struct({ type: Schema.Literal("json_schema"), schema: OpenRecord })
        )
      )
    })
  ),
  ...sampling
})

const readBody = bodyReader(Body, "Send what responses of OpenAI take, with function tools.")

type PartOf = typeof Part.Type

const partOf = (part: PartOf): TextInput | FileInput => {
  switch (part.type) {
    case "refusal":
      return { type: "text", text: part.refusal }
    case "input_image":
      return { type: "file", data: part.image_url, mediaType: mediaTypeOf(part.image_url, "image/*") }
    case "input_file": {
      const data = part.file_data ?? part.file_url ?? ""
      const mediaType = mediaTypeOf(data, "application/octet-stream")
      return {
        type: "file",
        data,
        mediaType,
        ...(part.filename === undefined ? {} : { filename: part.filename })
      }
    }
    default:
      return { type: "text", text: part.text }
  }
}

const textOf = (content: typeof Content.Type): string =>
  typeof content === "string"
    ? content
    : content.map(part => ("text" in part ? part.text : `[${part.type}]`)).join("\n")

const messageOf = (item: Item): ReadonlyArray<ModelMessageInput> => {
  if (!("role" in item)) {
    switch (item.type) {
      case "function_call": {
        const { arguments: text, call_id: toolCallId, name: toolName } = item
        return [
          { role: "assistant", content: [{ type: "tool-call", toolCallId, toolName, input: inputOf(text) }] }
        ]
      }
      case "function_call_output": {
        const output = { type: "text", value: textOf(item.output) }
        return [{ role: "tool", content: [{ type: "tool-result", toolCallId: item.call_id, output }] }]
      }
      default:
        return []
    }
  }
  const { content } = item
  switch (item.role) {
    case "user":
      return [{ role: "user", content: typeof content === "string" ? content : content.map(partOf) }]
    case "assistant":
      return [{ role: "assistant", content: textOf(content) }]
    default:
      return []
  }
}

const formatOf = (format: NonNullable<Body["text"]>["format"]): OpenAiFormat | undefined => {
  switch (format?.type) {
    case "json_schema":
      return { type: "json_schema", schema: format.schema }
    case "json_object":
      return { type: "json_object" }
    default:
      return undefined
  }
}

const unsupported = (field: string) =>
  Either.left(
    new InvalidRequest({
      field,
      message: `${field}: responses are not kept here. Send the whole conversation as \`input\`.`
    })
  )

/**
 * Reads the body of a request. What its messages hold is read when a run is told them. Fails with `InvalidRequest`, also for
 * what cannot be done here: going on with a response that was kept, tools that are no functions.
 *
 * @since 0.1.0
 * @category conversions
 */
export const read = (body: unknown): Either.Either<OpenAiRequest, InvalidRequest> =>
  Either.flatMap(readBody(body), request => {
    if (request.previous_response_id !== undefined) return unsupported("previous_response_id")
    if (request.conversation !== undefined) return unsupported("conversation")
    const items = typeof request.input === "string" ? [] : request.input
    const messages: ReadonlyArray<ModelMessageInput> =
      typeof request.input === "string"
        ? [{ role: "user", content: request.input }]
        : items.flatMap(messageOf)
    if (messages.length === 0) {
      const message = "input: there is nothing to answer. Send a text or a message of the user."
      return Either.left(new InvalidRequest({ field: "input", message }))
    }
    const said = items.flatMap(item =>
      "role" in item && (item.role === "system" || item.role === "developer") ? [textOf(item.content)] : []
    )
    return Either.right({
      agentId: request.model,
      messages,
      instructions: [...(request.instructions === undefined ? [] : [request.instructions]), ...said],
      isStream: request.stream === true,
      includeUsage: true,
      tools: (request.tools ?? []).map(({ description, name, parameters }) =>
        clientTool(name, description, parameters)
      ),
      toolChoice: toolChoiceOf(request.tool_choice),
      format: formatOf(request.text?.format),
      settings: settingsOf({
        maxOutputTokens: request.max_output_tokens,
        temperature: request.temperature,
        topP: request.top_p
      })
    })
  })
