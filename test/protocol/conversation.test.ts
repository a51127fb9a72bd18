import type { LanguageModelV4Prompt } from "@ai-sdk/provider"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FastCheck, Predicate, Schema } from "effect"
import type { LanguageModelV2Prompt } from "provider-v2"
import type { LanguageModelV3Prompt } from "provider-v3"
import * as Conversation from "../../src/protocol/Conversation.js"
import { InvalidMessage } from "../../src/protocol/Errors.js"
import * as Message from "../../src/protocol/Message.js"

/** Reads a value of any shape, as JavaScript callers and HTTP bodies bring it. */
const read = (input: unknown) => Conversation.fromInput(input as Conversation.Input)

const refusal = (input: unknown) => Effect.flip(read(input))

const call = (toolCallId: string, more: object = {}) => ({
  type: "tool-call",
  toolCallId,
  toolName: "look",
  input: { q: toolCallId },
  ...more
})

const result = (toolCallId: string, more: object = {}) => ({
  type: "tool-result",
  toolCallId,
  toolName: "look",
  output: { type: "text", value: `of ${toolCallId}` },
  ...more
})

const text = (value: string) => ({ type: "text", text: value })

const assistant = (...content: ReadonlyArray<object>) => ({ role: "assistant", content })

const tool = (...content: ReadonlyArray<object>) => ({ role: "tool", content })

const userSays = (value: string) => ({ role: "user", content: [text(value)] })

describe("texts", () => {
  it.effect("a string is a message of the user, whitespace included", () =>
    Effect.gen(function* () {
      expect(yield* Conversation.fromInput("hello")).toEqual([userSays("hello")])
      expect(yield* Conversation.fromInput(" \n")).toEqual([userSays(" \n")])
    })
  )

  it.effect("an array of strings is one message each, empty ones left out", () =>
    Effect.gen(function* () {
      expect(yield* Conversation.fromInput(["a", "", "b"])).toEqual([userSays("a"), userSays("b")])
    })
  )

  it.effect("lone surrogates are replaced, emoji stay", () =>
    Effect.gen(function* () {
      expect(yield* Conversation.fromInput("a\ud83db😀")).toEqual([userSays("a\ufffdb😀")])
    })
  )

  it.effect("reads nothing behind the first fault", () =>
    Effect.gen(function* () {
      const unread = new Proxy(
        {},
        { get: () => expect.fail("It was read."), has: () => expect.fail("It was read.") }
      )
      const error = yield* Effect.flip(read([{ role: "user", content: "a" }, 1, unread]))
      expect(error.path).toBe("[1]")
    })
  )

  it.effect.each<unknown>([
    "",
    [],
    [""],
    { role: "user", content: "" },
    [{ role: "assistant", content: [] }]
  ])("%j says nothing and is refused", input =>
    Effect.gen(function* () {
      const error = yield* refusal(input)
      expect(error).toBeInstanceOf(InvalidMessage)
      expect(error.path).toBe("")
      expect(error.message).toContain("nothing to say")
    })
  )
})

