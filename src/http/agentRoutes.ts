/** Agents: what they are, and their runs. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Stream from "effect/Stream"
import type { Chunk } from "../protocol/Chunk.js"
import { IdGenerator } from "../protocol/Id.js"
import { isRecord } from "../protocol/safeJson.js"
import { type Asked, agentOf, type Handler, isOwn } from "./asked.js"
import { chunks } from "./dialect.js"
import { collect } from "./full.js"
import type { Host, HostAgent, HostCall, HostRunOptions } from "./Host.js"
import { disconnectHeader, readPolicy } from "./policies.js"
import * as Read from "./reading.js"
import { invalidBody, notFound, Refusal } from "./refusal.js"
import { json, runStream } from "./responses.js"
import { ownsRun, release, reserve } from "./runIds.js"
import { type RequestedOptions, readCall, readMessages, readOptions, unsupported } from "./runRequests.js"
import type { Conversation } from "./runs.js"

/** Never the instructions: whoever may talk to an agent need not know what it was told. */
const described = ({ description, id, name }: HostAgent) => ({
  id,
  name,
  ...(description === undefined ? {} : { description })
})

export const list: Handler = ({ host }) =>
  Effect.succeed(
    json(Object.fromEntries(Array.from(host.agents, ([name, agent]) => [name, described(agent)])))
  )

export const details: Handler = asked => Effect.map(agentOf(asked), agent => json(described(agent)))

/** A run tells that a thread is not its own when it has begun, which is too late for a status. */
const checkThread = Effect.fnUntraced(function* ({ threads }: Host, { memory }: RequestedOptions) {
  if (memory === undefined) return
  if (threads === undefined) return yield* invalidBody("memory", "there is no store of threads here")
  const thread = yield* threads.get(memory.thread)
  if (Option.isSome(thread) && thread.value.resourceId !== memory.resource) return yield* notFound("Thread")
})

type Begin = (options: HostRunOptions) => Stream.Stream<Chunk, unknown>

/** Begins a run of the sender, under an id of its own unless the client has chosen one. */
export const begin = Effect.fnUntraced(function* (
  asked: Asked,
  agent: HostAgent,
  options: RequestedOptions,
  stream: Begin,
  isResumed: boolean,
  conversation?: Conversation
) {
  const { headers, host, principal, resource, runs, settings } = asked
  yield* checkThread(host, options)
  const policy = readPolicy(headers[disconnectHeader], settings)
  if (policy instanceof Refusal) return yield* policy
  const { next } = yield* IdGenerator
  // A run that goes on has the id that it had: its log is another one.
  const chosen = isResumed ? undefined : options.runId
  const id = chosen ?? next("run")
  let isStarted = false
  // What the run before stores would come behind what takes its place. A request that is refused has ended nothing.
  const endLast =
    options.memory?.after !== undefined && conversation !== undefined
      ? runs.endLast(agent.id, conversation.id, resource)
      : Effect.void
  const started = runs.start({
    id,
    agentId: agent.id,
    owner: resource,
    principalId: principal?.id,
    policy,
    ...(conversation === undefined ? {} : { conversation }),
    stream: abortSignal => {
      isStarted = true
      return stream({ ...options, ...(isResumed ? {} : { runId: id }), abortSignal })
    }
  })
  const start = Effect.zipRight(endLast, started)
  if (chosen === undefined) return yield* start
  return yield* Effect.uninterruptibleMask(restore =>
    Effect.zipRight(
      reserve(asked, chosen),
      Effect.onExit(restore(start), exit =>
        Exit.isSuccess(exit) || (isStarted && Exit.isInterrupted(exit)) ? Effect.void : release(asked, chosen)
      )
    )
  )
})

/**
 * Whether the client sends what its tools have given, with the options of the run that called them: its id is that of the run
 * before.
 */
const goesOn = (asked: Asked, { runId }: RequestedOptions) => {
  const { messages } = asked.body
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : messages
  return runId !== undefined && isRecord(last) && last["role"] === "tool"
    ? ownsRun(asked, runId)
    : Effect.succeed(false)
}

const started = Effect.fnUntraced(function* (asked: Asked, isUntilIdle: boolean) {
  const agent = yield* agentOf(asked)
  const given = yield* readOptions(asked, ["messages"], isUntilIdle)
  const input = yield* readMessages(asked)
  const { runId: _, ...others } = given
  const options = (yield* goesOn(asked, given)) ? others : given
  return yield* begin(asked, agent, options, given => agent.stream(input, given), false)
})

const streaming =
  (isUntilIdle: boolean): Handler =>
  asked =>
    Effect.gen(function* () {
      yield* asked.openStreams.enter(asked.principal)
      return yield* runStream(yield* started(asked, isUntilIdle), chunks, asked.settings)
    })

export const stream: Handler = streaming(false)

export const streamUntilIdle: Handler = streaming(true)

/** Whether an answer without a valid value is none: the client has asked for one, and for nothing in its place. */
const isValueNeeded = ({ body: { structuredOutput } }: Asked): boolean =>
  isRecord(structuredOutput) && (structuredOutput["errorStrategy"] ?? "strict") === "strict"

