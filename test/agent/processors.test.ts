/** Processors of an agent: what they see and change, how they stop a run, and that nothing of what they stop is left anywhere. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, Errors, type ModelPart, Processor } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Deferred, Effect, Fiber, TestClock } from "effect"
import { errorOf, failing, finishOf, modelOf, only, read, settle, textOf, types } from "./kit.js"
import { changing, ran, rejections, said } from "./processorsKit.js"

const { finish, reasoning, reply, text, toolCall } = ScriptedModel

const usage = { inputTokens: 3, outputTokens: 2, totalTokens: 5 }

describe("processInput", () => {
  it.effect("gives what is told, and nothing before it is stored or asked", () =>
    Effect.gen(function* () {
      const shout = Processor.make({
        id: "shout",
        processInput: messages =>
          messages.map(message =>
            message.role === "user"
              ? { role: "user" as const, content: [{ type: "text" as const, text: "HELLO" }] }
              : message
          )
      })
      const seen: Array<string> = []
      const look = Processor.make({
        id: "look",
        processInput: (messages, { stepNumber }) => {
          seen.push(`${stepNumber} ${said(messages)}`)
          return undefined
        }
      })
      const { full, requests } = yield* ran([reply("Hi.")], { inputProcessors: [shout, look] })
      expect(seen).toHaveLength(1)
      expect(seen[0]).toContain("HELLO")
      expect(said(requests[0]?.messages)).toContain("HELLO")
      expect(said(requests[0]?.messages)).not.toContain("Hello?")
      expect(full.status).toBe("success")
    })
  )

  it.effect("a text will do", () =>
    Effect.gen(function* () {
      const { requests } = yield* ran([reply("Hi.")], {
        inputProcessors: [Processor.make({ id: "text", processInput: () => "Other words" })]
      })
      expect(requests[0]?.messages).toEqual([
        { role: "user", content: [{ type: "text", text: "Other words" }] }
      ])
    })
  )

  it.effect("aborts: start, tripwire, finish, and nobody was asked", () =>
    Effect.gen(function* () {
      const { chunks, full, requests } = yield* ran([reply("Hi.")], {
        inputProcessors: [
          Processor.make({
            id: "gate",
            processInput: (_, { abort }) => abort("No.", { retry: true, metadata: { score: 1 } })
          })
        ]
      })
      expect(types(chunks)).toEqual(["start", "tripwire", "finish"])
      const tripwire = { reason: "No.", retry: true, metadata: { score: 1 }, processorId: "gate" }
      expect(only(chunks, "tripwire")[0]?.payload).toEqual(tripwire)
      expect(full).toMatchObject({ status: "tripwire", finishReason: "tripwire", text: "", tripwire })
      expect(finishOf(chunks).messages).toEqual({ all: [], user: [], nonUser: [] })
      expect(requests).toEqual([])
    })
  )
})

describe("processInputStep", () => {
  it.effect("changes what the model is told in a step, and only that", () =>
    Effect.gen(function* () {
      const steps: Array<number> = []
      const { full, requests } = yield* ran(
        [[...text("Looking."), toolCall("c1", "lookUp", {}), finish("tool-calls")], reply("Done.")],
        {
          inputProcessors: [
            Processor.make({
              id: "add",
              processInputStep: (messages, { stepNumber }) => {
                steps.push(stepNumber)
                return [...messages, { role: "system", content: `Step ${stepNumber}.` }]
              }
            })
          ]
        }
      )
      expect(steps).toEqual([0, 1])
      expect(requests.map(({ messages }) => messages.at(-1)?.content)).toEqual(["Step 0.", "Step 1."])
      expect(said(full.response.messages)).not.toContain("Step")
      expect(full.text).toBe("Looking.Done.")
    })
  )

  it.effect("what it leaves out of a call leaves the call out", () =>
    Effect.gen(function* () {
      const { requests } = yield* ran(
        [[toolCall("c1", "lookUp", {}), finish("tool-calls")], reply("Done.")],
        {
          inputProcessors: [
            Processor.make({
              id: "forget",
              processInputStep: messages => messages.filter(({ role }) => role !== "tool")
            })
          ]
        }
      )
      expect(requests[1]?.messages.map(({ role }) => role)).toEqual(["user"])
    })
  )

  it.effect("aborts between steps: what was said before stays", () =>
    Effect.gen(function* () {
      const { chunks, full } = yield* ran(
        [[...text("Looking."), toolCall("c1", "lookUp", {}), finish("tool-calls", usage)]],
        {
          inputProcessors: [
            Processor.make({
              id: "gate",
              processInputStep: (_, { abort, stepNumber }) =>
                stepNumber === 1 ? abort("Enough.") : undefined
            })
          ]
        }
      )
      expect(types(chunks).slice(-3)).toEqual(["step-finish", "tripwire", "finish"])
      expect(full).toMatchObject({ status: "tripwire", text: "Looking.", usage })
      expect(full.steps).toHaveLength(1)
    })
  )
})

describe("processOutputStream", () => {
  it.effect("what is told is what is remembered", () =>
    Effect.gen(function* () {
      const { chunks, full, requests } = yield* ran(
        [
          [
            ...reasoning("I think badly"),
            ...text("One bad word"),
            toolCall("c1", "lookUp", {}),
            finish("tool-calls")
          ],
          reply("All bad")
        ],
        {
          outputProcessors: [
            changing(words => words.replace("bad", "good")),
            changing(words => (words === " word" ? undefined : words))
          ]
        }
      )
      expect(full.text).toBe("One goodAll good")
      expect(textOf(chunks)).toBe(full.text)
      expect(full.reasoning).toBe("I think goodly")
      expect(full.steps.map(step => step.text)).toEqual(["One good", "All good"])
      expect(only(chunks, "step-finish").map(({ payload }) => payload.output.text)).toEqual([
        "One good",
        "All good"
      ])
      expect(finishOf(chunks).output.text).toBe(full.text)
      expect(said(requests[1]?.messages)).toContain("One good")
      expect(said([full, chunks, requests[1]])).not.toMatch(/bad| word/)
    })
  )

  it.effect("gives several chunks for one, in order, through those that follow", () =>
    Effect.gen(function* () {
      const twice = Processor.make({
        id: "twice",
        processOutputStream: chunk =>
          chunk.type === "text-delta"
            ? [chunk, { type: "data-seen", runId: chunk.runId, from: "USER", data: 1 }, chunk]
            : chunk
      })
      const { chunks, full } = yield* ran([reply("a b")], {
        outputProcessors: [twice, changing(words => words.toUpperCase())]
      })
      expect(full.text).toBe("AA B B")
      expect(types(chunks).filter(type => type === "data-seen")).toHaveLength(2)
    })
  )

  it.effect("holds back, and tells it before its block ends", () =>
    Effect.gen(function* () {
      const late = Processor.make({
        id: "late",
        processOutputStream: (chunk, { state }) => {
          if (chunk.type === "text-delta") {
            state["held"] = `${state["held"] ?? ""}${chunk.payload.text}`
            return undefined
          }
          if (chunk.type !== "text-end") return chunk
          const { runId, payload } = chunk
          const delta = { id: payload.id, text: String(state["held"]) }
          return [{ type: "text-delta", runId, from: "AGENT", payload: delta }, chunk]
        }
      })
      const { chunks, full } = yield* ran([reply("one two three")], { outputProcessors: [late] })
      expect(types(chunks)).toEqual([
        "start",
        "step-start",
        "text-start",
        "text-delta",
        "text-end",
        "step-finish",
        "finish"
      ])
      expect(full.text).toBe("one two three")
    })
  )

  it.effect("sees edges and calls, which stay", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const nothing = Processor.make({
        id: "nothing",
        processOutputStream: chunk => {
          seen.push(chunk.type)
          return undefined
        }
      })
      const { chunks, full } = yield* ran(
        [[...text("Looking."), toolCall("c1", "lookUp", {}), finish("tool-calls")], reply("Done.")],
        { outputProcessors: [nothing] }
      )
      expect(seen.slice(0, 5)).toEqual(["step-start", "text-start", "text-delta", "text-end", "tool-call"])
      expect(full.text).toBe("")
      expect(full.toolResults).toHaveLength(1)
      expect(types(chunks)).not.toContain("text-delta")
      expect(full.response.messages.map(({ role }) => role)).toEqual(["assistant", "tool"])
    })
  )

  it.effect("drops and changes sources, files and what the response says", () =>
    Effect.gen(function* () {
      const parts: ReadonlyArray<ModelPart.ModelPart> = [
        { type: "response-metadata", id: "secret-id" },
        { type: "source", id: "s1", sourceType: "url", url: "https://bad.example" },
        { type: "file", data: "YmFk", mediaType: "text/plain" },
        { type: "file", data: "Z29vZA", mediaType: "text/plain" },
        ...reply("Done.")
      ]
      const clean = Processor.make({
        id: "clean",
        processOutputStream: chunk => {
          if (chunk.type === "source" || chunk.type === "response-metadata") return undefined
          if (chunk.type !== "file") return chunk
          return chunk.payload.data === "YmFk"
            ? undefined
            : { ...chunk, payload: { ...chunk.payload, mimeType: "text/markdown" } }
        }
      })
      const { chunks, full } = yield* ran([parts], { outputProcessors: [clean] })
      expect(full.sources).toEqual([])
      expect(full.files.map(({ payload }) => payload.mimeType)).toEqual(["text/markdown"])
      expect(full.response.messages[0]?.content).toEqual([
        { type: "file", data: "Z29vZA", mediaType: "text/markdown" },
        { type: "text", text: "Done." }
      ])
      expect(said([chunks, full])).not.toMatch(/YmFk|secret-id|bad\.example/)
    })
  )

  it.effect("a signature is not for other words, and stays with those that only came in other pieces", () =>
    Effect.gen(function* () {
      const signed = (id: string, words: string): ReadonlyArray<ModelPart.ModelPart> => [
        { type: "reasoning-start", id },
        { type: "reasoning-delta", id, delta: words },
        { type: "reasoning-end", id, providerMetadata: { anthropic: { signature: `signed ${words}` } } }
      ]
      const split = Processor.make({
        id: "split",
        processOutputStream: chunk =>
          chunk.type === "reasoning-delta"
            ? [...chunk.payload.text].map(character => ({
                ...chunk,
                payload: { ...chunk.payload, text: character === "x" ? "y" : character }
              }))
            : chunk
      })
      const { full } = yield* ran([[...signed("r1", "abc"), ...signed("r2", "axc"), ...reply("Done.")]], {
        outputProcessors: [split]
      })
      expect(full.response.messages[0]?.content).toEqual([
        { type: "reasoning", text: "abc", providerOptions: { anthropic: { signature: "signed abc" } } },
        { type: "reasoning", text: "ayc" },
        { type: "text", text: "Done." }
      ])
    })
  )

  it.effect("aborts: what was told stays on the stream, and is in nothing", () =>
    Effect.gen(function* () {
      const block = Processor.blockWhen({
        chunk: chunk => chunk.type === "text-delta" && chunk.payload.text.includes("bad"),
        reason: "Bad words."
      })
      const { chunks, full } = yield* ran(
        [
          [...text("Fine."), toolCall("c1", "lookUp", {}), finish("tool-calls", usage)],
          [...reasoning("Hm."), ...text("So bad words"), finish("stop", usage)]
        ],
        { outputProcessors: [block] }
      )
      expect(types(chunks).slice(-5)).toEqual(["text-start", "text-delta", "text-end", "tripwire", "finish"])
      expect(textOf(chunks)).toBe("Fine.So")
      expect(full).toMatchObject({ status: "tripwire", text: "Fine.", usage })
      expect(full.steps).toHaveLength(1)
      expect(full.reasoning).toBeUndefined()
      expect(finishOf(chunks).output.text).toBe("Fine.")
      expect(said(full.response.messages)).not.toMatch(/So|Hm/)
    })
  )

  it.effect("with retry the step is tried again, with the reason, and nothing of it is left", () =>
    Effect.gen(function* () {
      const counts: Array<number> = []
      const guard = Processor.make({
        id: "guard",
        processOutputStream: (chunk, { abort, retryCount, stepNumber }) => {
          if (chunk.type !== "text-delta" || !chunk.payload.text.includes("bad")) return chunk
          counts.push(retryCount, stepNumber)
          return abort("Be nice.", { retry: true, metadata: { score: 2 } })
        }
      })
      const { chunks, full, requests } = yield* ran(
        [
          [...text("It is bad"), toolCall("c1", "lookUp", {}), finish("tool-calls")],
          [...text("It is good"), toolCall("c2", "lookUp", {}), finish("tool-calls", usage)],
          [...text("still bad"), finish("stop", usage)],
          reply("Done.", usage)
        ],
        { outputProcessors: [guard], maxSteps: 2 }
      )
      expect(counts).toEqual([0, 0, 0, 1])
      expect(full).toMatchObject({ status: "success", text: "It is goodDone." })
      expect(full.steps.map(step => step.text)).toEqual(["It is good", "Done."])
      const tripwire = { reason: "Be nice.", retry: true, metadata: { score: 2 }, processorId: "guard" }
      for (const rejected of rejections(chunks)) {
        expect(rejected).toMatchObject({
          stepResult: { reason: "tripwire", isContinued: true },
          output: { text: "", toolCalls: [] },
          metadata: { tripwire }
        })
      }
      expect(rejections(chunks)).toHaveLength(2)
      expect(requests[1]?.messages.at(-1)?.content).toMatch(/guard.*Be nice\./)
      expect(said([requests, full])).not.toMatch(/It is bad|still/)
    })
  )

  it.effect("retries are counted for each step, and used up", () =>
    Effect.gen(function* () {
      const { chunks, full, requests } = yield* ran(
        Array.from({ length: 3 }, () => reply("bad", usage)),
        {
          outputProcessors: [Processor.blockWhen({ text: words => words === "bad", retry: true })],
          maxProcessorRetries: 2
        }
      )
      expect(requests).toHaveLength(3)
      expect(rejections(chunks).map(({ stepResult }) => stepResult.isContinued)).toEqual([true, true, false])
      expect(full).toMatchObject({
        status: "tripwire",
        text: "",
        steps: [],
        usage: { inputTokens: 9, outputTokens: 6, totalTokens: 15 }
      })
      expect(only(chunks, "tripwire")[0]?.payload.retry).toBe(true)
    })
  )
})

describe("judges", () => {
  it.effect("a step is judged before its tools are executed", () =>
    Effect.gen(function* () {
      const { chunks, full } = yield* ran(
        [[...text("Looking."), toolCall("c1", "lookUp", {}), finish("tool-calls", usage)]],
        {
          outputProcessors: [
            Processor.make({
              id: "judge",
              processOutputStep: ({ toolCalls }, { abort }) =>
                toolCalls.length > 0 ? abort("No tools.") : undefined
            })
          ]
        }
      )
      expect(types(chunks).slice(-4)).toEqual(["tool-error", "step-finish", "tripwire", "finish"])
      expect(only(chunks, "tool-error")[0]?.payload.error).toBeInstanceOf(Errors.RunBlocked)
      expect(full).toMatchObject({ status: "tripwire", text: "", toolCalls: [], usage })
      expect(full.response.messages).toEqual([])
    })
  )

  it.effect("see the whole answer, as it was told; the result is one that leaves no call", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const judge = Processor.make({
        id: "judge",
        processOutputStep: ({ finishReason, reasoning: thought, text: words, toolCalls }) => {
          seen.push(["step", words, thought, toolCalls.length, finishReason])
          return undefined
        },
        processOutputResult: ({ text: words }) => {
          seen.push(["result", words])
          return Effect.succeed({ metadata: { score: 7 } })
        }
      })
      const more = Processor.make({ id: "more", processOutputResult: () => ({ metadata: { by: "more" } }) })
      const { chunks, full } = yield* ran(
        [
          [...reasoning("hm"), ...text("looking"), toolCall("c1", "lookUp", {}), finish("tool-calls")],
          reply("done")
        ],
        { outputProcessors: [changing(words => words.toUpperCase()), judge, more] }
      )
      expect(seen).toEqual([
        ["step", "LOOKING", "HM", 1, "tool-calls"],
        ["step", "DONE", "", 0, "stop"],
        ["result", "DONE"]
      ])
      expect(full.response.uiMessages[0]?.metadata).toEqual({ score: 7, by: "more" })
      expect(finishOf(chunks).response.uiMessages[0]?.metadata).toEqual({ score: 7, by: "more" })
    })
  )

  it.effect("a rejected result is asked for again", () =>
    Effect.gen(function* () {
      const { full } = yield* ran([reply("bad"), reply("good")], {
        outputProcessors: [
          Processor.make({
            id: "judge",
            processOutputResult: ({ text: words }, { abort }) =>
              words === "bad" ? abort("Better, please.", { retry: true }) : undefined
          })
        ]
      })
      expect(full).toMatchObject({ status: "success", text: "good" })
      expect(full.steps).toHaveLength(1)
    })
  )
})

describe("a processor that fails", () => {
  const broken = new Error("broken")
  const hooks: ReadonlyArray<readonly [string, Processor.Hooks]> = [
    ["processInput", { processInput: () => Effect.fail(broken) }],
    ["processInput", { processInput: () => Effect.die(broken) }],
    [
      "processInputStep",
      {
        processInputStep: () => {
          throw broken
        }
      }
    ],
    [
      "processOutputStream",
      {
        processOutputStream: () => {
          throw broken
        }
      }
    ],
    [
      "processOutputStream",
      { processOutputStream: () => Effect.zipRight(Effect.yieldNow(), Effect.fail(broken)) }
    ],
    ["processOutputStep", { processOutputStep: () => Effect.fail(broken) }],
    ["processOutputResult", { processOutputResult: () => Effect.die(broken) }]
  ]

  it.effect.each(hooks)("fails the run: %s", ([hook, given]) =>
    Effect.gen(function* () {
      const processor = Processor.make({ id: "faulty", ...given })
      const isInput = hook.startsWith("processInput")
      const { chunks, full } = yield* ran([reply("Hi.")], {
        [isInput ? "inputProcessors" : "outputProcessors"]: [processor]
      })
      expect(full.status).toBe("failed")
      expect(errorOf(chunks)).toMatchObject({
        _tag: "ProcessorFailed",
        processorId: "faulty",
        hook,
        cause: broken
      })
      expect(full.response.messages).toEqual([])
    })
  )

  const wrong: ReadonlyArray<readonly [string, unknown]> = [
    ["processInput", 5],
    ["processInput", [{ role: "nobody" }]],
    ["processInput", []],
    ["processInputStep", []],
    ["processOutputStream", "text"],
    ["processOutputStream", [null]],
    ["processOutputStream", { type: "finish" }],
    ["processOutputStream", { type: "text-delta", payload: { id: "other", text: "a" } }],
    ["processOutputStream", { type: "text-delta", payload: { id: "text" } }],
    ["processOutputStep", false],
    ["processOutputResult", "fine"]
  ]

  it.effect.each(wrong)("fails the run with what it may not give: %s %j", ([hook, given]) =>
    Effect.gen(function* () {
      const hooksOf = { [hook]: () => given } as Processor.Hooks
      const isInput = hook.startsWith("processInput")
      const { chunks } = yield* ran([reply("Hi.")], {
        [isInput ? "inputProcessors" : "outputProcessors"]: [Processor.make({ id: "faulty", ...hooksOf })]
      })
      expect(errorOf(chunks)).toMatchObject({ _tag: "ProcessorFailed", processorId: "faulty", hook })
    })
  )

  it.effect("a call that is changed fails the run, and is not executed", () =>
    Effect.gen(function* () {
      const { chunks } = yield* ran([[toolCall("c1", "lookUp", {}), finish("tool-calls")]], {
        outputProcessors: [
          Processor.make({
            id: "faulty",
            processOutputStream: chunk =>
              chunk.type === "tool-call"
                ? { ...chunk, payload: { ...chunk.payload, args: { other: 1 } } }
                : chunk
          })
        ]
      })
      expect(errorOf(chunks)).toMatchObject({ _tag: "ProcessorFailed", hook: "processOutputStream" })
      expect(types(chunks)).not.toContain("tool-result")
    })
  )
})

describe("abort", () => {
  it.effect("cannot be caught, retried or raced away", () =>
    Effect.gen(function* () {
      const passed: Array<string> = []
      const stubborn = Processor.make({
        id: "stubborn",
        processOutputStep: (_, { abort }) =>
          abort("Stop.").pipe(
            Effect.catchAllCause(() => Effect.void),
            Effect.retry({ times: 3 }),
            Effect.uninterruptible,
            Effect.timeoutTo({ duration: "1 second", onSuccess: () => 1, onTimeout: () => 2 }),
            Effect.map(() => void passed.push("passed"))
          )
      })
      const { full } = yield* ran([reply("Hi.")], { outputProcessors: [stubborn] })
      expect(full).toMatchObject({ status: "tripwire", text: "" })
      expect(passed).toEqual([])
    })
  )

  it.effect("the first call counts", () =>
    Effect.gen(function* () {
      const both = Processor.make({
        id: "both",
        processOutputStep: (_, { abort }) =>
          Effect.all([abort("one"), abort("two")], { concurrency: 2, discard: true })
      })
      const { full } = yield* ran([reply("Hi.")], { outputProcessors: [both] })
      expect(full.tripwire?.reason).toBe("one")
    })
  )
})

describe("hooks that take their time", () => {
  const slowly = (milliseconds: number) =>
    Processor.make({
      id: "slowly",
      processOutputStream: chunk => Effect.as(Effect.sleep(milliseconds), chunk)
    })

  it.effect("keep the order, and end the step when everything has passed", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.fork(
        ran([reply("one two three four")], {
          outputProcessors: [slowly(10), changing(words => words.toUpperCase())]
        })
      )
      for (let passed = 0; passed < 20; passed++) {
        yield* settle
        yield* TestClock.adjust(10)
      }
      const { chunks, full } = yield* Fiber.join(fiber)
      expect(textOf(chunks)).toBe("ONE TWO THREE FOUR")
      expect(full).toMatchObject({ status: "success", text: "ONE TWO THREE FOUR" })
    })
  )

  it.effect("hold the model", () =>
    Effect.gen(function* () {
      let pulled = 0
      const source = async function* (): AsyncGenerator<ModelPart.ModelPart> {
        for (let index = 0; index < 1000; index++) {
          pulled++
          yield { type: "text-delta", id: "a", delta: "x" }
        }
      }
      const agent = Agent.make({
        id: "held",
        model: modelOf([source]).model,
        outputProcessors: [Processor.make({ id: "never", processOutputStream: () => Effect.never })]
      })
      const fiber = yield* Effect.fork(read(Agent.stream(agent, "go")))
      yield* settle
      yield* settle
      expect(pulled).toBeLessThan(64)
      yield* Fiber.interrupt(fiber)
    })
  )

  it.effect("an abort of the run does not wait for them", () =>
    Effect.gen(function* () {
      const stopped = yield* Deferred.make<void>()
      const controller = new AbortController()
      const agent = Agent.make({
        id: "stuck",
        model: ScriptedModel.make([reply("one two")]),
        outputProcessors: [
          Processor.make({
            id: "stuck",
            processOutputStream: chunk =>
              chunk.type === "text-delta" && chunk.payload.text !== "one"
                ? Effect.onInterrupt(Effect.never, () => Deferred.succeed(stopped, undefined))
                : chunk
          })
        ]
      })
      const fiber = yield* Effect.fork(read(Agent.stream(agent, "go", { abortSignal: controller.signal })))
      yield* settle
      controller.abort("enough")
      const { chunks } = yield* Fiber.join(fiber)
      yield* Deferred.await(stopped)
      expect(types(chunks).slice(-4)).toEqual(["text-delta", "text-end", "abort", "finish"])
      expect(finishOf(chunks).output.text).toBe("one")
      expect(said(finishOf(chunks).messages.all)).not.toContain("two")
    })
  )

  it.effect("an abort while an answer is judged leaves nothing of it to remember", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const agent = Agent.make({
        id: "judged",
        model: ScriptedModel.make([reply("unjudged")]),
        outputProcessors: [Processor.make({ id: "judge", processOutputStep: () => Effect.never })]
      })
      const fiber = yield* Effect.fork(read(Agent.stream(agent, "go", { abortSignal: controller.signal })))
      yield* settle
      controller.abort("enough")
      const { chunks } = yield* Fiber.join(fiber)
      expect(types(chunks).slice(-2)).toEqual(["abort", "finish"])
      expect(said(finishOf(chunks).messages.all)).not.toContain("unjudged")
    })
  )
})

describe("what is made again", () => {
  it.effect("a call of which a processor has let nothing out", () =>
    Effect.gen(function* () {
      const model = [
        ScriptedModel.make([failing({ statusCode: 400 }, { type: "text-delta", id: "a", delta: "half" })]),
        ScriptedModel.make([reply("whole")])
      ]
      const held = Processor.redact({ patterns: { never: /\bnever\b/ }, data: [], longest: 10 })
      const agent = Agent.make({ id: "again", model, outputProcessors: [held] })
      const { chunks } = yield* read(Agent.stream(agent, "go"))
      expect(textOf(chunks)).toBe("whole")
      expect(types(chunks)).not.toContain("error")
    })
  )

  it.effect("data that a processor wrote goes with the call that came to nothing", () =>
    Effect.gen(function* () {
      const model = [ScriptedModel.make([failing({ statusCode: 400 })]), ScriptedModel.make([reply("whole")])]
      const writer = Processor.make({
        id: "writer",
        processOutputStream: (chunk, { writeData }) =>
          chunk.type === "step-start" ? Effect.as(writeData({ type: "data-begun", data: 1 }), chunk) : chunk
      })
      const agent = Agent.make({ id: "again", model, outputProcessors: [writer] })
      const { chunks } = yield* read(Agent.stream(agent, "go"))
      expect(textOf(chunks)).toBe("whole")
      expect(types(chunks).filter(type => type === "data-begun").length).toBeLessThan(3)
    })
  )
})

describe("options", () => {
  const pass = Processor.make({ id: "pass", processInput: () => undefined })

  it.effect("those of a run replace those of the agent", () =>
    Effect.gen(function* () {
      const agent = Agent.make({
        id: "guarded",
        model: ScriptedModel.make([reply("Hi.")]),
        inputProcessors: [Processor.make({ id: "gate", processInput: (_, { abort }) => abort("No.") })]
      })
      const { text: words } = yield* Agent.generate(agent, "go", { inputProcessors: [pass] })
      expect(words).toBe("Hi.")
    })
  )

  it("what cannot work is refused", () => {
    const model = ScriptedModel.make([])
    const refused = (make: () => unknown) => expect(make).toThrow(Errors.InvalidConfiguration)
    refused(() => Processor.make({ id: "", processInput: () => undefined }))
    refused(() => Processor.make({ id: "none" }))
    refused(() => Processor.make({ id: "odd", processInputs: () => undefined } as Processor.Options))
    refused(() => Agent.make({ id: "a", model, outputProcessors: [pass] }))
    refused(() => Agent.make({ id: "a", model, inputProcessors: [{} as Processor.Processor] }))
    refused(() => Agent.make({ id: "a", model, maxProcessorRetries: -1 }))
  })

  it.effect("state is fresh in each run, and one for all hooks", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const counting = Processor.make({
        id: "counting",
        processInput: (_, { state }) => {
          state["count"] = Number(state["count"] ?? 0) + 1
          return undefined
        },
        processOutputStep: (_, { state }) => {
          seen.push(state["count"])
          return undefined
        }
      })
      const options = { inputProcessors: [counting], outputProcessors: [counting] }
      yield* ran([reply("Hi.")], options)
      yield* ran([reply("Hi.")], options)
      expect(seen).toEqual([1, 1])
    })
  )
})

describe("a sub-agent", () => {
  it.effect("that is stopped is a failed call, told by its reason", () =>
    Effect.gen(function* () {
      const leaf = Agent.make({
        id: "leaf",
        model: ScriptedModel.make([reply("bad", usage)]),
        outputProcessors: [Processor.blockWhen({ text: () => "Not that." })]
      })
      const boss = Agent.make({
        id: "boss",
        model: ScriptedModel.make([
          [toolCall("c1", "agent-leaf", { prompt: "go" }), finish("tool-calls")],
          reply("Sorry.")
        ]),
        tools: [Agent.asTool(leaf)]
      })
      const { chunks } = yield* read(Agent.stream(boss, "go"))
      const [failed] = only(chunks, "tool-error")
      expect(failed?.payload.error).toBeInstanceOf(Errors.RunBlocked)
      expect(String(failed?.payload.error)).toContain("Not that.")
      expect(finishOf(chunks).output.usage).toMatchObject(usage)
      expect(textOf(chunks)).toBe("Sorry.")
    })
  )
})