describe("model messages", () => {
  it.effect("string contents become one text part; system stays a string", () =>
    Effect.gen(function* () {
      expect(
        yield* read([
          { role: "system", content: "rules" },
          { role: "user", content: "hi" },
          { role: "assistant", content: "yes" }
        ])
      ).toEqual([{ role: "system", content: "rules" }, userSays("hi"), assistant(text("yes"))])
    })
  )

  it.effect("a single message and a mixed array are read", () =>
    Effect.gen(function* () {
      expect(yield* Conversation.fromInput({ role: "user", content: "hi" })).toEqual([userSays("hi")])
      expect(
        yield* Conversation.fromInput([
          "one",
          { role: "user", content: "two" },
          { id: "3", role: "user", parts: [{ type: "text", text: "three" }] }
        ])
      ).toEqual([userSays("one"), userSays("two"), userSays("three")])
    })
  )

  it.effect("our own messages come out as they went in", () =>
    Effect.gen(function* () {
      const messages: ReadonlyArray<Message.Message> = [
        Message.system("rules"),
        {
          role: "user",
          content: [
            {
              type: "text",
              text: "see",
              providerOptions: { anthropic: { cacheControl: { type: "ephemeral" } } }
            },
            { type: "file", data: "aGk=", mediaType: "text/plain", filename: "hi.txt" },
            { type: "file", data: new URL("https://example.com/a.png"), mediaType: "image/png" }
          ],
          providerOptions: { openai: { store: false } }
        },
        {
          role: "assistant",
          content: [
            { type: "reasoning", text: "", providerOptions: { openai: { encrypted: "gAAAA+/=" } } },
            { type: "text", text: "looking" },
            { type: "tool-call", toolCallId: "a", toolName: "look", input: { q: [1, null] } },
            { type: "tool-call", toolCallId: "s", toolName: "search", input: {}, providerExecuted: true },
            { type: "tool-result", toolCallId: "s", toolName: "search", output: { type: "json", value: [1] } }
          ]
        },
        {
          role: "tool",
          content: [
            {
              type: "tool-result",
              toolCallId: "a",
              toolName: "look",
              output: { type: "content", value: [{ type: "text", text: "found" }] },
              providerOptions: { x: { y: 1 } }
            }
          ],
          providerOptions: { anthropic: { mark: true } }
        },
        { role: "assistant", content: [{ type: "text", text: "done" }] }
      ]
      expect(yield* Conversation.fromInput(messages)).toEqual(messages)
    })
  )

  it.effect("older words are read: args, result, isError, mimeType", () =>
    Effect.gen(function* () {
      const older = (id: string, more: object) => ({
        type: "tool-result",
        toolCallId: id,
        toolName: "look",
        ...more
      })
      expect(
        yield* read([
          { role: "user", content: [{ type: "file", data: "aGk=", mimeType: "text/plain" }] },
          assistant(
            ...["a", "b", "c"].map(id => ({
              type: "tool-call",
              toolCallId: id,
              toolName: "look",
              args: { id }
            }))
          ),
          tool(older("a", { result: "ok" }), older("b", { result: { n: 1n } })),
          tool(older("c", { result: "no", isError: true }))
        ])
      ).toEqual([
        { role: "user", content: [{ type: "file", data: "aGk=", mediaType: "text/plain" }] },
        assistant(...["a", "b", "c"].map(id => call(id, { input: { id } }))),
        tool(
          result("a", { output: { type: "text", value: "ok" } }),
          result("b", { output: { type: "json", value: { n: "1" } } }),
          result("c", { output: { type: "error-text", value: "no" } })
        )
      ])
    })
  )

  it.effect("a denied call is an error to the model", () =>
    Effect.gen(function* () {
      const denied = (reason?: string) => [
        assistant(call("a")),
        tool(result("a", { output: { type: "execution-denied", reason } }))
      ]
      expect(yield* read(denied("too costly"))).toEqual([
        assistant(call("a")),
        tool(result("a", { output: { type: "error-text", value: "too costly" } }))
      ])
      const [, second] = yield* read(denied())
      expect(second).toMatchObject({
        content: [{ output: { type: "error-text", value: expect.stringContaining("denied") } }]
      })
    })
  )

  it.effect("values that JSON cannot hold are made safe, undefined options are absent", () =>
    Effect.gen(function* () {
      const cyclic: Record<string, unknown> = {}
      cyclic["self"] = cyclic
      expect(
        yield* read([
          {
            role: "user",
            content: [{ type: "text", text: "hi", providerOptions: { x: { gone: undefined, big: 2n } } }],
            providerOptions: undefined
          },
          assistant(call("a", { input: cyclic, providerOptions: {} })),
          tool(result("a", { output: { type: "json", value: new Map([["k", Number.NaN]]) } }))
        ])
      ).toEqual([
        { role: "user", content: [{ type: "text", text: "hi", providerOptions: { x: { big: "2" } } }] },
        assistant(call("a", { input: { self: "[Circular]" } })),
        tool(result("a", { output: { type: "json", value: { k: null } } }))
      ])
    })
  )

  it.effect("empty texts stay only for their options; parts that a prompt cannot hold are left out", () =>
    Effect.gen(function* () {
      const signed = { type: "reasoning", text: "", providerOptions: { anthropic: { redactedData: "x" } } }
      expect(
        yield* read([
          { role: "system", content: "" },
          { role: "user", content: [text(""), text("hi")] },
          assistant(
            { type: "reasoning", text: "" },
            signed,
            text(""),
            { type: "custom", kind: "openai.compaction" },
            { type: "tool-approval-request", approvalId: "1", toolCallId: "z" },
            text("yes")
          ),
          tool({ type: "tool-approval-response", approvalId: "1", approved: true })
        ])
      ).toEqual([userSays("hi"), assistant(signed, text("yes"))])
    })
  )
})

