/** What a store must do when the outcome of a call is replaced: find the call, and change nothing else. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Message, ToolResultOutput, ToolResultPart } from "../../protocol/Message.js"
import { type NewMessage, type ThreadMessage, ThreadStore } from "../ThreadStore.js"
import { at, type Case, freshId, freshThread, idsOf, lookalikes, same, say, upTo, values } from "./kit.js"

const text = (value: string): ToolResultOutput => ({ type: "text", value })

const outcome = (toolCallId: string, value: string, more: Partial<ToolResultPart> = {}): ToolResultPart => ({
  type: "tool-result",
  toolCallId,
  toolName: "look",
  output: text(value),
  ...more
})

const told = (id: string, ...content: ReadonlyArray<ToolResultPart>): NewMessage => ({
  id,
  message: { role: "tool", content }
})

/** What the tool messages of a thread say: of each the calls and their outcomes. */
const outcomesOf = (messages: ReadonlyArray<ThreadMessage>) =>
  messages.flatMap(({ message }) =>
    message.role === "tool" ? [message.content.map(part => [part.toolCallId, part.output.value])] : []
  )

const tells = (what: string, threadId: string, expected: ReadonlyArray<unknown>) =>
  Effect.flatMap(ThreadStore, store =>
    Effect.flatMap(store.messages(threadId), messages => same(what, outcomesOf(messages), expected))
  )

const replaces = (threadId: string, part: ToolResultPart, expected = true) =>
  Effect.flatMap(ThreadStore, store =>
    Effect.flatMap(store.replaceOutcome(threadId, part), isDone =>
      same(`whether there was an outcome of ${JSON.stringify(part.toolCallId)}`, isDone, expected)
    )
  )

/** Ids that look like something to a database, to a pattern, to JSON, or like each other. */
const callIds: ReadonlyArray<string> = [
  ...lookalikes,
  "%",
  "_",
  "%d",
  "[id]",
  "i?",
  "^id$",
  "(id|x)",
  "",
  '"',
  '"id"',
  "'",
  "''",
  "\\",
  "\\\\",
  "\\u0069d",
  "line\nbreak",
  "\u0000",
  "\u2028",
  "null",
  "toolCallId",
  "$1",
  ":id"
]

