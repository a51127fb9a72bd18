/** What a store must give back as it was given, and what it must make safe. */
import * as Effect from "effect/Effect"
import type { Message } from "../../protocol/Message.js"
import type { JsonValue } from "../../protocol/safeJson.js"
import { type NewMessage, ThreadStore } from "../ThreadStore.js"
import { at, type Case, failsWith, freshThread, holds, same, say } from "./kit.js"

/** Fails unless messages come back as expected, from the append and from the store. */
const comesBack = Effect.fnUntraced(function* (
  given: ReadonlyArray<Message>,
  expected: ReadonlyArray<Message>
) {
  const store = yield* ThreadStore
  const { id } = yield* freshThread()
  const stored = yield* store.append(
    id,
    given.map((message, index) => ({ id: `${index}`, message }))
  )
  yield* same(
    "what append gives",
    stored.map(({ message }) => message),
    expected
  )
  const messages = (yield* store.messages(id)).map(({ message }) => message)
  yield* same("the stored messages", messages, expected)
})

const survive = (name: string, messages: ReadonlyArray<Message>): Case => ({
  name,
  run: comesBack(messages, messages)
})

/** What tempts a database or a serializer to change a text. */
const text = `"quoted" 'quoted' \\ \\n \n\r\n\t \u0000\u0001\u007f\u0085\u2028\u2029\ufeff \u00e9 e\u0301 \ud83d\ude00 \ud83c\udff3\ufe0f\u200d\ud83c\udf08 \u05d0\u202e %s $1 :a ? -- ; </script> {{x}}  `

const signature = `EqQB${"+/aZ09".repeat(500)}== ${text}`

const call = (input: unknown): Message => ({
  role: "assistant",
  content: [{ type: "tool-call", toolCallId: "call", toolName: "look", input }]
})

const nested = (levels: number): JsonValue => {
  let value: JsonValue = { bottom: [] }
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { value }
  return value
}

/** Keys of their own are data, whatever they are called. */
const ownKeys: unknown = JSON.parse(
  '{"__proto__":{"x":1},"constructor":1,"toString":2,"":3,"a.b":4,"$ref":5,"2":6,"1":7}'
)

const json: ReadonlyArray<unknown> = [
  null,
  true,
  0,
  -1.5,
  1e308,
  5e-324,
  0.1 + 0.2,
  Number.MAX_SAFE_INTEGER,
  "",
  "null",
  "2026-01-01T00:00:00.000Z",
  [],
  {},
  [[], [{}], null],
  ownKeys,
  nested(200)
]

const options = { provider: { signature, level: { of: [1, null, text] } }, other: {} }

/** Changes everything that can be changed, all the way down. */
const spoil = (value: unknown): void => {
  if (typeof value !== "object" || value === null) return
  for (const [key, inner] of Object.entries(value)) {
    spoil(inner)
    Reflect.set(value, key, "spoilt")
  }
}

const shared = (): NewMessage => ({
  id: "a",
  message: {
    role: "assistant",
    content: [
      { type: "text", text: "said", providerOptions: { provider: { list: [1] } } },
      { type: "tool-call", toolCallId: "call", toolName: "look", input: { deep: { list: [1] } } }
    ]
  }
})