describe("files", () => {
  const bytes = new Uint8Array([0, 104, 105, 0]).subarray(1, 3)
  const url = new URL("https://example.com/a.png")

  const cases: ReadonlyArray<readonly [string, unknown, string | URL]> = [
    ["base64", "aGk=", "aGk="],
    ["an opaque id", "file-abc_1", "file-abc_1"],
    ["a base64 data URL", "data:image/png;base64,aGk=", "aGk="],
    ["a data URL with an escaped =", "data:image/png;base64,aGk%3D", "aGk="],
    ["a text data URL", "data:,h%69", "aGk="],
    ["a data URL object", new URL("data:image/png;base64,aGk="), "aGk="],
    ["a URL string", url.href, url],
    ["another scheme", "gs://bucket/a.png", new URL("gs://bucket/a.png")],
    ["a URL", url, url],
    ["a view on bytes", bytes, "aGk="],
    ["a Buffer", Buffer.from("hi"), "aGk="],
    ["an ArrayBuffer", bytes.slice().buffer, "aGk="],
    ["tagged data", { type: "data", data: bytes }, "aGk="],
    ["a tagged URL", { type: "url", url: url.href }, url],
    ["tagged text", { type: "text", text: "hi" }, "aGk="]
  ]

  it.effect.each(cases)("%s, as a file and as an image", ([, data, expected]) =>
    Effect.gen(function* () {
      const file = { type: "file", data: expected, mediaType: "image/png" }
      const given = [
        { type: "file", data, mediaType: "image/png" },
        { type: "image", image: data, mediaType: "image/png" }
      ]
      expect(yield* read([{ role: "user", content: given }])).toEqual([
        { role: "user", content: [file, file] }
      ])
    })
  )

  it.effect("the media type of an image: what is told, else the data URL's, else image/*", () =>
    Effect.gen(function* () {
      const [message] = yield* read({
        role: "user",
        content: [
          { type: "image", image: "data:image/png;base64,aGk=", mimeType: "image/webp" },
          { type: "image", image: "data:image/png;base64,aGk=" },
          { type: "image", image: "aGk=" },
          { type: "file", data: "data:image/gif;base64,aGk=" }
        ]
      })
      const types =
        message?.role === "user" ? message.content.map(part => part.type === "file" && part.mediaType) : []
      expect(types).toEqual(["image/webp", "image/png", "image/*", "image/gif"])
    })
  )

  it.effect.each([
    ["http://"],
    ["data:image/png"],
    ["data:,%E0%A4%A"],
    [5],
    [null],
    [undefined],
    [{ openai: "file-1" }],
    [{ type: "data", data: 5 }],
    [{ type: "reference", reference: { openai: "file-1" } }],
    [new Blob(["hi"])]
  ])("%s is no file: refused with its place and the remedy", ([data]) =>
    Effect.gen(function* () {
      const error = yield* refusal([
        "hi",
        "ho",
        { role: "user", content: [{ type: "file", data, mediaType: "a/b" }] }
      ])
      expect(error.path).toBe("[2].content[0].data")
      expect(error.message).toContain("base64 text")
    })
  )
})