export const generate: Handler = asked =>
  Effect.gen(function* () {
    const { untilIdle } = asked.body
    if (untilIdle !== undefined && untilIdle !== false) {
      return yield* invalidBody("untilIdle", "is for streams: generate is one turn")
    }
    yield* asked.openStreams.enter(asked.principal)
    return json(yield* collect(yield* started(asked, false), isValueNeeded(asked)))
  })

/**
 * Refuses a call that is not the sender's to decide about: one of another's run, or task. What is stored decides; only of a host
 * that cannot say what is stored, this process knows the owners.
 */
export const checkCall = Effect.fnUntraced(function* (asked: Asked, agent: HostAgent, call: HostCall) {
  const { host, resource, runs } = asked
  if (resource === undefined) return
  const { runId, toolCallId } = call
  const suspended = yield* agent.suspendedRuns?.({ runId }) ?? Effect.succeed([])
  const stored = suspended.find(run => run.runId === runId)
  if (stored !== undefined) return isOwn(asked, stored) ? undefined : yield* notFound("Run")
  const filter = { agentId: agent.id, runId, resourceId: resource, perPage: 0 }
  const tasks = yield* host.tasks?.list({ ...filter, ...(toolCallId === undefined ? {} : { toolCallId }) }) ??
    Effect.succeed({ total: 0 })
  if (tasks.total > 0 || (agent.suspendedRuns === undefined && runs.owns(runId, resource))) return
  return yield* notFound("Run")
})

/** A run that goes on with one of its calls. */
const goingOn = Effect.fnUntraced(function* (
  asked: Asked,
  more: ReadonlyArray<string>,
  isUntilIdle: boolean,
  how: (agent: HostAgent, call: HostCall, options: HostRunOptions) => Stream.Stream<Chunk, unknown>
) {
  const agent = yield* agentOf(asked)
  const { runId: _, ...options } = yield* readOptions(asked, ["toolCallId", ...more], isUntilIdle)
  const call = yield* readCall(asked)
  yield* checkCall(asked, agent, call)
  return yield* begin(asked, agent, options, given => how(agent, call, given), true)
})

const resuming =
  (isUntilIdle: boolean): Handler =>
  asked =>
    Effect.gen(function* () {
      const { resumeData } = asked.body
      // `false` and `0` are answers too.
      if (resumeData === undefined) return yield* invalidBody("resumeData", "is required")
      yield* asked.openStreams.enter(asked.principal)
      const reading = yield* goingOn(asked, ["resumeData"], isUntilIdle, (agent, call, options) =>
        agent.resume(resumeData, call, options)
      )
      return yield* runStream(reading, chunks, asked.settings)
    })

export const resumeStream: Handler = resuming(false)

export const resumeStreamUntilIdle: Handler = resuming(true)

const decided = Effect.fnUntraced(function* (asked: Asked, approved: boolean) {
  const { decide } = yield* agentOf(asked)
  if (decide === undefined) return yield* unsupported("Approval of tool calls")
  const reason = approved ? undefined : yield* Read.maybeText(asked.body, "reason")
  const decision = approved
    ? ({ approved } as const)
    : ({ approved, ...(reason === undefined ? {} : { reason }) } as const)
  yield* asked.openStreams.enter(asked.principal)
  return yield* goingOn(asked, approved ? [] : ["reason"], false, (_, call, options) =>
    decide(decision, call, options)
  )
})

const deciding =
  (approved: boolean): Handler =>
  asked =>
    Effect.flatMap(decided(asked, approved), reading => runStream(reading, chunks, asked.settings))

const decidingWhole =
  (approved: boolean): Handler =>
  asked =>
    Effect.map(
      Effect.flatMap(decided(asked, approved), reading => collect(reading, isValueNeeded(asked))),
      body => json(body)
    )

export const approve: Handler = deciding(true)

export const decline: Handler = deciding(false)

export const approveGenerate: Handler = decidingWhole(true)

export const declineGenerate: Handler = decidingWhole(false)

/** Runs that wait for the sender, a page of them. */
export const suspendedRuns: Handler = asked =>
  Effect.gen(function* () {
    const { query, resource } = asked
    const agent = yield* agentOf(asked)
    if (agent.suspendedRuns === undefined) return json({ runs: [], total: 0 })
    const { page, perPage } = yield* Read.page(query)
    const from = yield* Read.queryDate(query, "fromDate")
    const to = yield* Read.queryDate(query, "toDate")
    const threadId = Read.queryText(query, "threadId")
    const resourceId = resource ?? Read.queryText(query, "resourceId")
    const all = yield* agent.suspendedRuns({
      ...(threadId === undefined ? {} : { threadId }),
      ...(resourceId === undefined ? {} : { resourceId })
    })
    const found = all.filter(
      run =>
        isOwn(asked, run) &&
        (from === undefined || run.suspendedAt >= from) &&
        (to === undefined || run.suspendedAt < to)
    )
    const runs = found
      .slice(page * perPage, (page + 1) * perPage)
      .map(run => ({ ...run, status: "suspended" as const }))
    return json({ runs, total: found.length })
  })
