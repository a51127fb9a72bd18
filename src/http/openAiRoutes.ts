/** Chat completions and responses of OpenAI: `new OpenAI({ baseURL: ".../api/v1" })`, where `model` names the agent. */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Either from "effect/Either"
import type { Chunk } from "../protocol/Chunk.js"
import { messageOf, stringify } from "../protocol/safeJson.js"
import type { Asked, Handler } from "./asked.js"
import { formatOf } from "./clientSchema.js"
import { toolsOf } from "./clientTools.js"
import { type Dialect, mapped } from "./dialect.js"
import { news } from "./full.js"
import { findAgent, type HostAgent } from "./Host.js"
import type { InvalidRequest } from "./mapping/InvalidRequest.js"
import * as OpenAiChat from "./mapping/OpenAiChat.js"
import * as OpenAiChatRequest from "./mapping/OpenAiChatRequest.js"
import { type Failure, modelNotFound } from "./mapping/OpenAiError.js"
import * as OpenAiResponses from "./mapping/OpenAiResponses.js"
import * as OpenAiResponsesRequest from "./mapping/OpenAiResponsesRequest.js"
import { answer, instructionsOf, wellFormed } from "./protocols.js"
import { fromError, invalidBody, type Refusal } from "./refusal.js"
import { json, runStream } from "./responses.js"
import { readOptions } from "./runRequests.js"
import type { Reading } from "./runs.js"
import * as Sse from "./sse.js"

type Request = OpenAiChatRequest.OpenAiRequest

interface Options {
  readonly model: string
  readonly created: number
  readonly includeUsage: boolean
  readonly clientTools: ReadonlyArray<string>
  readonly errorText: (error: unknown) => string
}

/** One of the two protocols. */
interface Protocol {
  readonly read: (body: unknown) => Either.Either<Request, InvalidRequest>
  /** Where a request says how the answer is to look. */
  readonly formatField: string
  readonly dialect: (options: Options) => Dialect
  readonly collect: (options: Options) => Collector
}

/** Takes the chunks of a response, and gives what it is as a whole. */
interface Collector {
  readonly push: (chunk: Chunk) => void
  readonly end: (failure?: unknown) => object | Failure
}

const failed = ({ error, headers, status }: Failure): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.setHeaders(json({ error }, status), headers)

/** What this protocol has no field for is refused by name, as everywhere. */
const said = ({ issues, message }: Refusal): string =>
  issues === undefined ? message : issues.map(issue => `${issue.field}: ${issue.message}`).join(" ")

/** What the client of OpenAI tells apart by more than a status. */
const codes: Readonly<Record<number, string>> = { 401: "invalid_api_key", 429: "rate_limit_exceeded" }

/** A refusal as clients of OpenAI read it. Not to be repeated, but where it says when. */
export const refused = (refusal: Refusal): HttpServerResponse.HttpServerResponse => {
  const { issues, retryAfter, status } = refusal
  const error = {
    message: said(refusal),
    type: status < 500 ? "invalid_request_error" : "server_error",
    code: codes[status] ?? null,
    param: issues?.[0]?.field ?? null
  }
  return HttpServerResponse.setHeaders(
    json({ error }, status),
    retryAfter === undefined ? { "x-should-retry": "false" } : { "retry-after": String(retryAfter) }
  )
}

const orRefused = (asked: Asked, handled: ReturnType<Handler>): ReturnType<Handler> =>
  Effect.catchAll(handled, error =>
    Effect.succeed(refused(fromError(error, asked.settings.expose.errors === true)))
  )

const isFailure = (whole: object): whole is Failure => "headers" in whole && "error" in whole

/** Reads the response to its end. */
const wholeOf = Effect.fnUntraced(function* ({ reader }: Reading, { end, push }: Collector) {
  for (;;) {
    for (const { chunk } of reader.take(64)) push(chunk)
    if (reader.isTooLate) return end(new Error("The response was too long to be kept."))
    if (reader.isDone) return end(reader.end?._tag === "Broken" ? new Error(reader.end.message) : undefined)
    yield* news(reader)
  }
})

/** Options of the request that the host allows its clients. */
const allowedOf = Effect.fnUntraced(function* (
  asked: Asked,
  formatField: string,
  { format, instructions, settings, toolChoice, tools }: Request
) {
  const { clientOptions } = asked.settings
  const [setting] = Object.keys(settings)
  if (setting !== undefined && !clientOptions.has("modelSettings")) {
    return yield* invalidBody(setting, "may not be set by clients")
  }
  const isChoice = toolChoice !== undefined && toolChoice !== "auto"
  if (isChoice && !clientOptions.has("toolChoice")) {
    return yield* invalidBody("tool_choice", "may not be set by clients")
  }
  return {
    ...(yield* instructionsOf(asked, instructions)),
    ...(yield* toolsOf(asked, tools, "tools")),
    ...(yield* formatOf(asked, format, formatField)),
    ...(setting === undefined ? {} : { modelSettings: settings }),
    ...(isChoice ? { toolChoice } : {})
  }
})

const answering =
  ({ collect, dialect, formatField, read }: Protocol): Handler =>
  asked =>
    orRefused(
      asked,
      Effect.gen(function* () {
        const request = yield* wellFormed(read(asked.body))
        const { agentId, includeUsage, isStream, messages } = request
        const agent = findAgent(asked.host, agentId)
        if (agent === undefined) return failed(modelNotFound(agentId))
        const allowed = yield* allowedOf(asked, formatField, request)
        const options = { ...(yield* readOptions({ ...asked, body: {} }, [], false)), ...allowed }
        yield* asked.openStreams.enter(asked.principal)
        const created = Math.floor((yield* Clock.currentTimeMillis) / 1000)
        const clientTools = request.tools.map(({ name }) => name)
        const told = { model: agentId, created, includeUsage, clientTools, errorText: messageOf }
        const reading = yield* answer(asked, agent, options, messages)
        if (isStream) return yield* runStream(reading, dialect(told), asked.settings)
        const whole = yield* wholeOf(reading, collect(told))
        return isFailure(whole) ? failed(whole) : json(whole)
      })
    )

export const chat: Handler = answering({
  read: OpenAiChatRequest.read,
  formatField: "response_format",
  dialect: options => mapped({ isDoneTold: true, mapper: () => OpenAiChat.make(options) }),
  collect: OpenAiChat.collect
})

export const responses: Handler = answering({
  read: OpenAiResponsesRequest.read,
  formatField: "text.format",
  dialect: options =>
    mapped({
      isDoneTold: false,
      mapper: () => OpenAiResponses.make(options),
      frame: event => Sse.namedData(event.type, stringify(event))
    }),
  collect: OpenAiResponses.collect
})

const modelOf = (name: string, { description }: HostAgent) => ({
  id: name,
  object: "model",
  created: 0,
  owned_by: "eddy",
  ...(description === undefined ? {} : { description })
})

/** The agents, by the names that `model` takes. */
export const models: Handler = ({ host }) =>
  Effect.succeed(
    json({ object: "list", data: Array.from(host.agents, ([name, agent]) => modelOf(name, agent)) })
  )

export const model: Handler = ({ host, params }) =>
  Effect.sync(() => {
    const name = params["agentId"] ?? ""
    const agent = findAgent(host, name)
    return agent === undefined ? failed(modelNotFound(name)) : json(modelOf(name, agent))
  })