describe("calls and outcomes", () => {
  it.effect(
    "calls without an outcome and outcomes without a call are left out, with what becomes empty",
    () =>
      Effect.gen(function* () {
        expect(
          yield* read([
            "go",
            assistant(text("first"), call("a"), call("b")),
            tool(result("b"), result("nobody")),
            assistant({ type: "reasoning", text: "hm" }, call("c")),
            assistant(
              { type: "reasoning", text: "hm" },
              text("so"),
              { type: "reasoning", text: "hm" },
              call("d")
            ),
            tool(result("e")),
            "on"
          ])
        ).toEqual([
          userSays("go"),
          assistant(text("first"), call("b")),
          tool(result("b")),
          assistant({ type: "reasoning", text: "hm" }, text("so")),
          userSays("on")
        ])
      })
  )

  it.effect("outcomes stand right behind their calls, in call order, in one message", () =>
    Effect.gen(function* () {
      expect(
        yield* read([
          assistant(call("a"), call("b"), call("c")),
          { ...tool(result("c")), providerOptions: { x: { one: 1 } } },
          "meanwhile",
          { ...tool(result("a"), result("b")), providerOptions: { y: { two: 2 } } }
        ])
      ).toEqual([
        assistant(call("a"), call("b"), call("c")),
        {
          ...tool(result("a"), result("b"), result("c")),
          providerOptions: { x: { one: 1 }, y: { two: 2 } }
        },
        userSays("meanwhile")
      ])
    })
  )

  it.effect("a call id that is used again has its own outcome; a second outcome is left out", () =>
    Effect.gen(function* () {
      const first = result("a", { output: { type: "text", value: "1" } })
      const second = result("a", { output: { type: "text", value: "2" } })
      const again = call("a", { toolName: "other" })
      expect(
        yield* read([assistant(call("a")), tool(first), tool(second), assistant(again), tool(second)])
      ).toEqual([assistant(call("a")), tool(first), assistant(again), tool({ ...second, toolName: "other" })])
    })
  )

  it.effect("an outcome before its call is not its outcome", () =>
    Effect.gen(function* () {
      expect(yield* read(["go", tool(result("a")), assistant(call("a"))])).toEqual([userSays("go")])
    })
  )

  it.effect("a result of no call inside an answer is left out and ends nothing", () =>
    Effect.gen(function* () {
      expect(yield* read([assistant(text("a"), result("nobody"), text("b"))])).toEqual([
        assistant(text("a"), text("b"))
      ])
    })
  )

  it.effect("our outcome inside an answer ends it; a provider's own stays where it was told", () =>
    Effect.gen(function* () {
      const theirs = call("s", { providerExecuted: true })
      expect(
        yield* read([assistant(call("a"), result("a"), text("so")), assistant(theirs, text("wait"))])
      ).toEqual([assistant(call("a")), tool(result("a")), assistant(text("so")), assistant(text("wait"))])
      expect(yield* read([assistant(theirs, text("wait"), result("s"), text("so"))])).toEqual([
        assistant(theirs, text("wait"), result("s"), text("so"))
      ])
      expect(yield* read([assistant(theirs, call("a")), tool(result("a")), assistant(result("s"))])).toEqual([
        assistant(theirs, call("a")),
        tool(result("a")),
        assistant(result("s"))
      ])
    })
  )

  const ours = FastCheck.constantFrom("a", "b", "c")
  const theirs = FastCheck.constantFrom("s", "t")
  const anyResult = FastCheck.oneof(ours, theirs).map(id => result(id))
  const part = FastCheck.oneof(
    FastCheck.constantFrom(text("t"), text(""), { type: "reasoning", text: "r" }),
    ours.map(id => call(id)),
    theirs.map(id => call(id, { providerExecuted: true })),
    anyResult
  )
  const message = FastCheck.oneof(
    FastCheck.constantFrom(userSays("u"), { role: "system", content: "s" }),
    FastCheck.array(part, { maxLength: 5 }).map(parts => assistant(...parts)),
    FastCheck.array(anyResult, { maxLength: 3 }).map(results => tool(...results))
  )

  const idsOf = (message: Message.Message | undefined, type: "tool-call" | "tool-result", from: string) =>
    message?.role === "assistant" || message?.role === "tool"
      ? message.content.flatMap(part =>
          part.type === type && from.includes(part.toolCallId) ? [part.toolCallId] : []
        )
      : []

  /** Texts of all messages, in order. */
  const texts = (messages: ReadonlyArray<{ readonly content: unknown }>) =>
    messages
      .flatMap(
        ({ content }): ReadonlyArray<unknown> => (Array.isArray(content) ? content : [text(String(content))])
      )
      .filter(part => Predicate.hasProperty(part, "type") && part.type === "text")
      .filter(part => !Predicate.hasProperty(part, "text") || part.text !== "")

  it.effect.prop(
    "whatever is cut off where: well formed, in order, and read again the same",
    [FastCheck.array(message, { maxLength: 8 })],
    ([messages]) =>
      Effect.gen(function* () {
        // The first text keeps the input from being refused as empty.
        const settled = yield* read(["begin", ...messages])
        expect(Schema.is(Schema.Array(Message.Message))(settled)).toBe(true)
        expect(yield* read(settled)).toEqual(settled)
        expect(texts(settled)).toEqual([text("begin"), ...texts(messages)])
        const open = new Map<string, number>()
        settled.forEach((one, index) => {
          expect(one.content.length).toBeGreaterThan(0)
          // Our outcomes: all of an answer's calls, in call order, in the message right behind it, and nowhere else.
          if (one.role === "assistant") {
            expect(idsOf(settled[index + 1], "tool-result", "abc")).toEqual(idsOf(one, "tool-call", "abc"))
            expect(idsOf(one, "tool-result", "abc")).toEqual([])
          }
          if (one.role === "tool") expect(settled[index - 1]?.role).toBe("assistant")
          // Any call is answered once, later.
          if (one.role !== "assistant" && one.role !== "tool") return
          for (const inner of one.content) {
            if (inner.type !== "tool-call" && inner.type !== "tool-result") continue
            const before = open.get(inner.toolCallId) ?? 0
            open.set(inner.toolCallId, before + (inner.type === "tool-call" ? 1 : -1))
            expect(open.get(inner.toolCallId)).toBe(inner.type === "tool-call" ? 1 : 0)
          }
        })
        expect([...open.values()].every(count => count === 0)).toBe(true)
      }),
    { fastCheck: { numRuns: 300 } }
  )
})

