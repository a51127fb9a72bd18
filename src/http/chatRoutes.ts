/** The chat of the AI SDK: what `DefaultChatTransport` posts to `…/chat`, and reads again at `…/chat/<id>/stream`. */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import { messageOf } from "../protocol/safeJson.js"
import { agentOf, type Handler } from "./asked.js"
import { mapped } from "./dialect.js"
import * as UiMessageStream from "./mapping/UiMessageStream.js"
import * as UiRequest from "./mapping/UiRequest.js"
import { type Answer, answer, goOn, wellFormed } from "./protocols.js"
import * as Read from "./reading.js"
import { Refusal } from "./refusal.js"
import { runStream } from "./responses.js"
import { type RequestedOptions, readOptions } from "./runRequests.js"

/** What the log holds is masked already. */
const dialectOf = (options: UiMessageStream.Options) =>
  mapped({
    headers: { "x-vercel-ai-ui-message-stream": "v1" },
    isDoneTold: true,
    mapper: () => UiMessageStream.make({ ...options, errorText: messageOf })
  })

const answersOf = ({ decisions, resumption }: UiRequest.UiRequest): ReadonlyArray<Answer> => [
  ...decisions,
  ...(resumption === undefined ? [] : [{ ...resumption, approved: undefined }])
]

/** In the thread, too, an answer that is made again takes the place of what came before it. */
const behind = ({ memory, ...options }: RequestedOptions, after: string | undefined): RequestedOptions => {
  if (memory === undefined) return options
  return { ...options, memory: { ...memory, ...(after === undefined ? {} : { after }) } }
}

export const post: Handler = asked =>
  Effect.gen(function* () {
    const agent = yield* agentOf(asked)
    const fields = ["id", "messages", "trigger", "messageId", "resume"]
    const given = yield* readOptions(asked, fields, false, "tools")
    const request = yield* wellFormed(UiRequest.read(asked.body))
    const options = behind(given, request.after)
    const { chatId, continues, messages, newMessages } = request
    // They are kept as long as the log of the run.
    if (chatId !== undefined) yield* Read.id({ id: chatId }, "id")
    if (continues !== undefined && continues.id !== "")
      yield* Read.id({ id: continues.id }, "id", "messages.")
    yield* asked.openStreams.enter(asked.principal)
    const conversation =
      chatId === undefined
        ? undefined
        : { id: chatId, ...(continues === undefined ? {} : { messageId: continues.id }) }
    const answers = answersOf(request)
    const reading =
      answers.length > 0
        ? yield* goOn(asked, agent, options, answers, conversation)
        : yield* answer(
            asked,
            agent,
            options,
            options.memory === undefined ? messages : newMessages,
            messages,
            conversation
          )
    return yield* runStream(reading, dialectOf(continues === undefined ? {} : { continues }), asked.settings)
  })

/** The last response of the chat, from its beginning; 204 when there is none, as the transport expects. */
export const replay: Handler = asked =>
  Effect.gen(function* () {
    const { openStreams, params, principal, resource, runs, settings } = asked
    const agent = yield* agentOf(asked)
    yield* openStreams.enter(principal)
    const reading = yield* runs.readLast(agent.id, params["chatId"] ?? "", resource)
    const messageId = reading.run.conversation?.messageId
    return yield* runStream(reading, dialectOf(messageId === undefined ? {} : { messageId }), settings)
  }).pipe(
    Effect.catchIf(
      error => error instanceof Refusal && (error.status === 404 || error.status === 410),
      () => Effect.succeed(HttpServerResponse.empty({ status: 204 }))
    )
  )
