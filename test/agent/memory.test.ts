/** Threads: what a run recalls and stores, in which order and when, and what the next turn is told of it. */
import { describe, expect, it } from "@effect/vitest"
import {
  Agent,
  type Chunk,
  type Conversation,
  type LanguageModel,
  type Message,
  type ModelPart,
  ThreadStore,
  Tool
} from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Clock, Effect, Option, Stream } from "effect"
import { expectGrammar } from "../support/grammar.js"
import { call, chunksOf, finish, finishOf, modelOf, only, read, textOf } from "./kit.js"
import {
  counting,
  ends,
  expectPrompt,
  memory,
  messagesOf,
  nextPrompt,
  reply,
  rolesOf,
  says,
  stored,
  text,
  textIn,
  toolCall,
  whole
} from "./memoryKit.js"

const { layerMemory, ThreadStore: Threads } = ThreadStore

const agentOf = <const Tools extends ReadonlyArray<Tool.Any> = []>(
  model: LanguageModel.LanguageModel,
  tools?: Tools,
  more: Omit<Agent.Options<Tools>, "id" | "model" | "tools"> = {}
) => Agent.make({ id: "keeper", model, ...(tools === undefined ? {} : { tools }), ...more })

const echo = Tool.make("echo", { input: { type: "object" }, execute: args => Effect.succeed(args) })

/** Executed by the client. */
const pick = Tool.make("pick", { input: { type: "object" } })

const user = (content: string): Message.Message => ({
  role: "user",
  content: [{ type: "text", text: content }]
})
const assistant = (content: string): Message.Message => ({
  role: "assistant",
  content: [{ type: "text", text: content }]
})

/** One turn of the thread: this input, and this answer. */
const say = (input: Conversation.Input, answer: string, of: typeof memory = memory) =>
  Agent.generate(agentOf(ScriptedModel.make([reply(answer)])), input, { memory: of })

/** Turns `u1`, `a1`, `u2`, `a2`, … */
const talk = (count: number) =>
  Effect.forEach(
    Array.from({ length: count }, (_, index) => index + 1),
    turn => say(`u${turn}`, `a${turn}`),
    { discard: true }
  )

const textsOf = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<string> =>
  messages.map(message => textIn([message]))

/** A model whose calls are answered by these, in order, each with a look at the store first. */
const looking = (
  answers: ReadonlyArray<
    (request: LanguageModel.ModelRequest) => Effect.Effect<ReadonlyArray<ModelPart.ModelPart>>
  >
): LanguageModel.LanguageModel & { readonly asked: () => number } => {
  let asked = 0
  return {
    provider: "kit",
    modelId: "looking",
    asked: () => asked,
    answer: request =>
      Effect.suspend(() => {
        const answer = answers[asked++]
        if (answer === undefined) throw new Error("One call too many")
        return Effect.map(answer(request), parts => ({
          source: (async function* () {
            yield* parts
          })(),
          normalize: (part: unknown) => part as ModelPart.ModelPart
        }))
      })
  }
}