describe("wrong shapes", () => {
  const cases: ReadonlyArray<readonly [unknown, string, string]> = [
    [5, "", "The message is a number"],
    [null, "", "The message is null"],
    [["a", 7], "[1]", "[1] is a number"],
    [[["nested"]], "[0]", "[0] is an array"],
    [{}, "role", "role is missing"],
    [
      [{ role: "developer", content: "x" }],
      "[0].role",
      '[0].role is "developer". Give "system", "user", "assistant" or "tool"'
    ],
    [[{ role: "user" }], "[0].content", "[0].content is missing"],
    [{ role: "user", content: 5 }, "content", "content is a number"],
    [{ role: "system", content: [text("x")] }, "content", "not for role system"],
    [{ role: "tool", content: "x" }, "content", "not for role tool"],
    [
      ["x", { role: "user", content: [text("a"), { type: "text", text: 5 }] }],
      "[1].content[1].text",
      "is a number. Give a string"
    ],
    [{ role: "user", content: ["x"] }, "content[0]", 'content[0] is "x". Give a part'],
    [{ role: "user", content: [{ type: "image_url" }] }, "content[0].type", '"image_url"'],
    [{ role: "user", content: [call("a")] }, "content[0].type", "image (user)"],
    [{ role: "user", content: [{ type: "file", data: "aGk=" }] }, "content[0].mediaType", '"image/png"'],
    [assistant({ type: "tool-call", toolName: "x" }), "content[0].toolCallId", "is missing. Give a string"],
    [
      assistant(call("a"), { type: "tool-result", toolCallId: "a" }),
      "content[1].output",
      "is missing. Give the outcome"
    ],
    [
      tool(result("a", { output: { type: "text", value: 5 } })),
      "content[0].output.value",
      "Give the outcome"
    ],
    [tool(result("a", { output: "bare" })), "content[0].output", "Give the outcome"],
    [
      { role: "user", content: "x", providerOptions: { openai: 5 } },
      "providerOptions.openai",
      "per provider name"
    ],
    [{ id: "1", role: "tool", parts: [] }, "role", '"tool"'],
    [{ id: "1", role: "user", parts: [{ type: "text" }] }, "parts[0].text", "is missing"],
    [
      { id: "1", role: "user", parts: [{ type: "file", url: "a b:", mediaType: "x/y" }] },
      "parts[0].url",
      "base64 text"
    ],
    [{ id: "1", role: "assistant", parts: [{ type: "video" }] }, "parts[0].type", '"video"'],
    [
      { id: "1", role: "assistant", parts: [{ type: "tool-x", state: "output-available" }] },
      "parts[0].toolCallId",
      "is missing"
    ],
    [
      { id: "1", role: "assistant", parts: [{ type: "tool-x", toolCallId: "a", state: "half" }] },
      "parts[0].state",
      '"half"'
    ]
  ]

  it.effect.each(cases)("%j", ([input, path, message]) =>
    Effect.gen(function* () {
      const error = yield* refusal(input)
      expect(error._tag).toBe("InvalidMessage")
      expect(error.path).toBe(path)
      expect(error.message).toContain(message)
    })
  )

  it.effect("a refusal repeats no content at length", () =>
    Effect.gen(function* () {
      const error = yield* refusal({ role: "x".repeat(100_000), content: "hi" })
      expect(error.message.length).toBeLessThan(300)
    })
  )
})

