/** What a thread holds after a turn that went wrong, and what the next turn is told of it. */
import { ThreadStore } from "eddy"
import { Agent, createTool, Eddy, type Storage } from "eddy/promise"
import { Effect, Layer } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"
import * as memoryThreads from "../../src/storage/memoryThreads.js"
import { only } from "../agent/kit.js"
import { expectPrompt, rolesOf, textIn } from "../agent/memoryKit.js"
import { latch, memoryLogger, refuseUnhandledRejections, until } from "../support/readers.js"
import { withThreads } from "../support/stores.js"
import * as Kit from "./kit.js"

refuseUnhandledRejections()

const memory = { thread: "t", resource: "u" }

const options = { ...Kit.once, memory }

type Place = ReturnType<typeof Kit.set>

const stored = async ({ eddy }: Pick<Place, "eddy">) =>
  (await eddy.threads.messages("t")).map(({ message }) => message)

/** The next turn of the thread, and what the model is told in it. */
const nextPrompt = async (place: Place) => {
  await place.agent.generate("next", options)
  const prompt = Kit.lastPrompt(place)
  expectPrompt(prompt)
  return prompt
}

/** Outcomes that the prompt tells as if the tool had done it. */
const successes = (prompt: ReturnType<typeof Kit.lastPrompt>) =>
  prompt.flatMap(message =>
    message.role === "tool"
      ? message.content.flatMap(({ output, toolCallId }) =>
          output.type === "error-text" || output.type === "error-json" ? [] : [toolCallId]
        )
      : []
  )

const ask = createTool({ id: "ask", inputSchema: { type: "object" } })

const first = [...Kit.text("first "), Kit.call("c0", "echo", '{"n":0}'), Kit.finish("tool-calls")]

describe("the turn after one that broke off", () => {
  const torn = '{"path":"a","con'
  const turns: ReadonlyArray<
    readonly [what: string, answer: Kit.Answer, kept: string, done: ReadonlyArray<string>]
  > = [
    [
      "arguments that end in the middle",
      [...Kit.text("so"), ...Kit.writes("c1", "echo", torn)],
      "first ",
      []
    ],
    [
      "arguments that end in the middle, behind a call that is whole",
      [Kit.call("c1", "echo"), ...Kit.writes("c2", "echo", torn)],
      "first ",
      []
    ],
    ["a call, and no finish", [...Kit.text("so"), Kit.call("c1", "echo")], "first ", []],
    [
      "a call, and an error",
      [...Kit.text("so"), Kit.call("c1", "echo"), Kit.fails(new Error("reset"))],
      "first ",
      []
    ],
    [
      "a stream that fails",
      [...Kit.text("so"), Kit.call("c1", "echo"), Kit.breaks(new Error("reset"))],
      "first ",
      []
    ],
    ["a refusal", { refuses: new Error("no") }, "first ", []],
    ["the token limit", [...Kit.text("so"), Kit.call("c1", "echo"), Kit.finish("length")], "first so", []],
    ["a filter", [...Kit.text("so"), Kit.call("c1", "echo"), Kit.finish("content-filter")], "first so", []],
    [
      "a tool that the client never answered",
      [...Kit.text("so"), Kit.call("c1", "ask", '{"q":1}'), Kit.call("c2", "echo"), Kit.finish("tool-calls")],
      "first so",
      ["c2"]
    ],
    [
      "a call of the provider's, and no result",
      [...Kit.text("so"), Kit.call("p1", "search", "{}", { providerExecuted: true }), Kit.finish("stop")],
      "first so",
      []
    ],
    ["nothing but white space", [...Kit.text(" \n"), Kit.finish()], "first  \n", []],
    ["nothing at all", [Kit.finish()], "first ", []]
  ]

  it.each(turns)("by %s", async (_, answer, kept, done) => {
    const place = Kit.set([first, answer, Kit.replies("ok")], { agent: { tools: { ask } } })
    await (await place.agent.stream("go", options)).getFullOutput()
    const prompt = await nextPrompt(place)
    expect(textIn(prompt, "assistant")).toBe(kept)
    expect(textIn(prompt, "user")).toBe("gonext")
    expect(successes(prompt)).toStrictEqual(["c0", ...done])
  })
})