describe("a run with a thread", () => {
  it.effect("makes the thread and stores what was said before it asks the model", () =>
    Effect.gen(function* () {
      const store = yield* Threads
      let seen: ReadonlyArray<Message.Message> = []
      const model = looking([
        request =>
          Effect.gen(function* () {
            seen = (yield* Effect.orDie(store.messages("t1"))).map(({ message }) => message)
            expect(request.messages).toStrictEqual(seen)
            return reply("hello")
          })
      ])
      yield* Agent.generate(agentOf(model), "hi", { memory })
      expect(seen).toStrictEqual([user("hi")])
      expect(Option.getOrThrow(yield* store.get("t1"))).toMatchObject({ id: "t1", resourceId: "u1" })
      expect(yield* messagesOf()).toStrictEqual([user("hi"), assistant("hello")])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("opens the thread before it reads or writes messages, and asks for nothing else", () =>
    Effect.gen(function* () {
      const { calls, layer } = counting()
      const model = ScriptedModel.make([[toolCall("c1", "echo", {}), ends("tool-calls")], reply("done")])
      yield* Effect.provide(Agent.generate(agentOf(model, [echo]), "hi", { memory }), layer)
      expect(calls).toStrictEqual(["open", "startRun", "messages", "append", "append", "append"])
    })
  )

  it.effect("stores each step before its step-finish is read", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        [...text("one"), toolCall("c1", "echo", { n: 1 }), ends("tool-calls")],
        [...text("two"), toolCall("c2", "echo", { n: 2 }), ends("tool-calls")],
        reply("three")
      ])
      const held: Array<ReadonlyArray<string>> = []
      const store = yield* Threads
      const { chunks } = yield* read(Agent.stream(agentOf(model, [echo]), "go", { memory }), chunk =>
        chunk.type === "step-finish"
          ? Effect.map(Effect.orDie(store.messages("t1")), messages => {
              held.push(rolesOf(messages.map(({ message }) => message)))
            })
          : Effect.void
      )
      expectGrammar(chunks)
      expect(held).toStrictEqual([
        ["user", "assistant", "tool"],
        ["user", "assistant", "tool", "assistant", "tool"],
        ["user", "assistant", "tool", "assistant", "tool", "assistant"]
      ])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("knows whose messages they are: the run's id, and ids that begin with that of its answer", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([[toolCall("c1", "echo", {}), ends("tool-calls")], reply("done")])
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, [echo]), "go", { memory, runId: "r1" }))
      const messageId = only(chunks, "start")[0]?.payload.messageId
      const held = yield* stored()
      expect(held.map(({ runId }) => runId)).toStrictEqual(["r1", "r1", "r1", "r1"])
      expect(held.slice(1).map(({ id }) => id)).toStrictEqual([messageId, `${messageId}:2`, `${messageId}:3`])
      expect(held.map(({ sequence }) => sequence)).toStrictEqual([1, 2, 3, 4])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("gives title and metadata to a thread that it makes, and leaves them to one that is there", () =>
    Effect.gen(function* () {
      const store = yield* Threads
      const first = { id: "t1", title: "Trip", metadata: { kind: "travel" } }
      yield* Agent.generate(agentOf(ScriptedModel.make([reply("a")])), "q", {
        memory: { thread: first, resource: "u1" }
      })
      yield* Agent.generate(agentOf(ScriptedModel.make([reply("b")])), "q", {
        memory: { thread: { id: "t1", title: "Other", metadata: {} }, resource: "u1" }
      })
      expect(Option.getOrThrow(yield* store.get("t1"))).toMatchObject({
        title: "Trip",
        metadata: { kind: "travel" }
      })
      expect(yield* stored()).toHaveLength(4)
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("tells its tools which thread it is and whose", () =>
    Effect.gen(function* () {
      const where = Tool.make("where", {
        execute: (_, { resourceId, threadId }) => Effect.succeed([threadId, resourceId])
      })
      const model = ScriptedModel.make([[toolCall("c1", "where", {}), ends("tool-calls")], reply("done")])
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, [where]), "go", { memory }))
      expect(only(chunks, "tool-result")[0]?.payload.result).toStrictEqual(["t1", "u1"])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("leaves other threads alone", () =>
    Effect.gen(function* () {
      yield* say("one", "1")
      yield* Agent.generate(agentOf(ScriptedModel.make([reply("2")])), "two", {
        memory: { thread: "t2", resource: "u1" }
      })
      expect(textsOf(yield* messagesOf("t1"))).toStrictEqual(["one", "1"])
      expect(textsOf(yield* messagesOf("t2"))).toStrictEqual(["two", "2"])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("a run without memory keeps nothing, although there is a store", () =>
    Effect.gen(function* () {
      const { calls, layer } = counting()
      yield* Effect.provide(Agent.generate(agentOf(ScriptedModel.make([reply("a")])), "q"), layer)
      expect(calls).toStrictEqual([])
    })
  )
})

describe("the order of a thread", () => {
  it.effect("is that of appending, also when user, assistant and tool share a millisecond", () =>
    Effect.gen(function* () {
      let executed = 0
      const count = Tool.make("count", { execute: () => Effect.sync(() => ++executed) })
      const model = ScriptedModel.make([
        [toolCall("c1", "count", {}), ends("tool-calls", { inputTokens: 1 })]
      ])
      yield* Effect.exit(Agent.generate(agentOf(model, [count], { maxSteps: 1 }), "go", { memory }))
      const held = yield* stored()
      expect(new Set(held.map(({ createdAt }) => createdAt.getTime()))).toStrictEqual(
        new Set([yield* Clock.currentTimeMillis])
      )
      expect(rolesOf(held.map(({ message }) => message))).toStrictEqual(["user", "assistant", "tool"])
      const next = yield* nextPrompt([])
      expect(rolesOf(next)).toStrictEqual(["user", "assistant", "tool"])
      expect(executed).toBe(1)
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("holds for 80 messages of one tick", () =>
    Effect.gen(function* () {
      let executed = 0
      const count = Tool.make("count", { execute: () => Effect.sync(() => ++executed) })
      const history = Array.from({ length: 40 }, (_, turn) => [
        user(`u${turn}`),
        turn === 39 ? assistant("a39") : assistant(`a${turn}`)
      ]).flat()
      const model = ScriptedModel.make([[toolCall("c1", "count", {}), ends("tool-calls")]])
      const first = agentOf(model, [count], { maxSteps: 1 })
      yield* Agent.generate(first, [...history, "go"], { memory })
      const said = [...history, user("go")]
      expect(model.requests[0]?.messages).toStrictEqual(said)
      const held = yield* messagesOf()
      expect(held.slice(0, -2)).toStrictEqual(said)
      const again = ScriptedModel.make([reply("done")])
      yield* Agent.generate(agentOf(again, [count]), [], { memory })
      const prompt = again.requests[0]?.messages ?? []
      expectPrompt(prompt)
      expect(prompt.at(-2)?.content).toStrictEqual([
        { type: "tool-call", toolCallId: "c1", toolName: "count", input: {} }
      ])
      expect(prompt.at(-1)).toMatchObject({ role: "tool", content: [{ toolCallId: "c1" }] })
      expect(executed).toBe(1)
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("is that of appending when the clock goes backwards", () =>
    Effect.gen(function* () {
      let now = 10_000
      const clock = yield* Effect.clock
      const backwards: Clock.Clock = {
        ...clock,
        [Clock.ClockTypeId]: Clock.ClockTypeId,
        unsafeCurrentTimeMillis: () => (now -= 10),
        currentTimeMillis: Effect.sync(() => (now -= 10)),
        currentTimeNanos: clock.currentTimeNanos,
        unsafeCurrentTimeNanos: () => clock.unsafeCurrentTimeNanos(),
        sleep: duration => clock.sleep(duration)
      }
      yield* Effect.withClock(talk(4), backwards)
      const held = yield* stored()
      expect(held[0]?.createdAt.getTime()).toBeGreaterThan(held.at(-1)?.createdAt.getTime() ?? 0)
      expect(textsOf(yield* nextPrompt())).toStrictEqual([
        "u1",
        "a1",
        "u2",
        "a2",
        "u3",
        "a3",
        "u4",
        "a4",
        "next"
      ])
    }).pipe(Effect.provide(layerMemory))
  )
})

describe("what was streamed is what is stored", () => {
  it.effect("parts stand in the order of their first delta: text before and after a call is one part", () =>
    Effect.gen(function* () {
      const { model } = modelOf([
        async function* () {
          yield { type: "text-start", id: "0" }
          yield says("I will ")
          yield call("c1", "echo", '{"b":1,"a":[2,{"z":0,"y":null}]}')
          yield says("look")
          yield { type: "text-end", id: "0" }
          yield finish("tool-calls")
        },
        async function* () {
          yield says("done")
          yield finish("stop")
        }
      ])
      const chunks = yield* chunksOf(Agent.stream(agentOf(model, [echo]), "go", { memory }))
      const held = yield* messagesOf()
      expect(held[1]).toStrictEqual({
        role: "assistant",
        content: [
          { type: "text", text: "I will look" },
          {
            type: "tool-call",
            toolCallId: "c1",
            toolName: "echo",
            input: { b: 1, a: [2, { z: 0, y: null }] }
          }
        ]
      })
      expect(held[2]).toStrictEqual({
        role: "tool",
        content: [
          {
            type: "tool-result",
            toolCallId: "c1",
            toolName: "echo",
            output: { type: "json", value: { b: 1, a: [2, { z: 0, y: null }] } }
          }
        ]
      })
      // The arguments are written as they were: the order of their keys too.
      expect(JSON.stringify(held[1])).toContain('{"b":1,"a":[2,{"z":0,"y":null}]}')
      expect(textIn(held, "assistant")).toBe(textOf(chunks))
      expect(yield* nextPrompt()).toStrictEqual([...held, user("next")])
    }).pipe(Effect.provide(layerMemory))
  )

  const long = "Grüße 😀 e\u0301\u0000\u2028\ufeff ".repeat(500)

  const spoken: ReadonlyArray<readonly [what: string, parts: ReadonlyArray<ModelPart.ModelPart>]> = [
    ["one block", text("one two three")],
    ["blocks one after the other", [...text("one ", "a"), ...text("two ", "b"), ...text("three", "a")]],
    ["deltas without a start", [says("one"), says(" two")]],
    ["empty and blank deltas", [says(""), says(" "), says("x"), says(""), says("\n")]],
    ["reasoning between", [...text("one", "a"), ...ScriptedModel.reasoning("hm hm"), ...text(" two", "b")]],
    ["odd characters", [says(long), says(long)]],
    ["a surrogate pair that is cut in two", [says("a\ud83d"), says("\ude00b")]],
    ["lone surrogates", [says("a\ud83d"), says("b"), says("\ude00c"), says("\ud83d")]]
  ]

  it.effect.each(spoken)("of %s: all of the text, nothing twice", ([, parts]) =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([[...parts, ends("stop")]])
      const chunks = yield* chunksOf(Agent.stream(agentOf(model), "go", { memory }))
      expect(textOf(chunks)).not.toBe("")
      expect(textIn(yield* messagesOf(), "assistant")).toBe(textOf(chunks))
      const prompt = yield* nextPrompt()
      expect(textIn(prompt, "assistant")).toBe(textOf(chunks))
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("a pair that is cut in two is joined, half of one is replaced", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        [says("\ud83d"), says("\ude00 "), says("\ud83d"), says("x"), ends("stop")]
      ])
      yield* Agent.generate(agentOf(model), "lone \ud83d", { memory })
      const held = yield* messagesOf()
      expect(held).toStrictEqual([user("lone \ufffd"), assistant("😀 \ufffdx")])
      expect((yield* nextPrompt()).slice(0, 2)).toStrictEqual(held)
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("signatures of reasoning come back byte for byte, each with its part", () =>
    Effect.gen(function* () {
      const signature = "EqQB+/=\u0000é\u2028".repeat(300)
      const parts: ReadonlyArray<ModelPart.ModelPart> = [
        { type: "reasoning-start", id: "r1" },
        { type: "reasoning-delta", id: "r1", delta: "first" },
        { type: "reasoning-end", id: "r1", providerMetadata: { anthropic: { signature } } },
        { type: "reasoning-start", id: "r2", providerMetadata: { anthropic: { redactedData: "xyz==" } } },
        { type: "reasoning-end", id: "r2" },
        { type: "text-start", id: "a", providerMetadata: { openai: { itemId: "msg_1" } } },
        says("one", "a"),
        { type: "text-end", id: "a" },
        { type: "text-start", id: "b", providerMetadata: { openai: { itemId: "msg_2" } } },
        says("two", "b"),
        { type: "text-end", id: "b" },
        {
          type: "tool-call",
          toolCallId: "c1",
          toolName: "echo",
          input: "{}",
          providerMetadata: { google: { thoughtSignature: signature } }
        }
      ]
      const model = ScriptedModel.make([[...parts, ends("tool-calls")], reply("done")])
      yield* Agent.generate(agentOf(model, [echo]), "go", { memory })
      const inRun = model.requests[1]?.messages[1]
      expect(inRun?.content).toStrictEqual([
        { type: "reasoning", text: "first", providerOptions: { anthropic: { signature } } },
        { type: "reasoning", text: "", providerOptions: { anthropic: { redactedData: "xyz==" } } },
        { type: "text", text: "one", providerOptions: { openai: { itemId: "msg_1" } } },
        { type: "text", text: "two", providerOptions: { openai: { itemId: "msg_2" } } },
        {
          type: "tool-call",
          toolCallId: "c1",
          toolName: "echo",
          input: {},
          providerOptions: { google: { thoughtSignature: signature } }
        }
      ])
      expect((yield* nextPrompt())[1]).toStrictEqual(inRun)
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("values that JSON cannot hold are made safe, and the next prompt says what this run's said", () =>
    Effect.gen(function* () {
      const circular: Record<string, unknown> = { at: new Date(0), big: 10n, not: undefined, nan: Number.NaN }
      circular["self"] = circular
      circular["map"] = new Map([["k", new Set([1])]])
      circular["error"] = new TypeError("no")
      const odd = Tool.make("odd", { execute: () => Effect.succeed(circular) })
      const nothing = Tool.make("nothing", { execute: () => Effect.void })
      const model = ScriptedModel.make([
        [toolCall("c1", "odd", {}), toolCall("c2", "nothing", {}), ends("tool-calls")],
        reply("done")
      ])
      yield* Agent.generate(agentOf(model, [odd, nothing]), "go", { memory })
      const [, , outcomes] = yield* messagesOf()
      expect(outcomes?.content).toMatchObject([
        {
          output: {
            type: "json",
            value: {
              at: "1970-01-01T00:00:00.000Z",
              big: "10",
              nan: null,
              self: "[Circular]",
              map: { k: [1] },
              error: { name: "TypeError", message: "no" }
            }
          }
        },
        { output: { type: "json", value: null } }
      ])
      const prompt = yield* nextPrompt()
      expect(prompt.slice(0, 3)).toStrictEqual(model.requests[1]?.messages)
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("arguments are stored as they were called, whatever the tool made of them", () =>
    Effect.gen(function* () {
      const spoil = Tool.make("spoil", {
        input: { type: "object" },
        execute: args =>
          Effect.sync(() => {
            ;(args as { list: Array<number> }).list.push(99)
            return "spoilt"
          })
      })
      const model = ScriptedModel.make([
        [
          toolCall("c1", "spoil", { list: [1], __proto__x: "p" }),
          call("c2", "spoil", '{"list":['),
          ends("tool-calls")
        ],
        reply("done")
      ])
      yield* Agent.generate(agentOf(model, [spoil]), "go", { memory })
      const [, called] = yield* messagesOf()
      expect(called?.content).toStrictEqual([
        { type: "tool-call", toolCallId: "c1", toolName: "spoil", input: { list: [1], __proto__x: "p" } },
        {
          type: "tool-call",
          toolCallId: "c2",
          toolName: "spoil",
          input: { malformedArguments: '{"list":[' }
        }
      ])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("files and the options of messages come back as they were", () =>
    Effect.gen(function* () {
      const cache = { anthropic: { cacheControl: { type: "ephemeral" } } }
      yield* say(
        {
          role: "user",
          content: [
            { type: "text", text: "look", providerOptions: cache },
            { type: "image", image: new URL("https://kit.test/a.png"), mediaType: "image/png" },
            { type: "file", data: new Uint8Array([1, 2, 3]), mediaType: "application/pdf", filename: "a.pdf" }
          ],
          providerOptions: cache
        },
        "seen"
      )
      const [first] = yield* nextPrompt()
      expect(first).toStrictEqual({
        role: "user",
        content: [
          { type: "text", text: "look", providerOptions: cache },
          { type: "file", data: new URL("https://kit.test/a.png"), mediaType: "image/png" },
          { type: "file", data: "AQID", mediaType: "application/pdf", filename: "a.pdf" }
        ],
        providerOptions: cache
      })
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("what a provider executed itself stays inside its answer", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        [
          { type: "tool-call", toolCallId: "p1", toolName: "web", input: '{"q":1}', providerExecuted: true },
          { type: "tool-result", toolCallId: "p1", toolName: "web", result: { hits: 2 } },
          ...text("found"),
          ends("stop")
        ]
      ])
      yield* Agent.generate(agentOf(model), "go", { memory })
      const [, said] = yield* nextPrompt()
      expect(said?.content).toStrictEqual([
        { type: "tool-call", toolCallId: "p1", toolName: "web", input: { q: 1 }, providerExecuted: true },
        {
          type: "tool-result",
          toolCallId: "p1",
          toolName: "web",
          output: { type: "json", value: { hits: 2 } }
        },
        { type: "text", text: "found" }
      ])
    }).pipe(Effect.provide(layerMemory))
  )
})

const uiUser = (id: string | undefined, content: string): Conversation.UIMessageInput => ({
  ...(id === undefined ? {} : { id }),
  role: "user",
  parts: [{ type: "text", text: content }]
})

const uiMessageOf = (chunks: ReadonlyArray<Chunk.Chunk>): Message.UIMessage => {
  const [message] = finishOf(chunks).response.uiMessages
  if (message === undefined) throw new Error("The run said nothing")
  return message
}

describe("a client that sends again what the thread has", () => {
  it.effect("messages of the same ids are taken in place, and the new one is added", () =>
    Effect.gen(function* () {
      yield* say([uiUser("m1", "one")], "a1")
      const model = ScriptedModel.make([reply("a2")])
      yield* Agent.generate(agentOf(model), [uiUser("m1", "one, changed"), uiUser("m2", "two")], { memory })
      const prompt = model.requests[0]?.messages ?? []
      expectPrompt(prompt)
      expect(textsOf(prompt)).toStrictEqual(["one, changed", "a1", "two"])
      expect(rolesOf(prompt)).toStrictEqual(["user", "assistant", "user"])
      expect((yield* stored()).map(({ id }) => id).filter(id => id.startsWith("m"))).toContain("m2")
      expect(textsOf(yield* messagesOf())).toStrictEqual(["one, changed", "a1", "two", "a2"])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("model messages may have ids too", () =>
    Effect.gen(function* () {
      yield* say({ id: "m1", role: "user", content: "one" }, "a1")
      const model = ScriptedModel.make([reply("a2")])
      const input: Conversation.Input = [
        { id: "m1", role: "user", content: "one" },
        { id: "m2", role: "user", content: "two" }
      ]
      yield* Agent.generate(agentOf(model), input, { memory })
      expect(textsOf(model.requests[0]?.messages ?? [])).toStrictEqual(["one", "a1", "two"])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("messages without ids are new ones", () =>
    Effect.gen(function* () {
      yield* say([uiUser(undefined, "one")], "a1")
      yield* say([uiUser(undefined, "one"), uiUser("", "two")], "a2")
      expect(textsOf(yield* messagesOf())).toStrictEqual(["one", "a1", "one", "two", "a2"])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("the whole conversation, as the AI SDK's hooks send it, changes nothing of what is stored", () =>
    Effect.gen(function* () {
      const parts: ReadonlyArray<ModelPart.ModelPart> = [
        { type: "reasoning-start", id: "r" },
        { type: "reasoning-delta", id: "r", delta: "hm" },
        { type: "reasoning-end", id: "r", providerMetadata: { kit: { signature: "s=" } } },
        ...text("looking"),
        {
          type: "tool-call",
          toolCallId: "c1",
          toolName: "echo",
          input: '{"q":"x"}',
          providerMetadata: { kit: { t: "u" } }
        },
        toolCall("c2", "broken", {}),
        toolCall("c3", "plain", {})
      ]
      const broken = Tool.make("broken", { execute: () => Effect.fail("it broke") })
      const plain = Tool.make("plain", { execute: () => Effect.succeed("plain") })
      const model = ScriptedModel.make([[...parts, ends("tool-calls")], reply("found")])
      const first = yield* chunksOf(
        Agent.stream(agentOf(model, [echo, broken, plain]), [uiUser("m1", "one")], { memory })
      )
      const before = yield* stored()
      expect(rolesOf(before.map(({ message }) => message))).toStrictEqual([
        "user",
        "assistant",
        "tool",
        "assistant"
      ])
      const answer = uiMessageOf(first)
      expect(answer.id).toBe(only(first, "start")[0]?.payload.messageId)
      const again = ScriptedModel.make([reply("a2")])
      // Over the wire, as a client would.
      const sent = JSON.parse(JSON.stringify([uiUser("m1", "one"), answer, uiUser("m2", "two")]))
      yield* Agent.generate(agentOf(again, [echo, broken, plain]), sent, { memory })
      const prompt = again.requests[0]?.messages ?? []
      expectPrompt(prompt)
      const after = yield* stored()
      expect(after).toHaveLength(before.length + 2)
      expect(prompt).toStrictEqual([...(model.requests[1]?.messages ?? []), assistant("found"), user("two")])
      expect(after.slice(0, 4).map(({ id, sequence }) => [id, sequence])).toStrictEqual(
        before.map(({ id, sequence }) => [id, sequence])
      )
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("does not change what the model was told of an outcome", () =>
    Effect.gen(function* () {
      const shot = Tool.make("shot", {
        execute: () => Effect.succeed({ png: "AQID" }),
        toModelOutput: ({ png }) => ({
          type: "content",
          value: [
            { type: "text", text: "the screen" },
            { type: "media", data: png, mediaType: "image/png" }
          ]
        })
      })
      const refusing = Tool.make("refusing", { execute: () => Effect.succeed({ isError: true, code: 7 }) })
      const model = ScriptedModel.make([
        [toolCall("c1", "shot", {}), toolCall("c2", "refusing", {}), ends("tool-calls")],
        reply("done")
      ])
      const chunks = yield* chunksOf(
        Agent.stream(agentOf(model, [shot, refusing]), [uiUser("m1", "go")], { memory })
      )
      const before = yield* messagesOf()
      const sent = JSON.parse(JSON.stringify([uiUser("m1", "go"), uiMessageOf(chunks), uiUser("m2", "more")]))
      const prompt = yield* nextPrompt(sent)
      expect(prompt).toStrictEqual([...before, user("more")])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("leaves each message to the run that said it", () =>
    Effect.gen(function* () {
      const one = agentOf(ScriptedModel.make([reply("a1")]))
      const chunks = yield* chunksOf(Agent.stream(one, [uiUser("m1", "one")], { memory, runId: "r1" }))
      const two = agentOf(ScriptedModel.make([reply("a2")]))
      const input = [uiUser("m1", "one"), uiMessageOf(chunks), uiUser("m2", "two")]
      yield* Agent.generate(two, input, { memory, runId: "r2" })
      expect((yield* stored()).map(({ runId }) => runId)).toStrictEqual(["r1", "r1", "r2", "r2"])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("of an aborted answer too", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const wait = Tool.make("wait", {
        execute: () =>
          Effect.zipRight(
            Effect.sync(() => controller.abort()),
            Effect.never
          )
      })
      const model = ScriptedModel.make([
        [...text("so"), toolCall("c1", "echo", {}), ends("tool-calls")],
        [...text("and"), toolCall("c2", "wait", {}), ends("tool-calls")]
      ])
      const { chunks } = yield* read(
        Agent.stream(agentOf(model, [echo, wait]), [uiUser("m1", "one")], {
          memory,
          abortSignal: controller.signal
        })
      )
      const before = yield* stored()
      expect(before).toHaveLength(5)
      const prompt = yield* nextPrompt([uiUser("m1", "one"), uiMessageOf(chunks), uiUser("m2", "two")])
      expect(prompt).toStrictEqual([...before.map(({ message }) => message), user("two")])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("only what it sends new is answered: the prompt alternates over many turns", () =>
    Effect.gen(function* () {
      const history: Array<Conversation.UIMessageInput | Message.UIMessage> = []
      for (const turn of [1, 2, 3, 4, 5]) {
        history.push(uiUser(`m${turn}`, `u${turn}`))
        const model = ScriptedModel.make([reply(`a${turn}`)])
        const chunks = yield* chunksOf(Agent.stream(agentOf(model), [...history], { memory: whole }))
        history.push(uiMessageOf(chunks))
        const prompt = model.requests[0]?.messages ?? []
        expectPrompt(prompt)
        expect(rolesOf(prompt)).toStrictEqual(
          Array.from({ length: turn * 2 - 1 }, (_, index) => (index % 2 === 0 ? "user" : "assistant"))
        )
      }
      expect(yield* stored()).toHaveLength(10)
    }).pipe(Effect.provide(layerMemory))
  )
})

describe("a run that goes on behind a message", () => {
  const again = (after: string, input: Conversation.Input, answer: string) =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([reply(answer)])
      yield* Agent.generate(agentOf(model), input, { memory: { ...memory, after } })
      return model.requests[0]?.messages ?? []
    })

  it.effect("takes the place of what stood there, and what it is handed stands once", () =>
    Effect.gen(function* () {
      yield* say([uiUser("m1", "one")], "first")
      yield* say([uiUser("m2", "two")], "wrong")
      yield* say("three", "wrong too")
      expect(yield* again("m2", [uiUser("m2", "two")], "right")).toStrictEqual([
        user("one"),
        assistant("first"),
        user("two")
      ])
      expect(yield* messagesOf()).toStrictEqual([
        user("one"),
        assistant("first"),
        user("two"),
        assistant("right")
      ])
      expect((yield* stored()).map(({ sequence }) => sequence)).toStrictEqual([1, 2, 3, 4])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("changes nothing where there is no such message, or the run does not begin", () =>
    Effect.gen(function* () {
      yield* say([uiUser("m1", "one")], "first")
      const refused = Agent.generate(agentOf(ScriptedModel.make([])), "two", {
        memory: { ...memory, after: "m1" },
        maxSteps: 0
      })
      expect(yield* Effect.flip(refused)).toMatchObject({ field: "maxSteps" })
      yield* again("m9", "two", "second")
      expect(yield* messagesOf()).toStrictEqual([
        user("one"),
        assistant("first"),
        user("two"),
        assistant("second")
      ])
      const foreign = { thread: "t1", resource: "other", after: "m1" }
      const notFound = Agent.generate(agentOf(ScriptedModel.make([])), "mine", { memory: foreign })
      expect(yield* Effect.flip(notFound)).toMatchObject({ _tag: "ThreadNotFound" })
      expect(yield* messagesOf()).toHaveLength(4)
      const wrong = Agent.generate(agentOf(ScriptedModel.make([])), "x", { memory: { ...memory, after: "" } })
      expect(yield* Effect.flip(wrong)).toMatchObject({ field: "memory.after" })
    }).pipe(Effect.provide(layerMemory))
  )
})

describe("calls that the client executes", () => {
  /** The step emits c1 and c2, and ends. */
  const leave = (...more: ReadonlyArray<ModelPart.ModelPart>) =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        [
          ...text("pick two"),
          ...more,
          toolCall("c1", "pick", { of: ["a", "b"] }),
          toolCall("c2", "pick", { of: [1, 2] }),
          ends("tool-calls")
        ]
      ])
      const chunks = yield* chunksOf(
        Agent.stream(agentOf(model, [pick, echo]), [uiUser("m1", "go")], { memory })
      )
      expect(finishOf(chunks).stepResult.stoppedBy).toBe("client-tool")
      return chunks
    })

  const go = (input: Conversation.Input) =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([reply("thanks")])
      yield* Agent.generate(agentOf(model, [pick, echo]), input, { memory })
      const prompt = model.requests[0]?.messages ?? []
      expectPrompt(prompt)
      return prompt
    })

  const outputsOf = (prompt: ReadonlyArray<Message.Message>) =>
    prompt.flatMap(message =>
      message.role === "tool"
        ? message.content.map(part => [part.toolCallId, part.toolName, part.output])
        : []
    )

  const argsOf = (messages: ReadonlyArray<Message.Message>) =>
    messages.flatMap(message =>
      message.role === "assistant"
        ? message.content.flatMap(part => (part.type === "tool-call" ? [part.input] : []))
        : []
    )

  const bothOutputs = [
    ["c1", "pick", { type: "text", value: "a" }],
    ["c2", "pick", { type: "json", value: { n: 2 } }]
  ]

  it.effect("results that come as a tool message are used, both, with the arguments as called", () =>
    Effect.gen(function* () {
      yield* leave()
      const prompt = yield* go({
        role: "tool",
        content: [
          {
            type: "tool-result",
            toolCallId: "c2",
            toolName: "pick",
            output: { type: "json", value: { n: 2 } }
          },
          { type: "tool-result", toolCallId: "c1", toolName: "pick", output: { type: "text", value: "a" } }
        ]
      })
      expect(rolesOf(prompt)).toStrictEqual(["user", "assistant", "tool"])
      expect(outputsOf(prompt)).toStrictEqual(bothOutputs)
      expect(argsOf(prompt)).toStrictEqual([{ of: ["a", "b"] }, { of: [1, 2] }])
      expect(argsOf(yield* messagesOf())).toStrictEqual([{ of: ["a", "b"] }, { of: [1, 2] }])
      const next = yield* nextPrompt()
      expect(rolesOf(next)).toStrictEqual(["user", "assistant", "tool", "assistant", "user"])
      expect(outputsOf(next)).toStrictEqual(bothOutputs)
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("an outcome that the thread has is not stored again, though it has no id", () =>
    Effect.gen(function* () {
      yield* leave(toolCall("c3", "echo", { n: 3 }))
      const told = (toolCallId: string, value: string) => ({
        type: "tool-result" as const,
        toolCallId,
        output: { type: "text", value }
      })
      const content = [told("c1", "a"), told("c2", "b"), told("c3", "another")]
      const prompt = yield* go({ role: "tool", content })
      expect(outputsOf(prompt)).toStrictEqual([
        ["c3", "echo", { type: "json", value: { n: 3 } }],
        ["c1", "pick", { type: "text", value: "a" }],
        ["c2", "pick", { type: "text", value: "b" }]
      ])
      expect(outputsOf(yield* messagesOf()).map(([id]) => id)).toStrictEqual(["c3", "c1", "c2"])
      // All of it again: nothing is new, and the model answers to what there is.
      const again = yield* go({ role: "tool", content })
      expect(outputsOf(again)).toStrictEqual(outputsOf(prompt))
      expect(outputsOf(yield* messagesOf())).toHaveLength(3)
    }).pipe(Effect.provide(layerMemory))
  )

  const answered = (answer: Message.UIMessage): Message.UIMessage => ({
    ...answer,
    parts: answer.parts.map(part =>
      part["toolCallId"] === "c1"
        ? { ...part, state: "output-available", output: "a" }
        : part["toolCallId"] === "c2"
          ? { ...part, state: "output-available", output: { n: 2 } }
          : part
    )
  })

  it.effect("results that come in the UI message are used, both, with the arguments as called", () =>
    Effect.gen(function* () {
      const answer = answered(uiMessageOf(yield* leave()))
      const prompt = yield* go([uiUser("m1", "go"), answer])
      expect(rolesOf(prompt)).toStrictEqual(["user", "assistant", "tool"])
      expect(outputsOf(prompt)).toStrictEqual(bothOutputs)
      expect(argsOf(yield* messagesOf())).toStrictEqual([{ of: ["a", "b"] }, { of: [1, 2] }])
      const next = yield* nextPrompt()
      expect(rolesOf(next)).toStrictEqual(["user", "assistant", "tool", "assistant", "user"])
      expect(outputsOf(next)).toStrictEqual(bothOutputs)
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("beside one that was executed here, whose result is not lost", () =>
    Effect.gen(function* () {
      const answer = answered(uiMessageOf(yield* leave(toolCall("c0", "echo", { say: "x" }))))
      const executed = ["c0", "echo", { type: "json", value: { say: "x" } }]
      const prompt = yield* go([uiUser("m1", "go"), answer])
      expect(outputsOf(prompt)).toStrictEqual([executed, ...bothOutputs])
      expect(outputsOf(yield* nextPrompt())).toStrictEqual([executed, ...bothOutputs])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("one in each of two messages", () =>
    Effect.gen(function* () {
      yield* leave(toolCall("c0", "echo", { say: "x" }))
      const result = (toolCallId: string, value: string): Conversation.ModelMessageInput => ({
        role: "tool",
        content: [{ type: "tool-result", toolCallId, toolName: "pick", output: { type: "text", value } }]
      })
      const prompt = yield* go([result("c2", "two"), result("c1", "one")])
      expect(outputsOf(prompt).map(([id, , output]) => [id, output])).toStrictEqual([
        ["c0", { type: "json", value: { say: "x" } }],
        ["c1", { type: "text", value: "one" }],
        ["c2", { type: "text", value: "two" }]
      ])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("without results they are not in the next prompt, and what was said is", () =>
    Effect.gen(function* () {
      yield* leave()
      const prompt = yield* go("never mind")
      expect(prompt).toStrictEqual([user("go"), assistant("pick two"), user("never mind")])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("results that come after another turn are used from then on", () =>
    Effect.gen(function* () {
      yield* leave()
      yield* go("wait")
      const prompt = yield* go([
        {
          role: "tool",
          content: [
            { type: "tool-result", toolCallId: "c1", result: "a" },
            { type: "tool-result", toolCallId: "c2", result: { n: 2 } }
          ]
        },
        "here they are"
      ])
      expect(outputsOf(prompt)).toStrictEqual(bothOutputs)
      expect(rolesOf(prompt)).toStrictEqual(["user", "assistant", "tool", "user", "assistant", "user"])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("results of calls that are older than what is recalled are left out, and nothing breaks", () =>
    Effect.gen(function* () {
      yield* leave()
      yield* talk(3)
      const model = ScriptedModel.make([reply("ok")])
      const input: Conversation.Input = [
        { role: "tool", content: [{ type: "tool-result", toolCallId: "c1", result: "a" }] },
        "late"
      ]
      yield* Agent.generate(agentOf(model, [pick]), input, { memory: { ...memory, lastMessages: 2 } })
      const prompt = model.requests[0]?.messages ?? []
      expectPrompt(prompt)
      expect(textsOf(prompt)).toStrictEqual(["u3", "a3", "late"])
    }).pipe(Effect.provide(layerMemory))
  )
})

describe("how much is recalled", () => {
  const promptOf = (
    lastMessages: number | false | undefined,
    agentsOwn: number | false | undefined,
    input: Conversation.Input = "next"
  ) =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([reply("ok")])
      const agent = agentOf(model, [], {
        instructions: "Be brief.",
        ...(agentsOwn === undefined ? {} : { memory: { lastMessages: agentsOwn } })
      })
      yield* Agent.generate(agent, input, {
        memory: { ...memory, ...(lastMessages === undefined ? {} : { lastMessages }) }
      })
      const [first, ...rest] = model.requests[0]?.messages ?? []
      expect(first).toStrictEqual({ role: "system", content: "Be brief." })
      expectPrompt(rest)
      return textsOf(rest)
    })

  const cases: ReadonlyArray<
    readonly [
      onCall: number | false | undefined,
      onAgent: number | false | undefined,
      told: ReadonlyArray<string>
    ]
  > = [
    [2, undefined, ["u5", "a5", "next"]],
    [4, undefined, ["u4", "a4", "u5", "a5", "next"]],
    [1, undefined, ["u5", "a5", "next"]],
    [3, undefined, ["u4", "a4", "u5", "a5", "next"]],
    [undefined, 2, ["u5", "a5", "next"]],
    [4, 2, ["u4", "a4", "u5", "a5", "next"]],
    [0, undefined, ["next"]],
    [false, undefined, ["next"]],
    [undefined, 0, ["next"]],
    [undefined, false, ["next"]],
    [2, false, ["u5", "a5", "next"]],
    [0, 4, ["next"]],
    [false, 4, ["next"]],
    [100, undefined, ["u1", "a1", "u2", "a2", "u3", "a3", "u4", "a4", "u5", "a5", "next"]]
  ]

  it.effect.each(cases)("the call says %s, the agent %s", ([onCall, onAgent, told]) =>
    Effect.gen(function* () {
      yield* talk(5)
      expect(yield* promptOf(onCall, onAgent)).toStrictEqual(told)
      // It is all kept.
      expect(yield* stored()).toHaveLength(12)
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("40 messages by default", () =>
    Effect.gen(function* () {
      const { forget, layer, rows } = counting()
      yield* Effect.gen(function* () {
        yield* talk(25)
        forget()
        const told = yield* promptOf(undefined, undefined)
        expect(told).toHaveLength(41)
        expect(told[0]).toBe("u6")
        expect(rows.read).toBe(40)
      }).pipe(Effect.provide(layer))
    })
  )

  it.effect("back to the user's message that begins the turn, through all of its calls", () =>
    Effect.gen(function* () {
      yield* say("before", "it")
      const steps = Array.from({ length: 4 }, (_, index) => [
        toolCall(`c${index}`, "echo", { index }),
        ends("tool-calls")
      ])
      const model = ScriptedModel.make([...steps, reply("done")])
      yield* Agent.generate(agentOf(model, [echo]), "go", { memory })
      const again = ScriptedModel.make([reply("ok")])
      yield* Agent.generate(agentOf(again, [echo]), "next", { memory: { ...memory, lastMessages: 2 } })
      const prompt = again.requests[0]?.messages ?? []
      expectPrompt(prompt)
      expect(textsOf(prompt)[0]).toBe("go")
      expect(prompt).toHaveLength(11)
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("what is sent again stands where it stood, also when it is older than what is recalled", () =>
    Effect.gen(function* () {
      const input = (turn: number) => uiUser(`m${turn}`, `u${turn}`)
      for (const turn of [1, 2, 3]) yield* say([input(turn)], `a${turn}`)
      const told = yield* promptOf(2, undefined, [input(1), input(2), input(3), input(4)])
      expect(told).toStrictEqual(["u1", "u2", "u3", "a3", "u4"])
      expect(yield* stored()).toHaveLength(8)
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("the messages that are handed over come beside them, however many", () =>
    Effect.gen(function* () {
      yield* talk(3)
      expect(yield* promptOf(2, undefined, ["x", "y", "z"])).toStrictEqual(["u3", "a3", "x", "y", "z"])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("system messages of the input come first and are not stored; instructions neither", () =>
    Effect.gen(function* () {
      yield* say("u1", "a1")
      const model = ScriptedModel.make([[toolCall("c1", "echo", {}), ends("tool-calls")], reply("a2")])
      const agent = agentOf(model, [echo], { instructions: "Be brief." })
      const input: Conversation.Input = [
        "u2",
        { role: "system", content: "It is Monday." },
        { id: "s2", role: "system", parts: [{ type: "text", text: "It rains." }] }
      ]
      yield* Agent.generate(agent, input, { memory })
      const told = ["Be brief.", "It is Monday.", "It rains.", "u1", "a1", "u2"]
      expect(textsOf(model.requests[0]?.messages ?? [])).toStrictEqual(told)
      expect(textsOf(model.requests[1]?.messages ?? []).slice(0, 6)).toStrictEqual(told)
      expect(rolesOf(yield* messagesOf())).not.toContain("system")
      expect(textsOf(yield* nextPrompt())).toStrictEqual(["u1", "a1", "u2", "", "", "a2", "next"])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("a run that is handed nothing goes on where the thread stands", () =>
    Effect.gen(function* () {
      yield* say("u1", "a1")
      const model = ScriptedModel.make([reply("a2")])
      yield* Agent.generate(agentOf(model), [], { memory })
      expect(textsOf(model.requests[0]?.messages ?? [])).toStrictEqual(["u1", "a1"])
      expect(textsOf(yield* messagesOf())).toStrictEqual(["u1", "a1", "a2"])
    }).pipe(Effect.provide(layerMemory))
  )
})

describe("what the output of the run tells", () => {
  it.effect("the conversation with what was recalled; response is what this run has added", () =>
    Effect.gen(function* () {
      yield* say("u1", "a1")
      const chunks = yield* chunksOf(
        Agent.stream(agentOf(ScriptedModel.make([reply("a2")])), "u2", { memory })
      )
      const { messages, response } = finishOf(chunks)
      expect(textsOf(messages.all)).toStrictEqual(["u1", "a1", "u2", "a2"])
      expect(textsOf(response.messages)).toStrictEqual(["a2"])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("a stream that is run twice says two things", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([reply("a1"), reply("a2")])
      const stream = Agent.stream(agentOf(model), "u", { memory })
      yield* Stream.runDrain(stream)
      yield* Stream.runDrain(stream)
      expect(textsOf(yield* messagesOf())).toStrictEqual(["u", "a1", "u", "a2"])
    }).pipe(Effect.provide(layerMemory))
  )
})