describe("UI messages", () => {
  const uiTool = (toolCallId: string, state: string, more: object = {}) => ({
    type: "tool-look",
    toolCallId,
    state,
    input: { q: toolCallId },
    ...more
  })
  const done = (id: string) => uiTool(id, "output-available", { output: `of ${id}` })
  const step = { type: "step-start" }
  const answer = (...parts: ReadonlyArray<object>) => ({ id: "m1", role: "assistant", parts })

  it.effect("steps are split; each call has its outcome behind it", () =>
    Effect.gen(function* () {
      expect(
        yield* read([
          {
            id: "u1",
            role: "user",
            parts: [text("hi"), { type: "file", url: "data:a/b;base64,aGk=", mediaType: "a/b" }]
          },
          answer(
            step,
            {
              type: "reasoning",
              text: "hm",
              state: "done",
              providerMetadata: { anthropic: { signature: "s+/=" } }
            },
            { ...text("looking"), state: "done" },
            done("a"),
            done("b"),
            { type: "source-url", sourceId: "1", url: "https://example.com" },
            { type: "data-note", data: 1 },
            step,
            uiTool("c", "output-error", { errorText: "broke", input: undefined, rawInput: "{" }),
            { ...done("d"), type: "dynamic-tool", toolName: "free", output: { n: 1 } },
            step,
            text("done")
          )
        ])
      ).toEqual([
        { role: "user", content: [text("hi"), { type: "file", data: "aGk=", mediaType: "a/b" }] },
        assistant(
          { type: "reasoning", text: "hm", providerOptions: { anthropic: { signature: "s+/=" } } },
          text("looking"),
          call("a"),
          call("b")
        ),
        tool(result("a"), result("b")),
        assistant(call("c", { input: "{" }), call("d", { toolName: "free" })),
        tool(
          result("c", { output: { type: "error-text", value: "broke" } }),
          result("d", { toolName: "free", output: { type: "json", value: { n: 1 } } })
        ),
        assistant(text("done"))
      ])
    })
  )

  it.effect.each(["input-streaming", "input-available", "approval-requested", "approval-responded"])(
    "a call in state %s is left out",
    state =>
      Effect.gen(function* () {
        expect(yield* read([answer(step, text("so"), uiTool("a", state), done("b"))])).toEqual([
          assistant(text("so"), call("b")),
          tool(result("b"))
        ])
      })
  )

  it.effect("a preliminary output is no outcome, a missing output is null, a denial is an error", () =>
    Effect.gen(function* () {
      expect(
        yield* read([
          answer(
            { ...done("a"), preliminary: true },
            uiTool("b", "output-available"),
            uiTool("c", "output-denied", { approval: { id: "1", approved: false, reason: "no" } })
          )
        ])
      ).toEqual([
        assistant(call("b"), call("c")),
        tool(
          result("b", { output: { type: "json", value: null } }),
          result("c", { output: { type: "error-text", value: "no" } })
        )
      ])
    })
  )

  it.effect("what the provider executed stays inside the answer; metadata of calls and results is kept", () =>
    Effect.gen(function* () {
      const meta = (n: number) => ({ openai: { n } })
      expect(
        yield* read([
          answer({
            ...done("a"),
            providerExecuted: true,
            callProviderMetadata: meta(1),
            resultProviderMetadata: meta(2)
          })
        ])
      ).toEqual([
        assistant(
          call("a", { providerExecuted: true, providerOptions: meta(1) }),
          result("a", { providerOptions: meta(2) })
        )
      ])
    })
  )

  it.effect("the texts of a system message are one text", () =>
    Effect.gen(function* () {
      expect(yield* read([{ id: "s", role: "system", parts: [text("a"), text("b")] }])).toEqual([
        Message.system("ab")
      ])
    })
  )
})