describe("the turn after one that was stopped", () => {
  const answers: ReadonlyArray<Kit.Answer> = [
    [
      Kit.thinkStart("r"),
      Kit.thinks("hm", "r"),
      Kit.thinkEnd("r"),
      Kit.textStart(),
      Kit.says("I "),
      Kit.says("look. "),
      ...Kit.writes("c1", "echo", '{"n"', ":1}"),
      Kit.written("c1"),
      Kit.call("c1", "echo", '{"n":1}'),
      Kit.call("c2", "echo", '{"n":2}'),
      Kit.textEnd(),
      Kit.finish("tool-calls")
    ],
    Kit.replies("Found.")
  ]

  it("at any chunk: what was said is kept, nothing is made up", async () => {
    const { length } = (await Kit.run(answers)).chunks
    expect(length).toBeGreaterThan(20)
    for (let stopAt = 0; stopAt < length; stopAt++) {
      let isStopped = false
      const place = Kit.set(call => (isStopped ? Kit.replies("ok") : (answers[call] ?? [])))
      const output = await place.agent.stream("go", options)
      const seen = []
      for await (const chunk of output.fullStream) {
        seen.push(chunk)
        if (seen.length === stopAt + 1) void output.cancel("enough")
      }
      isStopped = true
      const callsBefore = place.calls.length
      // A run that has told its finish is over, and nobody can stop it.
      const before = output.status === "aborted" ? "abort" : "step-finish"
      expect([stopAt, seen.at(-2)?.type, seen.at(-1)?.type]).toStrictEqual([stopAt, before, "finish"])
      // Before the model was asked there may be no thread yet.
      if (callsBefore > 0) expect(textIn(await stored(place), "user")).toBe("go")
      const prompt = await nextPrompt(place)
      // Behind the abort nobody asked a model before this turn did.
      expect(place.calls).toHaveLength(callsBefore + 1)
      const told = only(seen, "text-delta").map(({ payload }) => payload.text)
      expect([stopAt, textIn(prompt, "assistant")]).toStrictEqual([stopAt, told.join("")])
      const succeeded = only(seen, "tool-result").map(({ payload }) => payload.toolCallId)
      expect([stopAt, [...successes(prompt)].sort()]).toStrictEqual([stopAt, [...succeeded].sort()])
    }
  })

  it("in a tool that hears nothing and is done later: that it was done is never told", async () => {
    const begun = latch()
    const gate = latch()
    const left = latch()
    const deaf = createTool({
      id: "deaf",
      execute: async () => {
        begun.open()
        await gate.wait
        setImmediate(left.open)
        return "done"
      }
    })
    const place = Kit.set([[Kit.call("c1", "deaf"), Kit.finish("tool-calls")], Kit.replies("ok")], {
      agent: { tools: { deaf } }
    })
    const output = await place.agent.stream("go", options)
    void output.text
    await begun.wait
    await output.cancel("enough")
    gate.open()
    await left.wait
    const prompt = await nextPrompt(place)
    expect(successes(prompt)).toStrictEqual([])
    expect(JSON.stringify(await stored(place))).not.toContain('"done"')
    expect(place.executed).toStrictEqual([])
  })
})

