/** The processors that come with the library: `blockWhen` and `tokenLimiter`. */
import { describe, expect, it } from "@effect/vitest"
import { Message, Processor } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, FastCheck as fc } from "effect"
import { newest } from "../../src/agent/processors/tokenLimiter.js"
import { conversationFaults } from "../support/conversationFaults.js"
import { textOf, types } from "./kit.js"
import { ran } from "./processorsKit.js"

const { reply } = ScriptedModel

describe("blockWhen", () => {
  const secret = Processor.blockWhen({
    id: "secret",
    text: text => text.includes("secret"),
    metadata: { level: 3 }
  })

  it.effect("stops input", () =>
    Effect.gen(function* () {
      const { chunks, full } = yield* ran([], { inputProcessors: [secret] }, "a secret")
      expect(types(chunks)).toEqual(["start", "tripwire", "finish"])
      expect(full.tripwire).toEqual({
        reason: "This is not allowed.",
        metadata: { level: 3 },
        processorId: "secret"
      })
    })
  )

  it.effect("stops answers, and lets others pass", () =>
    Effect.gen(function* () {
      const blocked = yield* ran([reply("the secret")], { outputProcessors: [secret] })
      expect(blocked.full).toMatchObject({ status: "tripwire", text: "" })
      const passed = yield* ran([reply("nothing")], { outputProcessors: [secret] })
      expect(passed.full).toMatchObject({ status: "success", text: "nothing" })
    })
  )

  it.effect("by message", () =>
    Effect.gen(function* () {
      const gate = Processor.blockWhen({ message: ({ role }) => (role === "system" ? "No orders." : false) })
      const { full } = yield* ran([], { inputProcessors: [gate] }, [
        { role: "system", content: "Obey." },
        { role: "user", content: "Go." }
      ])
      expect(full.tripwire?.reason).toBe("No orders.")
    })
  )

  it("needs a predicate", () => {
    expect(() => Processor.blockWhen({})).toThrow(/no predicate/)
  })
})

describe("tokenLimiter", () => {
  it.effect("ends the text where the tokens do", () =>
    Effect.gen(function* () {
      const { chunks, full } = yield* ran([reply("one two three four five")], {
        outputProcessors: [Processor.tokenLimiter({ output: 2 })]
      })
      expect(full).toMatchObject({ status: "success", text: "one two " })
      expect(textOf(chunks)).toBe(full.text)
    })
  )

  it.effect("counts as it is told, and stops the run when it is to", () =>
    Effect.gen(function* () {
      const { full } = yield* ran([reply("one two three")], {
        outputProcessors: [Processor.tokenLimiter({ output: 2, strategy: "block", count: () => 1 })]
      })
      expect(full).toMatchObject({ status: "tripwire", tripwire: { processorId: "token-limiter" } })
    })
  )

  const call = (id: string): ReadonlyArray<Message.Message> => [
    { role: "assistant", content: [{ type: "tool-call", toolCallId: id, toolName: "t", input: {} }] },
    {
      role: "tool",
      content: [
        { type: "tool-result", toolCallId: id, toolName: "t", output: { type: "text", value: "found" } }
      ]
    }
  ]

  const answer = (text: string): Message.Message => ({ role: "assistant", content: [{ type: "text", text }] })

  const conversation = [
    Message.system("Be brief."),
    Message.user("first"),
    ...call("c1"),
    answer("one"),
    Message.user("second"),
    ...call("c2"),
    ...call("c3")
  ]

  it("leaves the oldest out, calls with their results", () => {
    const one = () => 1
    expect(newest(conversation, 10, one)).toBe(conversation)
    expect(newest(conversation, 9, one)).toEqual([conversation[0], ...conversation.slice(5)])
    expect(newest(conversation, 4, one)).toEqual([conversation[0], conversation[5], ...call("c3")])
    expect(newest(conversation, 1, one)).toEqual([conversation[0], conversation[5], ...call("c3")])
  })

  it("leaves a conversation that providers take, whatever the limit", () => {
    const unit = fc.oneof(
      fc.string().map(text => [Message.user(`u${text}`)]),
      fc.string().map(text => [answer(`a${text}`)]),
      fc.nat().map(id => [...call(`c${id}`)])
    )
    fc.assert(
      fc.property(fc.array(unit, { minLength: 1 }), fc.nat({ max: 40 }), (units, limit) => {
        const messages = units.flatMap((messages, index) =>
          index === 0 ? [Message.user("go"), ...messages] : messages
        )
        const told = newest(messages, limit, text => text.length)
        expect(conversationFaults(told, () => false)).toEqual([])
        expect(told.find(({ role }) => role !== "system")?.role).toBe("user")
        expect(told.at(-1)).toEqual(messages.at(-1))
      })
    )
  })

  it("needs a limit", () => {
    expect(() => Processor.tokenLimiter({})).toThrow(/no limit/)
    expect(() => Processor.tokenLimiter({ input: 0 })).toThrow(/whole number/)
  })
})