describe("UI messages of version 4", () => {
  const read = (parts: ReadonlyArray<Conversation.UIPartInput>) =>
    Effect.runPromise(
      Conversation.fromInput([
        { role: "user", content: "go" },
        { id: "m", role: "assistant", parts }
      ])
    )

  const invocation = (toolInvocation: object) => ({
    type: "tool-invocation" as const,
    toolInvocation: { state: "result", toolCallId: "c1", toolName: "look", ...toolInvocation }
  })

  it("tell calls, reasoning and files in their own words", async () => {
    const prompt = await read([
      { type: "step-start" },
      { type: "reasoning", reasoning: "Hm.", details: [{ type: "text", text: "Hm." }] },
      { type: "text", text: "Look:" },
      { type: "source" },
      { type: "file", mimeType: "image/png", data: "AAAA" },
      invocation({ args: { at: 1 }, result: { found: true } }),
      invocation({ toolCallId: "c2", args: { at: 2 }, result: "No.", isError: true })
    ])
    expect(prompt.slice(1)).toStrictEqual([
      {
        role: "assistant",
        content: [
          { type: "reasoning", text: "Hm." },
          { type: "text", text: "Look:" },
          { type: "file", data: "AAAA", mediaType: "image/png" },
          { type: "tool-call", toolCallId: "c1", toolName: "look", input: { at: 1 } },
          { type: "tool-call", toolCallId: "c2", toolName: "look", input: { at: 2 } }
        ]
      },
      {
        role: "tool",
        content: [
          {
            type: "tool-result",
            toolCallId: "c1",
            toolName: "look",
            output: { type: "json", value: { found: true } }
          },
          {
            type: "tool-result",
            toolCallId: "c2",
            toolName: "look",
            output: { type: "error-text", value: "No." }
          }
        ]
      }
    ])
  })

  it("leave out a call without a result, unless a message behind them has it", async () => {
    const open = invocation({ state: "call", args: {} })
    expect(await read([{ type: "text", text: "Look:" }, open])).toHaveLength(2)
    const prompt = await Effect.runPromise(
      Conversation.fromInput([
        { role: "assistant", parts: [open] },
        { role: "tool", content: [{ type: "tool-result", toolCallId: "c1", result: 1 }] }
      ])
    )
    expect(prompt.map(({ role }) => role)).toEqual(["assistant", "tool"])
  })

  it("are refused at the place that is wrong", async () => {
    const wrong = { type: "tool-invocation", toolInvocation: { state: "result", toolName: "look" } }
    const input = { role: "assistant", parts: [{ type: "text", text: "Hm." }, wrong] }
    const error = await Effect.runPromise(Effect.flip(Conversation.fromInput(input as never)))
    expect(error.path).toBe("parts[1].toolCallId")
  })
})