describe("the order of a thread", () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it.each([
    ["stands still", () => undefined],
    ["goes backwards", (turn: number) => vi.setSystemTime(1_000_000_000_000 - turn * 3_600_000)]
  ])("is that of saying while the clock %s", async (_, tick) => {
    vi.useFakeTimers({ toFake: ["Date"], now: 1_000_000_000_000 })
    const place = Kit.set(call => {
      tick(call)
      return call % 2 === 0
        ? [
            Kit.call(`a${call}`, "echo", '{"n":1}'),
            Kit.call(`b${call}`, "echo", '{"n":2}'),
            Kit.finish("tool-calls")
          ]
        : Kit.replies(`answer ${call}`)
    })
    for (const turn of [1, 2, 3]) await place.agent.generate(`question ${turn}`, options)
    const prompt = Kit.lastPrompt(place)
    expectPrompt(prompt)
    const turn = ["user", "assistant", "tool", "assistant"]
    expect(rolesOf(prompt)).toStrictEqual([...turn, ...turn, ...turn.slice(0, 3)])
    expect(textIn(prompt)).toBe("question 1answer 1question 2answer 3question 3")
    expect(rolesOf(await stored(place))).toStrictEqual([...turn, ...turn, ...turn])
  })

  it("holds for a long history that comes at once: the call is the last thing that was said, and made once", async () => {
    const place = Kit.set([[Kit.call("c1", "echo"), Kit.finish("tool-calls")], Kit.replies("ok")])
    const history = Array.from({ length: 80 }, (_, index) => ({
      id: `m${index}`,
      role: index % 2 === 0 ? ("user" as const) : ("assistant" as const),
      content: `${index} `
    }))
    const { chunks } = await (async () => {
      const output = await place.agent.stream([...history, "now"], options)
      return { chunks: await Kit.readAll(output) }
    })()
    const prompt = Kit.lastPrompt(place)
    expect(rolesOf(prompt).slice(-3)).toStrictEqual(["user", "assistant", "tool"])
    expect(textIn(prompt)).toBe(`${history.map(({ content }) => content).join("")}now`)
    expect(only(chunks, "tool-call")).toHaveLength(1)
  })

  it("is left alone by a prepareStep that gives the messages back", async () => {
    const script = () => [first, Kit.replies("one"), first, Kit.replies("two")]
    const plain = Kit.set(script())
    const given = Kit.set(script())
    for (const turn of ["a", "b"]) {
      await plain.agent.generate(turn, options)
      await given.agent.generate(turn, { ...options, prepareStep: ({ messages }) => ({ messages }) })
    }
    expect(given.calls.map(({ prompt }) => prompt)).toStrictEqual(plain.calls.map(({ prompt }) => prompt))
    expect(await stored(given)).toStrictEqual(await stored(plain))
  })
})

describe("what a client sends again", () => {
  const message = (id: string, role: "user" | "assistant", content: string) => ({ id, role, content })

  it("with its ids is taken in place, and the new message is answered", async () => {
    const place = Kit.set(() => Kit.replies("ok"))
    const four = [
      message("1", "user", "a"),
      message("2", "assistant", "b"),
      message("3", "user", "c"),
      message("4", "assistant", "d")
    ]
    await place.agent.generate(four, options)
    const before = (await stored(place)).length
    await place.agent.generate([...four, message("5", "user", "e")], options)
    const prompt = Kit.lastPrompt(place)
    expect(textIn(prompt)).toBe("abcdoke")
    expect(await stored(place)).toHaveLength(before + 2)
  })

  it("twice in one request is one message", async () => {
    const place = Kit.set(() => Kit.replies("ok"))
    await place.agent.generate([message("1", "user", "a"), message("1", "user", "a")], options)
    expect(textIn(Kit.lastPrompt(place))).toBe("a")
  })

  it("in another order leaves the order of the thread", async () => {
    const place = Kit.set(() => Kit.replies("ok"))
    await place.agent.generate([message("1", "user", "a"), message("2", "user", "b")], options)
    await place.agent.generate(
      [message("3", "user", "c"), message("2", "user", "b"), message("1", "user", "a")],
      options
    )
    expect(textIn(Kit.lastPrompt(place))).toBe("abokc")
  })
})

