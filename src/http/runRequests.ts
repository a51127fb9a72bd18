/** What a client may say of a run, read from a request by an allow-list. */
import * as Effect from "effect/Effect"
import type { Input } from "../protocol/Conversation.js"
import { isRecord } from "../protocol/safeJson.js"
import type { Asked } from "./asked.js"
import { admit } from "./clientMessages.js"
import { readStructured } from "./clientSchema.js"
import { readTools } from "./clientTools.js"
import type { HostRunOptions } from "./Host.js"
import * as Read from "./reading.js"
import { invalidBody, Refusal } from "./refusal.js"
import { clientOptions } from "./settings.js"

/** What every run may be told by its client, beside what the host allows. */
const runFields = ["runId", "memory", "requestContext", "untilIdle", "maxIdleMs"]

/** Options of a run without its signal. */
export type RequestedOptions = Omit<HostRunOptions, "abortSignal">

const readThread = Effect.fnUntraced(function* (memory: Read.Fields) {
  const { thread } = memory
  if (!isRecord(thread)) return yield* Read.id(memory, "thread", "memory.")
  yield* Read.refuseFields(thread, ["id"], "memory.thread.")
  return yield* Read.id(thread, "id", "memory.thread.")
})

/** The thread that a run belongs to. Its resource is the sender's, whatever the client says. */
const readMemory = Effect.fnUntraced(function* ({ resource }: Asked, fields: Read.Fields) {
  const memory = yield* Read.maybeRecord(fields, "memory")
  if (memory === undefined) return undefined
  yield* Read.refuseFields(memory, ["thread", "resource"], "memory.")
  const thread = yield* readThread(memory)
  return { thread, resource: resource ?? (yield* Read.id(memory, "resource", "memory.")) }
})

/** The request context: what the client may set, and then what the host says. */
const readContext = Effect.fnUntraced(function* ({ principal, settings }: Asked, fields: Read.Fields) {
  const asked = (yield* Read.maybeRecord(fields, "requestContext")) ?? {}
  const other = Object.keys(asked).find(key => !settings.clientContext.has(key))
  if (other !== undefined) return yield* invalidBody(`requestContext.${other}`, "may not be set by clients")
  return { ...asked, ...settings.requestContext?.(principal) }
})

const readUntilIdle = Effect.fnUntraced(function* (fields: Read.Fields, isAlways: boolean) {
  const { untilIdle } = fields
  if (untilIdle !== undefined && typeof untilIdle !== "boolean" && !isRecord(untilIdle)) {
    return yield* invalidBody("untilIdle", "must be true, false or { maxIdleMs }")
  }
  if (isRecord(untilIdle)) yield* Read.refuseFields(untilIdle, ["maxIdleMs"], "untilIdle.")
  const [maxIdleMs, at] = isRecord(untilIdle)
    ? [untilIdle["maxIdleMs"], "untilIdle.maxIdleMs"]
    : [fields["maxIdleMs"], "maxIdleMs"]
  if (maxIdleMs === undefined) return isRecord(untilIdle) || isAlways ? true : untilIdle
  if (typeof maxIdleMs !== "number" || !(maxIdleMs >= 1) || maxIdleMs >= 2 ** 31) {
    return yield* invalidBody(at, "must be a number of milliseconds")
  }
  return untilIdle === false && !isAlways ? false : { maxIdle: maxIdleMs }
})

/** Options that are handed on as they are. Their own checks are the agent's: what is wrong with them it says itself. */
const plainOptions = clientOptions.filter(option => option !== "structuredOutput" && option !== "tools")

/** Of these the agent goes through the fields: of a text each character is one. */
const recordOptions = ["modelSettings", "providerOptions"]

const readAllowed = Effect.fnUntraced(function* (fields: Read.Fields) {
  for (const option of recordOptions) yield* Read.maybeRecord(fields, option)
  const allowed: Partial<RequestedOptions> = Object.fromEntries(
    plainOptions.flatMap(option => (fields[option] === undefined ? [] : [[option, fields[option]]]))
  )
  return allowed
})

/** The options of a run. `more` are fields that its route reads itself, `tools` is the one that holds tools of the client. */
export const readOptions = Effect.fnUntraced(function* (
  asked: Asked,
  more: ReadonlyArray<string>,
  isUntilIdle: boolean,
  tools = "clientTools"
) {
  const { body, settings } = asked
  const allowed = Array.from(settings.clientOptions, option => (option === "tools" ? tools : option))
  yield* Read.refuseFields(body, [...more, ...runFields, ...allowed])
  const runId = yield* Read.maybeId(body, "runId")
  const memory = yield* readMemory(asked, body)
  const requestContext = yield* readContext(asked, body)
  const untilIdle = yield* readUntilIdle(body, isUntilIdle)
  const options: RequestedOptions = {
    ...(yield* readAllowed(body)),
    ...(yield* readStructured(asked, body)),
    ...(yield* readTools(asked, body, tools)),
    ...(runId === undefined ? {} : { runId }),
    ...(asked.resource === undefined ? {} : { resource: asked.resource }),
    ...(memory === undefined ? {} : { memory }),
    ...(untilIdle === undefined ? {} : { untilIdle }),
    requestContext
  }
  return options
})

const isInput = (value: unknown): value is Input =>
  typeof value === "string" || isRecord(value) || Array.isArray(value)

/** The messages of a request. What they are is found by who reads them; files by their URL are fetched here, or refused. */
export const readMessages = Effect.fnUntraced(function* ({ body, settings }: Asked) {
  const { messages } = body
  if (messages === undefined || messages === "" || (Array.isArray(messages) && messages.length === 0)) {
    return yield* invalidBody("messages", "is required")
  }
  if (!isInput(messages)) return yield* invalidBody("messages", "must be a text, a message or a list of them")
  if (hasSystem(messages) && !settings.clientOptions.has("instructions")) {
    return yield* invalidBody("messages", "may hold no system messages")
  }
  yield* admit(messages, messages, settings)
  return messages
})

/** What a system message says is as good as instructions. */
const hasSystem = (messages: unknown): boolean => {
  const items: ReadonlyArray<unknown> = Array.isArray(messages) ? messages : [messages]
  return items.some(item => isRecord(item) && (item["role"] === "system" || item["role"] === "developer"))
}

/** The call that a request decides about. */
export const readCall = Effect.fnUntraced(function* ({ body }: Asked) {
  const runId = yield* Read.id(body, "runId")
  const toolCallId = yield* Read.maybeId(body, "toolCallId")
  return toolCallId === undefined ? { runId } : { runId, toolCallId }
})

/** A decision needs an approval port. */
export const unsupported = (what: string): Refusal =>
  new Refusal({ status: 501, message: `${what} is not supported here` })
