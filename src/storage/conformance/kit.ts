/** What conformance cases are made of: a clock that stands, things of their own, and a comparison that says what differs. */
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { StorageError, ThreadNotFound } from "../../protocol/Errors.js"
import type { Message } from "../../protocol/Message.js"
import { isRecord, type JsonValue } from "../../protocol/safeJson.js"
import type { NewMessage, NewThread, ThreadMessage } from "../ThreadStore.js"
import { ThreadStore } from "../ThreadStore.js"

/** A store does not do what it must. `message` says what, and what it did. @since 0.1.0 @category errors */
export class NotConforming extends Data.TaggedError("NotConforming")<{ readonly message: string }> {}

/** One thing that every store of a kind must do. */
export interface CaseOf<Service, Failure = StorageError> {
  readonly name: string
  /** Makes what it needs, under ids of its own, so that it may run in a database that others use. */
  readonly run: Effect.Effect<void, NotConforming | Failure, Service>
}

/** One thing that every store of threads must do. @since 0.1.0 @category models */
export type Case = CaseOf<ThreadStore, StorageError | ThreadNotFound>

/** Text of a value in which equal values are equal, absent and `undefined` are not. */
const print = (value: unknown): string => {
  if (typeof value === "string") return JSON.stringify(value)
  if (value instanceof URL) return `URL(${value.href})`
  if (value instanceof Date) return `Date(${value.getTime()})`
  if (Array.isArray(value)) return `[${value.map(print).join(", ")}]`
  if (!isRecord(value)) return String(value)
  const fields = Object.keys(value).sort()
  return `{ ${fields.map(field => `${JSON.stringify(field)}: ${print(value[field])}`).join(", ")} }`
}

const firstDifference = (one: string, other: string): number => {
  let index = 0
  while (index < one.length && one[index] === other[index]) index++
  return index
}

/** The neighbourhood of a place in a long text. */
const around = (text: string, index: number): string => {
  const start = Math.max(0, index - 80)
  return `${start > 0 ? "…" : ""}${text.slice(start, index + 120)}${text.length > index + 120 ? "…" : ""}`
}

/** Fails unless both are equal, all the way down. `what` is a noun. */
export const same = (what: string, actual: unknown, expected: unknown): Effect.Effect<void, NotConforming> =>
  Effect.suspend(() => {
    const [found, wanted] = [print(actual), print(expected)]
    if (found === wanted) return Effect.void
    const index = firstDifference(found, wanted)
    return new NotConforming({
      message: `${what}: expected ${around(wanted, index)} but found ${around(found, index)}`
    })
  })

/** Fails unless it fails with this error. */
export const failsWith = <A, E extends { readonly _tag: string }, R>(
  what: string,
  tag: E["_tag"],
  run: Effect.Effect<A, E, R>
): Effect.Effect<void, NotConforming, R> =>
  Effect.flatMap(Effect.either(run), result =>
    same(what, Either.match(result, { onLeft: ({ _tag }) => _tag, onRight: () => "success" }), tag)
  )

/** Runs at this time, in milliseconds since 1970; it stands still, and sleepers sleep by the clock of whoever runs it. */
export const at =
  (now: number) =>
  <A, E, R>(run: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Clock.clockWith(clock =>
      Effect.withClock(run, {
        [Clock.ClockTypeId]: Clock.ClockTypeId,
        unsafeCurrentTimeMillis: () => now,
        unsafeCurrentTimeNanos: () => BigInt(now) * 1_000_000n,
        currentTimeMillis: Effect.succeed(now),
        currentTimeNanos: Effect.succeed(BigInt(now) * 1_000_000n),
        sleep: duration => clock.sleep(duration)
      })
    )

/** An id that nobody else has. */
export const freshId = (): string => crypto.randomUUID()

/** Ids that are not each other, whatever a database thinks of case, spaces, accents and patterns. */
export const lookalikes = [
  "id",
  "ID",
  "id ",
  " id",
  "i_",
  "i%",
  "i*",
  "i'd",
  'i"d',
  "i\\d",
  "i;d--",
  "\u00e9",
  "e\u0301",
  "\ud83d\ude00",
  "\u4f60\u597d",
  "\u202eid"
]

/** Values that a database may take for something else: for nothing, for each other, or for its own. */
export const values: ReadonlyArray<JsonValue> = [
  "s",
  "",
  "null",
  "0",
  '"',
  0,
  1,
  -1.5,
  1e308,
  5e-324,
  Number.MAX_SAFE_INTEGER,
  false,
  true,
  null,
  [],
  {},
  [null],
  { "": null },
  'a "quoted" \\ line\n\u2028\u0000\ud83d\ude00 e\u0301 \u00e9',
  JSON.parse('{"__proto__":{"is":"data"},"constructor":"data"}'),
  { deep: [[[{ er: [1, "2", false] }]]] }
]

/** Opens a thread that nobody else knows. */
export const freshThread = (more: Omit<Partial<NewThread>, "id"> = {}) =>
  Effect.flatMap(ThreadStore, store => store.open({ id: freshId(), resourceId: freshId(), ...more }))

const says: Readonly<Record<string, (text: string) => Message>> = {
  s: content => ({ role: "system", content }),
  u: text => ({ role: "user", content: [{ type: "text", text }] }),
  a: text => ({ role: "assistant", content: [{ type: "text", text }] }),
  t: value => ({
    role: "tool",
    content: [{ type: "tool-result", toolCallId: "call", toolName: "look", output: { type: "text", value } }]
  })
}

/** A message by the first letter of its role. */
export const say = (id: string, text = id, letter = "u"): NewMessage => ({
  id,
  message: says[letter]?.(text) ?? { role: "user", content: [] }
})

/** Messages by the first letters of their roles; their ids are their indexes, counted down so that no order of ids helps. */
export const conversation = (letters: string): ReadonlyArray<NewMessage> =>
  Array.from(letters, (letter, index) => say(`${999_999 - index}`, `${index}`, letter))

/** The ids of messages. */
export const idsOf = (messages: ReadonlyArray<{ readonly id: string }>): ReadonlyArray<string> =>
  messages.map(({ id }) => id)

/** `1, 2, 3, …` */
export const upTo = (count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, index) => index + 1)

/** Fails unless the thread holds these messages, told by their ids, and no gap is in their sequence. */
export const holds = Effect.fnUntraced(function* (threadId: string, ids: ReadonlyArray<string>) {
  const store = yield* ThreadStore
  const stored: ReadonlyArray<ThreadMessage> = yield* store.messages(threadId)
  yield* same("the ids of the messages in order", idsOf(stored), ids)
  const sequences = stored.map(({ sequence }) => sequence)
  yield* same("the sequence of the messages", sequences, upTo(ids.length))
})