describe("calls that a client answers", () => {
  const answered = (toolCallId: string, value: string) => ({
    role: "tool" as const,
    content: [{ type: "tool-result" as const, toolCallId, toolName: "ask", output: { type: "text", value } }]
  })

  it("in requests of their own, in the other order: each is used as it comes, with the arguments as called", async () => {
    const place = Kit.set(
      [
        [Kit.call("c1", "ask", '{"q":1}'), Kit.call("c2", "ask", '{"q":2}'), Kit.finish("tool-calls")],
        Kit.replies("one is missing"),
        Kit.replies("both are here")
      ],
      { agent: { tools: { ask } } }
    )
    await place.agent.generate("go", options)
    await place.agent.generate([answered("c2", "two")], options)
    expectPrompt(Kit.lastPrompt(place))
    expect(successes(Kit.lastPrompt(place))).toStrictEqual(["c2"])
    await place.agent.generate([answered("c1", "one")], options)
    const prompt = Kit.lastPrompt(place)
    expectPrompt(prompt)
    expect(prompt[1]).toMatchObject({
      content: [
        { toolCallId: "c1", input: { q: 1 } },
        { toolCallId: "c2", input: { q: 2 } }
      ]
    })
    expect(prompt[2]).toMatchObject({
      content: [
        { toolCallId: "c1", toolName: "ask", output: { value: "one" } },
        { toolCallId: "c2", toolName: "ask", output: { value: "two" } }
      ]
    })
  })

  it("stand in the thread under the name of their tool", async () => {
    const place = Kit.set([[Kit.call("c1", "ask"), Kit.finish("tool-calls")], Kit.replies("thanks")], {
      agent: { tools: { ask } }
    })
    await place.agent.generate("go", options)
    await place.agent.generate([answered("c1", "one")], options)
    expect((await stored(place))[2]).toStrictEqual({
      role: "tool",
      content: [
        { type: "tool-result", toolCallId: "c1", toolName: "ask", output: { type: "text", value: "one" } }
      ]
    })
  })
})

describe("a store that insists on its threads", () => {
  /** Messages of a thread that is not there break it, as a foreign key does. */
  const strict = (): Storage & { readonly asked: ReadonlyArray<string> } => {
    const asked: Array<string> = []
    const driver = memoryThreads.make()
    const known = new Set<string>()
    const insisting: typeof driver = {
      ...driver,
      open: thread => {
        asked.push("open")
        known.add(thread.id)
        return driver.open(thread)
      },
      append: (id, messages, now) => {
        asked.push("append")
        return known.has(id) ? driver.append(id, messages, now) : Effect.die(new Error("foreign key"))
      }
    }
    return {
      id: "strict",
      asked,
      layer: withThreads(Layer.succeed(ThreadStore.ThreadStore, ThreadStore.make(insisting)))
    }
  }

  it.each([
    ["answers", Kit.replies("ok"), ["user", "assistant"]],
    ["fails", [...Kit.text("so"), Kit.fails(new Error("overloaded"))], ["user"]],
    ["refuses", { refuses: new Error("overloaded") }, ["user"]]
  ] as const)(
    "has the thread before its messages, and keeps the user's when the model %s",
    async (_, answer, roles) => {
      const storage = strict()
      const { model } = Kit.played([answer])
      const agent = new Agent({ id: "miller", model })
      const eddy = new Eddy({ agents: { agent }, storage, logger: memoryLogger() })
      await (await agent.stream("go", options)).getFullOutput()
      expect(storage.asked.slice(0, 2)).toStrictEqual(["open", "append"])
      expect(rolesOf((await eddy.threads.messages("t")).map(({ message }) => message))).toStrictEqual(roles)
    }
  )
})

it("a run that nobody waits for is in its thread all the same", async () => {
  const place = Kit.set([first, Kit.replies("ok")])
  const output = await place.agent.stream("go", options)
  for await (const chunk of output.fullStream) if (chunk.type === "text-delta") break
  await until(() => output.status === "success", "the run goes to its end without its reader")
  expect(textIn(await stored(place), "assistant")).toBe("first ok")
})