/** One case each. */
export const contentCases: ReadonlyArray<Case> = [
  survive("messages of every role with every part survive", [
    { role: "system", content: "Be brief.", providerOptions: options },
    {
      role: "user",
      content: [
        { type: "text", text: "Look:", providerOptions: options },
        { type: "file", data: "iVBORw0KGgo+/w==", mediaType: "image/png", filename: "\u00e9 1.png" },
        {
          type: "file",
          data: new URL("https://example.com/a%20b?c=d&e=%F0%9F%98%80#f"),
          mediaType: "image/*"
        },
        { type: "file", data: "file-id_123", mediaType: "application/pdf", providerOptions: options }
      ],
      providerOptions: options
    },
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "First", providerOptions: options },
        { type: "text", text: "" },
        { type: "tool-call", toolCallId: "a", toolName: "look", input: { at: [1] }, providerExecuted: true },
        { type: "tool-result", toolCallId: "a", toolName: "look", output: { type: "json", value: null } },
        { type: "tool-call", toolCallId: "b", toolName: "look", input: {}, providerExecuted: false },
        { type: "file", data: "AAAA", mediaType: "audio/wav" }
      ]
    },
    {
      role: "tool",
      content: [
        { type: "tool-result", toolCallId: "b", toolName: "l", output: { type: "text", value: text } },
        { type: "tool-result", toolCallId: "c", toolName: "l", output: { type: "error-text", value: "no" } },
        { type: "tool-result", toolCallId: "d", toolName: "l", output: { type: "error-json", value: [1] } },
        {
          type: "tool-result",
          toolCallId: "e",
          toolName: "l",
          output: { type: "content", value: [{ type: "media", data: "AAAA", mediaType: "image/png" }] },
          providerOptions: options
        }
      ]
    },
    { role: "user", content: [] }
  ]),
  survive("signatures of reasoning survive byte for byte", [
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "", providerOptions: { anthropic: { signature } } },
        { type: "reasoning", text: " ", providerOptions: { anthropic: { redactedData: signature } } },
        {
          type: "reasoning",
          text: "thought",
          providerOptions: { openai: { itemId: "rs_1", reasoningEncryptedContent: signature } }
        },
        {
          type: "tool-call",
          toolCallId: "call",
          toolName: "look",
          input: {},
          providerOptions: { google: { thoughtSignature: signature } }
        }
      ]
    }
  ]),
  survive("text survives, whatever is in it", [say("a", text).message, say("b", text, "s").message]),
  survive("JSON survives, however deep it is and however its keys are called", [
    ...json.map(call),
    call(json),
    { role: "system", content: "", providerOptions: { provider: { deep: nested(200) } } }
  ]),
  survive("big texts and files survive", [
    say("a", `begin ${"\ud83d\ude00 words ".repeat(30_000)} end`).message,
    { role: "user", content: [{ type: "file", data: "AbCd".repeat(100_000), mediaType: "video/mp4" }] }
  ]),
  {
    name: "half of a surrogate pair becomes U+FFFD, wherever it is",
    run: comesBack(
      [
        { role: "system", content: "\ud83d and \ude00 and \ud83d\ude00" },
        {
          role: "user",
          content: [{ type: "file", data: "AA==", mediaType: "image/\ud83d", filename: "\ude00.png" }]
        },
        {
          role: "assistant",
          content: [
            { type: "reasoning", text: "\ud83d", providerOptions: { "\ud83d": { "\ude00": ["\ud83d"] } } },
            { type: "tool-call", toolCallId: "\ud83d", toolName: "\ude00", input: { "\ud83d": "\ud83d" } }
          ]
        }
      ],
      [
        { role: "system", content: "\ufffd and \ufffd and \ud83d\ude00" },
        {
          role: "user",
          content: [{ type: "file", data: "AA==", mediaType: "image/\ufffd", filename: "\ufffd.png" }]
        },
        {
          role: "assistant",
          content: [
            { type: "reasoning", text: "\ufffd", providerOptions: { "\ufffd": { "\ufffd": ["\ufffd"] } } },
            { type: "tool-call", toolCallId: "\ufffd", toolName: "\ufffd", input: { "\ufffd": "\ufffd" } }
          ]
        }
      ]
    )
  },
  {
    name: "ids of messages and runs are made well-formed",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      const stored = yield* store.append(id, [
        { ...say("\ud83d", "old"), runId: "\ud83d" },
        say("\ude00", "new")
      ])
      // Both are the same id by now: the last counts, and was said outside of a run.
      yield* same("what append gives", stored[0], stored[1])
      yield* same("the stored messages", yield* store.messages(id), stored.slice(1))
      yield* same("the message", stored[0]?.message, say("\ufffd", "new").message)
      yield* store.append(id, [{ ...say("\udc00", "newest"), runId: "\ud83d" }])
      yield* holds(id, ["\ufffd"])
      yield* same("the run", (yield* store.messages(id))[0]?.runId, "\ufffd")
    })
  },
  {
    name: "values that JSON cannot hold are made safe",
    run: Effect.suspend(() => {
      const circle: { self?: unknown } = {}
      circle.self = circle
      const unsafe = [
        1n,
        Number.NaN,
        -Infinity,
        undefined,
        { gone: undefined, also: () => 1 },
        new Date(0),
        new Uint8Array([1, 2, 255]),
        new Map([["a", 1n]]),
        new Set([1]),
        new TypeError("bad"),
        new URL("https://example.com"),
        circle
      ]
      const safe = [
        "1",
        null,
        null,
        null,
        {},
        "1970-01-01T00:00:00.000Z",
        "AQL/",
        { a: "1" },
        [1],
        { name: "TypeError", message: "bad" },
        "https://example.com/",
        { self: "[Circular]" }
      ]
      const optionsOf = (value: number | null): Message => ({
        role: "system",
        content: "",
        providerOptions: { provider: { value } }
      })
      return comesBack([call(unsafe), optionsOf(Number.NaN)], [call(safe), optionsOf(null)])
    })
  },
  {
    name: "append stores nothing when one of its messages cannot be stored",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      yield* store.append(id, [say("a")])
      const broken = say("c")
      Reflect.set(broken.message, "role", "nobody")
      const append = store.append(id, [say("a", "new"), say("b"), broken, say("d")])
      yield* failsWith("append", "StorageError", append)
      yield* holds(id, ["a"])
      yield* same("the message", (yield* store.messages(id))[0]?.message, say("a").message)
    })
  },
  {
    name: "nothing is shared with whoever gave or got it",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const metadata = { deep: { list: [1] } }
      const opened = yield* freshThread({ metadata })
      const { id, resourceId } = opened
      spoil(metadata)
      spoil(opened)
      const given = shared()
      const stored = yield* at(1000)(store.append(id, [given]))
      spoil(given)
      for (const message of stored) message.createdAt.setTime(0)
      spoil(stored)
      spoil(yield* store.messages(id))
      spoil((yield* store.list({ resourceId })).threads)
      const [message] = yield* store.messages(id)
      const expected = { ...shared(), threadId: id, block: 1, sequence: 1, createdAt: new Date(1000) }
      yield* same("the message", message, expected)
      const { threads } = yield* store.list({ resourceId })
      yield* same("the metadata", threads[0]?.metadata, { deep: { list: [1] } })
      yield* same("the id", threads[0]?.id, id)
    })
  }
]
