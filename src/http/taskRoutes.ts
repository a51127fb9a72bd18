/** Background tasks: found, watched, resumed and cancelled. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { statuses, type Task } from "../protocol/Task.js"
import type { ListOptions } from "../storage/TaskStore.js"
import { type Asked, type Handler, isOwn } from "./asked.js"
import { type Exposed, encode, errorFrame, mask } from "./masking.js"
import * as Read from "./reading.js"
import { invalidBody, notFound, Refusal } from "./refusal.js"
import { eventStream, json } from "./responses.js"
import * as Sse from "./sse.js"

const unavailable = new Refusal({ status: 404, message: "There are no background tasks here" })

const tasksOf = ({ host }: Asked) => (host.tasks === undefined ? unavailable : Effect.succeed(host.tasks))

/** A task as a client may see it. `retryCount` and `suspendPayload` are the words of other clients. */
const shown = (task: Task, { errors }: Exposed) => ({
  ...task,
  ...(task.error === undefined || errors === true ? {} : { error: { message: "The task failed." } }),
  ...(task.suspendData === undefined ? {} : { suspendPayload: task.suspendData }),
  retryCount: Math.max(0, task.attempt - 1)
})

/** The task of the path, if it is the sender's. */
const find = Effect.fnUntraced(function* (asked: Asked) {
  const tasks = yield* tasksOf(asked)
  const task = yield* tasks.get(asked.params["taskId"] ?? "")
  if (Option.isNone(task) || !isOwn(asked, task.value)) return yield* notFound("Background task")
  return { tasks, task: task.value }
})

const times = ["createdAt", "startedAt", "suspendedAt", "completedAt"] as const

const textFields = ["agentId", "runId", "threadId", "toolName", "toolCallId"] as const

const texts = (query: Read.Query, fields: ReadonlyArray<string>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    fields.flatMap(field => {
      const text = Read.queryText(query, field)
      return text === undefined ? [] : [[field, text]]
    })
  )

const given = <A>(field: string, value: A | undefined) => (value === undefined ? {} : { [field]: value })

/** Which tasks a query is about. Of a sender that is confined to a resource they are those of this resource. */
const filterOf = ({ query, resource }: Asked, fields: ReadonlyArray<string>) => ({
  ...texts(query, [...fields, "resourceId"]),
  ...(resource === undefined ? {} : { resourceId: resource })
})

const readList = Effect.fnUntraced(function* (asked: Asked) {
  const { query } = asked
  const options: ListOptions = {
    ...filterOf(asked, textFields),
    ...given("status", yield* Read.queryWord(query, "status", statuses)),
    ...given("fromDate", yield* Read.queryDate(query, "fromDate")),
    ...given("toDate", yield* Read.queryDate(query, "toDate")),
    ...given("dateFilterBy", yield* Read.queryWord(query, "dateFilterBy", times)),
    ...given("orderBy", yield* Read.queryWord(query, "orderBy", times)),
    ...given("orderDirection", yield* Read.queryWord(query, "orderDirection", ["asc", "desc"] as const)),
    ...(yield* Read.page(query))
  }
  return options
})

/** Tasks of the sender. */
export const list: Handler = asked =>
  Effect.gen(function* () {
    const tasks = yield* tasksOf(asked)
    const found = yield* tasks.list(yield* readList(asked))
    return json({ tasks: found.tasks.map(task => shown(task, asked.settings.expose)), total: found.total })
  })

export const get: Handler = asked =>
  Effect.map(find(asked), ({ task }) => json(shown(task, asked.settings.expose)))

export const cancel: Handler = asked =>
  Effect.gen(function* () {
    yield* Read.refuseFields(asked.body, [])
    const { task, tasks } = yield* find(asked)
    return json(shown(yield* tasks.cancel(task.id), asked.settings.expose))
  })

export const resume: Handler = asked =>
  Effect.gen(function* () {
    yield* Read.refuseFields(asked.body, ["resumeData"])
    const { resumeData } = asked.body
    if (resumeData === undefined) return yield* invalidBody("resumeData", "is required")
    const { task, tasks } = yield* find(asked)
    return json(shown(yield* tasks.resume(task.id, resumeData), asked.settings.expose))
  })

/** What happens to tasks of the sender, until it leaves: first those that run. */
export const stream: Handler = asked =>
  Effect.gen(function* () {
    const { openStreams, principal, runs, settings } = asked
    const tasks = yield* tasksOf(asked)
    yield* openStreams.enter(principal)
    // This stream has no end of its own: its reader learns why there is one.
    let ending = "The server is shutting down."
    const endsWith = (message: string) =>
      Effect.sync(() => {
        ending = message
      })
    const grownOld = Effect.delay(
      endsWith("This stream is too old. Open another one."),
      settings.maxStreamAge
    )
    const frames = tasks.stream(filterOf(asked, ["agentId", "runId", "threadId", "taskId"])).pipe(
      Stream.map(chunk => {
        const visible = mask(chunk, settings.expose)
        return visible === undefined ? "" : Sse.data(encode(visible))
      }),
      Stream.filter(frame => frame !== ""),
      Stream.catchAll(() =>
        Stream.drain(endsWith("This reader was too slow, or the store could not be asked."))
      ),
      Stream.interruptWhenDeferred(runs.closing),
      Stream.interruptWhen(grownOld),
      Stream.concat(Stream.suspend(() => Stream.make(Sse.data(errorFrame("", ending)))))
    )
    return eventStream(frames, settings)
  })