/** One case each. */
export const outcomeCases: ReadonlyArray<Case> = [
  {
    name: "replaceOutcome replaces the outcome of a call, and nothing else",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const thread = yield* at(1000)(freshThread({ title: "title", metadata: { a: 1 } }))
      const providerOptions = { some: { signature: "EqQB+/==" } }
      const result: Message = {
        role: "tool",
        content: [outcome("a", "first", { providerOptions }), outcome("b", "wait"), outcome("c", "last")],
        providerOptions
      }
      const given = [
        say("1"),
        say("2", "2", "a"),
        { id: "3", runId: "run-1", message: result },
        { ...say("4", "4", "a"), runId: "run-1" }
      ]
      const before = yield* at(2000)(store.append(thread.id, given))
      const part = outcome("b", "done", { toolName: "other", providerOptions: { other: { b: [null] } } })
      const isDone = yield* at(3000)(store.replaceOutcome(thread.id, part))
      yield* same("whether there was one", isDone, true)
      const content = [result.content[0], part, result.content[2]]
      const after = before.map(stored =>
        stored.id === "3" ? { ...stored, message: { ...result, content } } : stored
      )
      yield* same("the messages", yield* store.messages(thread.id), after)
      const touched = { ...thread, updatedAt: new Date(3000) }
      yield* same("the thread", yield* store.get(thread.id), Option.some(touched))
      const last = yield* store.messages(thread.id, { last: 1 })
      yield* same("the messages that are recalled", last, after)
    })
  },
  {
    name: "outcome finds the accepted outcome of a call that was stored last, and changes nothing",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      const of = (message: string, runId: string, value: string): NewMessage => ({
        id: message,
        runId,
        message: { role: "tool", content: [outcome("other", value), outcome("call", value)] }
      })
      yield* store.append(id, [of("1", "A", "first")])
      yield* store.append(id, [of("2", "B", "second"), say("3", '"call"', "a")])
      const any = yield* store.outcome(id, "call", () => true)
      yield* same("the outcome", any, Option.some(outcome("call", "second")))
      const ofA = yield* store.outcome(id, "call", (_, runId) => runId === "A")
      yield* same("the outcome of A", ofA, Option.some(outcome("call", "first")))
      yield* same(
        "an outcome that is not accepted",
        yield* store.outcome(id, "call", () => false),
        Option.none()
      )
      yield* same("one of no call", yield* store.outcome(id, "cal", () => true), Option.none())
      yield* same("one of no thread", yield* store.outcome(freshId(), "call", () => true), Option.none())
    })
  },
  {
    name: "a thread in which an outcome is replaced comes first; one in which none is stays where it is",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const resourceId = freshId()
      const [a, b, c] = yield* Effect.all([
        freshThread({ resourceId }),
        freshThread({ resourceId }),
        freshThread({ resourceId })
      ])
      for (const { id } of [a, b, c]) yield* store.append(id, [told("1", outcome("a", "wait"))])
      const order = Effect.map(store.list({ resourceId }), ({ threads }) => idsOf(threads))
      yield* same("the order before", yield* order, [c.id, b.id, a.id])
      yield* at(1000)(replaces(b.id, outcome("a", "done")))
      yield* same("the order after", yield* order, [b.id, c.id, a.id])
      yield* replaces(a.id, outcome("b", "done"), false)
      yield* same("the order after nothing was replaced", yield* order, [b.id, c.id, a.id])
    })
  },
  {
    name: "replaceOutcome replaces an outcome again and again",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      yield* store.append(id, [told("1", outcome("a", "0"), outcome("b", "0"))])
      for (const value of ["1", "2", "2"]) {
        yield* replaces(id, outcome("b", value))
        yield* tells("the outcomes", id, [
          [
            ["a", "0"],
            ["b", value]
          ]
        ])
      }
    })
  },
  {
    name: "replaceOutcome keeps outcomes of every kind as they are",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      yield* store.append(id, [told("1", outcome("a", "0"))])
      const outputs: ReadonlyArray<ToolResultOutput> = [
        text(`it's "quoted" \\ $1 $& \u0000 \ud83d\ude00`),
        { type: "error-text", value: "" },
        ...values.map(value => ({ type: "json" as const, value })),
        { type: "error-json", value: { a: [1] } },
        { type: "content", value: [{ type: "text", text: "t" }] }
      ]
      for (const output of outputs) {
        const part = outcome("a", "", { output })
        yield* replaces(id, part)
        const messages = (yield* store.messages(id)).map(({ message }) => message)
        yield* same("the messages", messages, [told("1", part).message])
      }
      const unsafe = outcome("a", "half \ud83d", { providerOptions: { some: { a: Number.NaN } } })
      yield* replaces(id, unsafe)
      const safe = outcome("a", "half \ufffd", { providerOptions: { some: { a: null } } })
      const messages = (yield* store.messages(id)).map(({ message }) => message)
      yield* same("what is made safe", messages, [told("1", safe).message])
    })
  },
  {
    name: "replaceOutcome replaces the newest of several outcomes of a call",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      // Neither ids nor times tell which is the newest.
      yield* at(3000)(store.append(id, [told("9", outcome("a", "1")), say("u")]))
      yield* at(2000)(store.append(id, [told("5", outcome("a", "2"))]))
      yield* at(1000)(store.append(id, [told("1", outcome("b", "3")), say("v")]))
      // One that is said again stays where it is.
      yield* at(4000)(store.append(id, [told("9", outcome("a", "4"))]))
      yield* replaces(id, outcome("a", "done"))
      yield* tells("the outcomes", id, [[["a", "4"]], [["a", "done"]], [["b", "3"]]])
    })
  },
  {
    name: "replaceOutcome finds a call that is far back",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      const others = upTo(300).map(number => told(`${number}`, outcome(`call-${number}`, "other")))
      yield* store.append(id, [told("first", outcome("call", "wait")), ...others])
      yield* replaces(id, outcome("call", "done"))
      const [first, second, ...rest] = outcomesOf(yield* store.messages(id))
      yield* same("the first", first, [["call", "done"]])
      yield* same("the second", second, [["call-1", "other"]])
      yield* same("the number of the rest", rest.length, 299)
    })
  },
  {
    name: "replaceOutcome takes no text for a call",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      const mentions: ReadonlyArray<Partial<ToolResultPart>> = [
        { output: text("a") },
        { output: text('"toolCallId":"a"') },
        { output: { type: "json", value: { toolCallId: "a" } } },
        { output: { type: "content", value: [{ type: "tool-result", toolCallId: "a" }] } },
        { toolName: "a" },
        { providerOptions: { a: { toolCallId: "a" } } }
      ]
      const others = mentions.map((more, index) => told(`${index}`, outcome(`other-${index}`, "x", more)))
      const elsewhere: ReadonlyArray<NewMessage> = [
        say("u", "a"),
        {
          id: "c",
          message: {
            role: "assistant",
            content: [
              { type: "tool-call", toolCallId: "a", toolName: "a", input: { toolCallId: "a" } },
              outcome("a", "of the provider")
            ]
          }
        }
      ]
      const noise = yield* store.append(id, [...elsewhere, ...others])
      yield* replaces(id, outcome("a", "done"), false)
      yield* same("the messages", yield* store.messages(id), noise)
      const other = yield* freshThread()
      yield* store.append(other.id, [told("t", outcome("a", "wait")), ...elsewhere, ...others])
      const before = yield* store.messages(other.id)
      yield* replaces(other.id, outcome("a", "done"))
      const after = yield* store.messages(other.id)
      yield* same("the other messages", after.slice(1), before.slice(1))
      yield* same("the first message", after[0]?.message, told("t", outcome("a", "done")).message)
    })
  },
  {
    name: "replaceOutcome says when there is none, and makes none",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const missing = freshId()
      yield* replaces(missing, outcome("a", "done"), false)
      yield* same("the thread", yield* store.get(missing), Option.none())
      const opened = at(1000)(freshThread())
      const [bare, one, other] = yield* Effect.all([opened, opened, opened])
      yield* replaces(bare.id, outcome("a", "done"), false)
      yield* at(1000)(store.append(one.id, [told("1", outcome("a1", "wait"), outcome("1a", "wait"))]))
      yield* at(1000)(store.append(other.id, [told("1", outcome("a", "wait"))]))
      yield* at(2000)(replaces(one.id, outcome("a", "done"), false))
      yield* same("the thread", yield* store.get(one.id), Option.some(one))
      yield* tells("other calls", one.id, [
        [
          ["a1", "wait"],
          ["1a", "wait"]
        ]
      ])
      yield* tells("the call of another thread", other.id, [[["a", "wait"]]])
      yield* replaces(other.id, outcome("a", "done"))
      yield* store.delete(other.id)
      yield* replaces(other.id, outcome("a", "done"), false)
    })
  },
  {
    name: "replaceOutcome tells ids of calls apart exactly",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      const own = callIds.map((call, index) => told(`${index}`, outcome(call, "wait")))
      const shared = callIds.map(call => outcome(`x${call}`, "wait"))
      yield* store.append(id, [...own, told("shared", ...shared)])
      const expected = [
        ...callIds.map(call => [[call, "wait"]]),
        shared.map(({ toolCallId }) => [toolCallId, "wait"])
      ]
      for (const [index, call] of callIds.entries()) {
        yield* replaces(id, outcome(call, `done ${index}`))
        expected[index] = [[call, `done ${index}`]]
        yield* tells(`the outcomes after that of ${JSON.stringify(call)}`, id, expected)
        yield* replaces(id, outcome(`x${call}`, "shared"))
        expected.at(-1)?.splice(index, 1, [`x${call}`, "shared"])
      }
      yield* tells("the outcomes after all", id, expected)
      yield* store.append(id, [told("half", outcome("half \ud83d", "wait"))])
      yield* replaces(id, outcome("half \ud83d", "done"))
      const messages = outcomesOf(yield* store.messages(id))
      yield* same("the outcome of an id that is made safe", messages.at(-1), [["half \ufffd", "done"]])
    })
  },
  {
    name: "outcomes that are replaced at once are all kept",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      const { id } = yield* freshThread()
      const calls = upTo(12).map(number => `call-${number}`)
      yield* store.append(id, [told("1", ...calls.map(call => outcome(call, "wait")))])
      yield* Effect.forEach(calls, call => replaces(id, outcome(call, `done ${call}`)), {
        concurrency: "unbounded"
      })
      yield* tells("the outcomes", id, [calls.map(call => [call, `done ${call}`])])
    })
  },
  {
    name: "an outcome that is replaced while its message is leaves nothing of the old message",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      for (const turns of upTo(12)) {
        const { id } = yield* freshThread()
        yield* store.append(id, [told("1", outcome("a", "old"), outcome("b", "wait"))])
        const wait = (more: number) => Effect.repeatN(Effect.yieldNow(), more)
        const append = store.append(id, [told("1", outcome("a", "new"), outcome("b", "wait")), say("2")])
        const replace = replaces(id, outcome("b", "done"))
        yield* Effect.all([Effect.zipRight(wait(turns), append), Effect.zipRight(wait(6), replace)], {
          concurrency: "unbounded",
          discard: true
        })
        const stored = yield* store.messages(id)
        const [[a, b] = []] = outcomesOf(stored)
        yield* same("the outcome that was appended", a, ["a", "new"])
        // Either may have been the last.
        const last = b?.[1] === "wait" ? "wait" : "done"
        yield* same("the outcome that was replaced", b, ["b", last])
        yield* same("the number of messages", stored.length, 2)
      }
    })
  },
  {
    name: "an outcome whose message goes while it is replaced is replaced in the next that has it",
    run: Effect.gen(function* () {
      const store = yield* ThreadStore
      for (const turns of upTo(12)) {
        const { id } = yield* freshThread()
        yield* store.append(id, [told("1", outcome("a", "wait")), told("2", outcome("a", "wait"))])
        const wait = (more: number) => Effect.repeatN(Effect.yieldNow(), more)
        const append = store.append(id, [told("2", outcome("b", "other"))])
        yield* Effect.all(
          [
            Effect.zipRight(wait(turns), append),
            Effect.zipRight(wait(6), replaces(id, outcome("a", "done")))
          ],
          { concurrency: "unbounded", discard: true }
        )
        const [first, second] = outcomesOf(yield* store.messages(id))
        yield* same("the message that was appended", second, [["b", "other"]])
        const value = first?.[0]?.[1] === "wait" ? "wait" : "done"
        yield* same("the message that stayed", first, [["a", value]])
      }
    })
  }
]
