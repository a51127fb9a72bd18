/** What the routes of protocols that others wrote share: their requests become runs within the same limits as ours. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Stream from "effect/Stream"
import type { Chunk } from "../protocol/Chunk.js"
import type { Input } from "../protocol/Conversation.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { begin, checkCall } from "./agentRoutes.js"
import type { Asked } from "./asked.js"
import { admit } from "./clientMessages.js"
import type { HostAgent, HostRunOptions } from "./Host.js"
import type { InvalidRequest } from "./mapping/InvalidRequest.js"
import * as Read from "./reading.js"
import { invalidBody, invalidField, type Refusal } from "./refusal.js"
import { type RequestedOptions, unsupported } from "./runRequests.js"
import type { Conversation } from "./runs.js"

/** What a mapping has read, or the status that says why it has not. */
export const wellFormed = <A>(read: Either.Either<A, InvalidRequest>): Effect.Effect<A, Refusal> =>
  Either.match(read, {
    onLeft: ({ field, message }) => invalidField(field === "" ? "root" : field, message, message),
    onRight: value => Effect.succeed(value)
  })

/** A response of these clients is whole: it ends when its tasks are answered, unless the request says otherwise. */
const untilIdle = (options: RequestedOptions): RequestedOptions => ({ untilIdle: true, ...options })

/** What a run says of the tools of its client, in the word that all of these protocols have for them. */
const inTheirWords = (error: unknown): unknown =>
  error instanceof InvalidConfiguration && /^clientTools\b/.test(error.field)
    ? invalidBody(
        error.field.replace(/^clientTools/, "tools"),
        error.message.replaceAll("clientTools", "tools")
      )
    : error

/** Begins a run of the messages. Files in any of `all` are checked, those that the run is told are fetched. */
export const answer = Effect.fnUntraced(function* (
  asked: Asked,
  agent: HostAgent,
  options: RequestedOptions,
  messages: Input & ReadonlyArray<unknown>,
  all: ReadonlyArray<unknown> = messages,
  conversation?: Conversation
) {
  if (messages.length === 0) return yield* invalidBody("messages", "is required")
  yield* admit(all, messages, asked.settings)
  return yield* begin(
    asked,
    agent,
    untilIdle(options),
    // Of a value that grows they carry the text, which it is read from.
    given => Stream.filter(agent.stream(messages, given), ({ type }) => type !== "object"),
    false,
    conversation
  ).pipe(Effect.mapError(inTheirWords))
})

/** What somebody has answered to a call that waits. */
export interface Answer {
  readonly runId: string
  readonly toolCallId: string
  /** `undefined`: it is no decision, but data. */
  readonly approved: boolean | undefined
  readonly reason?: string | undefined
  readonly data?: unknown
}

/** Goes on with the calls that were answered, one after the other: one response of as many legs. */
export const goOn = Effect.fnUntraced(function* (
  asked: Asked,
  agent: HostAgent,
  { runId: _, ...options }: RequestedOptions,
  answers: ReadonlyArray<Answer>,
  conversation?: Conversation
) {
  const { decide, resume } = agent
  const legs: Array<(options: HostRunOptions) => Stream.Stream<Chunk, unknown>> = []
  for (const { approved, data, reason, runId, toolCallId } of answers) {
    const call = {
      runId: yield* Read.id({ runId }, "runId"),
      toolCallId: yield* Read.id({ toolCallId }, "toolCallId")
    }
    yield* checkCall(asked, agent, call)
    if (approved === undefined) legs.push(given => resume(data, call, given))
    else if (decide === undefined) return yield* unsupported("Approval of tool calls")
    else {
      const decision = approved
        ? ({ approved } as const)
        : ({ approved, ...(reason === undefined ? {} : { reason }) } as const)
      legs.push(given => decide(decision, call, given))
    }
  }
  const all = (given: HostRunOptions) =>
    legs.map(leg => leg(given)).reduce((before, next) => Stream.concat(before, next), Stream.empty)
  return yield* begin(asked, agent, untilIdle(options), all, true, conversation).pipe(
    Effect.mapError(inTheirWords)
  )
})

/** Instructions of a client are the host's to allow. */
export const instructionsOf = (
  { settings }: Asked,
  instructions: ReadonlyArray<string>
): Effect.Effect<Pick<RequestedOptions, "instructions">, Refusal> => {
  if (instructions.length === 0) return Effect.succeed({})
  return settings.clientOptions.has("instructions")
    ? Effect.succeed({ instructions: instructions.join("\n\n") })
    : invalidBody("messages", "may hold no system messages")
}