describe("toUIMessage", () => {
  const run: ReadonlyArray<Message.Message> = [
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "hm", providerOptions: { anthropic: { signature: "s+/=" } } },
        { type: "text", text: "look" },
        { type: "file", data: "aGk=", mediaType: "text/plain", filename: "a.txt" },
        { type: "file", data: new URL("https://example.com/a.png"), mediaType: "image/png" },
        {
          type: "tool-call",
          toolCallId: "a",
          toolName: "look",
          input: { q: 1 },
          providerOptions: { x: { y: 1 } }
        },
        { type: "tool-call", toolCallId: "b", toolName: "look", input: {} },
        { type: "tool-call", toolCallId: "s", toolName: "search", input: {}, providerExecuted: true },
        { type: "tool-result", toolCallId: "s", toolName: "search", output: { type: "json", value: [1] } }
      ]
    },
    {
      role: "tool",
      content: [
        {
          type: "tool-result",
          toolCallId: "a",
          toolName: "look",
          output: { type: "json", value: { n: 1 } },
          providerOptions: { x: { z: 2 } }
        },
        {
          type: "tool-result",
          toolCallId: "b",
          toolName: "look",
          output: { type: "error-text", value: "broke" }
        }
      ]
    },
    { role: "assistant", content: [{ type: "text", text: "done" }] }
  ]

  it("folds a run into one message", () => {
    expect(Conversation.toUIMessage([Message.user("not mine"), ...run], "m1")).toEqual({
      id: "m1",
      role: "assistant",
      parts: [
        { type: "step-start" },
        {
          type: "reasoning",
          text: "hm",
          state: "done",
          providerMetadata: { anthropic: { signature: "s+/=" } }
        },
        { type: "text", text: "look", state: "done" },
        { type: "file", mediaType: "text/plain", url: "data:text/plain;base64,aGk=", filename: "a.txt" },
        { type: "file", mediaType: "image/png", url: "https://example.com/a.png" },
        {
          type: "tool-look",
          toolCallId: "a",
          state: "output-available",
          input: { q: 1 },
          output: { n: 1 },
          callProviderMetadata: { x: { y: 1 } },
          resultProviderMetadata: { x: { z: 2 } }
        },
        { type: "tool-look", toolCallId: "b", state: "output-error", input: {}, errorText: "broke" },
        {
          type: "tool-search",
          toolCallId: "s",
          state: "output-available",
          input: {},
          output: [1],
          providerExecuted: true
        },
        { type: "step-start" },
        { type: "text", text: "done", state: "done" }
      ]
    })
  })

  it("a call without an outcome is available, an error of JSON is its text", () => {
    const parts = Conversation.toUIMessage(
      [
        {
          role: "assistant",
          content: [
            { type: "tool-call", toolCallId: "a", toolName: "look", input: {} },
            { type: "tool-call", toolCallId: "b", toolName: "look", input: {} }
          ]
        },
        {
          role: "tool",
          content: [
            {
              type: "tool-result",
              toolCallId: "b",
              toolName: "look",
              output: { type: "error-json", value: { code: 1 } }
            }
          ]
        }
      ],
      "m1"
    ).parts
    expect(parts[1]).toEqual({ type: "tool-look", toolCallId: "a", state: "input-available", input: {} })
    expect(parts[2]).toMatchObject({ state: "output-error", errorText: '{"code":1}' })
  })

  it.effect("reads back as the same messages", () =>
    Effect.gen(function* () {
      expect(yield* Conversation.fromInput(Conversation.toUIMessage(run, "m1"))).toEqual(run)
    })
  )
})

// Checked by the compiler: what the AI SDK calls a prompt is an input as it is.
it.effect("prompts of the AI SDK's specifications are inputs", () =>
  Effect.gen(function* () {
    const v2: LanguageModelV2Prompt = [
      { role: "user", content: [{ type: "file", data: new Uint8Array([104, 105]), mediaType: "text/plain" }] }
    ]
    const v3: LanguageModelV3Prompt = [
      { role: "user", content: [{ type: "file", data: "aGk=", mediaType: "text/plain" }] }
    ]
    const v4: LanguageModelV4Prompt = [
      {
        role: "user",
        content: [{ type: "file", data: { type: "data", data: "aGk=" }, mediaType: "text/plain" }]
      }
    ]
    const inputs: ReadonlyArray<Conversation.Input> = [v2, v3, v4]
    const file = { type: "file", data: "aGk=", mediaType: "text/plain" }
    for (const input of inputs) {
      expect(yield* Conversation.fromInput(input)).toEqual([{ role: "user", content: [file] }])
    }
  })
)
