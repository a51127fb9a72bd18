/** What a step asks: settings that a run, a function or `prepareStep` changes, and what a model is told of a tool's output. */
import { describe, expect, it } from "@effect/vitest"
import {
  Agent,
  type Chunk,
  Errors,
  Id,
  type LanguageModel,
  Message,
  type ModelPart,
  type PrepareStep,
  type RequestContext,
  type RunOptions,
  type StepChanges,
  type StepState,
  Tool
} from "eddy"
import { ScriptedModel } from "eddy/testing"
import {
  Context,
  Data,
  Deferred,
  Effect,
  Either,
  Exit,
  Fiber,
  Layer,
  Schema,
  Stream,
  Supervisor
} from "effect"
import { expectGrammar } from "../support/grammar.js"
import {
  chunksOf,
  errorOf,
  evenly,
  failing,
  finishOf,
  inTime,
  only,
  read,
  refusal,
  settle,
  textOf,
  types
} from "./kit.js"

const { finish: ends, reply, text, toolCall } = ScriptedModel

class Oops extends Data.TaggedError("Oops")<{ readonly message: string }> {}

const echo = Tool.make("echo", {
  input: Schema.Struct({ say: Schema.String }),
  execute: ({ say }) => Effect.succeed(say)
})

const other = Tool.make("other", { execute: () => Effect.succeed("other") })

const callEcho = (id: string, say = id): ReadonlyArray<ModelPart.ModelPart> => [
  toolCall(id, "echo", { say }),
  ends("tool-calls")
]

/** So many steps with a call, then `done`. */
const steps = (count: number, modelId = "script") =>
  ScriptedModel.make(
    [...Array.from({ length: count }, (_, index) => callEcho(`c${index + 1}`)), reply("done")],
    { modelId }
  )

const agentOf = (
  model: Agent.Options<[]>["model"],
  more: Omit<Agent.Options<[typeof echo, typeof other]>, "id" | "model" | "tools"> = {}
) => Agent.make({ id: "stepper", model, tools: [echo, other], ...more })

const run = (agent: Agent.Agent, options: RunOptions<ReadonlyArray<Tool.Tool>, undefined> = {}) =>
  inTime(read(Agent.stream(agent, "go", options))).pipe(evenly, Effect.provide(Id.layerSequential))

/** Changes this step (0-based) and no other. */
const only1 =
  (changes: StepChanges): PrepareStep =>
  ({ stepNumber }) =>
    stepNumber === 1 ? changes : undefined

const expectRefused = (chunks: ReadonlyArray<Chunk.Chunk>, error: object): void => {
  expectGrammar(chunks)
  expect(types(chunks).slice(-2)).toStrictEqual(["error", "finish"])
  expect(errorOf(chunks)).toMatchObject(error)
  expect(finishOf(chunks).stepResult).toStrictEqual({ reason: "error", isContinued: false })
}

/** What a stream that cannot begin fails with: nothing was told before. */
const refusalOf = <R>(stream: Stream.Stream<Chunk.Chunk, unknown, R>) =>
  Effect.map(read(stream), ({ chunks, exit }) => {
    expect(chunks).toHaveLength(0)
    if (Exit.isSuccess(exit)) throw new Error("Nothing was refused")
    return exit.cause._tag === "Fail" ? exit.cause.error : exit.cause
  })

const outputsOf = (request: LanguageModel.ModelRequest | undefined) => {
  const last = request?.messages.at(-1)
  return last?.role === "tool" ? last.content.map(({ output }) => output) : undefined
}

const errorsOf = (chunks: ReadonlyArray<Chunk.Chunk>) =>
  only(chunks, "tool-error").map(({ payload }) => payload.error)

describe("prepareStep", () => {
  it.effect("knows the step, those before it, the conversation, the model and the request", () =>
    Effect.gen(function* () {
      const states: Array<StepState> = []
      const model = steps(2)
      const requestContext: RequestContext = new Map()
      yield* run(agentOf(model, { instructions: "Be brief." }), {
        requestContext,
        prepareStep: state => {
          states.push(state)
          return undefined
        }
      })
      expect(states.map(({ stepNumber }) => stepNumber)).toStrictEqual([0, 1, 2])
      // What it was told does not change later.
      expect(states.map(({ steps }) => steps.length)).toStrictEqual([0, 1, 2])
      expect(
        states[2]?.steps.map(({ stepNumber, toolResults }) => [stepNumber, toolResults.length])
      ).toStrictEqual([
        [0, 1],
        [1, 1]
      ])
      expect(states.map(({ messages }) => [Message.system("Be brief."), ...messages])).toStrictEqual(
        model.requests.map(({ messages }) => messages)
      )
      for (const state of states) {
        expect(state.model).toBe(model)
        expect(state.requestContext).toBe(requestContext)
      }
    })
  )

  const settings = {
    instructions: "Be brief.",
    toolChoice: "auto",
    modelSettings: { temperature: 0.1, seed: 3 },
    providerOptions: { kit: { effort: "low" } }
  } as const

  const changes: ReadonlyArray<
    readonly [what: string, changes: StepChanges, asked: Partial<LanguageModel.ModelRequest>]
  > = [
    ["nothing", {}, {}],
    [
      "the instructions",
      { instructions: "Be long." },
      { messages: [Message.system("Be long."), Message.user("go"), expect.anything(), expect.anything()] }
    ],
    [
      "no instructions",
      { instructions: "" },
      { messages: [Message.user("go"), expect.anything(), expect.anything()] }
    ],
    [
      "the messages",
      { messages: "other" },
      { messages: [Message.system("Be brief."), Message.user("other")] }
    ],
    ["a choice of tool", { toolChoice: "required" }, { toolChoice: "required" }],
    [
      "a choice of one tool",
      { toolChoice: { type: "tool", toolName: "echo" } },
      { toolChoice: { type: "tool", toolName: "echo" } }
    ],
    ["the settings of the model", { modelSettings: { seed: 4 } }, { settings: { seed: 4 } }],
    ["the provider's options", { providerOptions: {} }, { providerOptions: {} }],
    ["active tools", { activeTools: ["other"] }, { tools: [other.definition] }],
    ["no active tools", { activeTools: [] }, { tools: [] }],
    [
      "one more tool",
      { tools: [Tool.make("more", {})] },
      { tools: [echo.definition, other.definition, Tool.make("more", {}).definition] }
    ],
    [
      "a tool in place of another",
      { tools: [Tool.make("other", { description: "new" })] },
      { tools: [echo.definition, Tool.make("other", { description: "new" }).definition] }
    ]
  ]

  it.effect.each(changes)("may change %s, for one step", ([, given, asked]) =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        callEcho("c1"),
        [...text("x"), toolCall("c2", "nobody", {}), ends("tool-calls")],
        reply("done")
      ])
      const { chunks } = yield* run(agentOf(model, settings), { prepareStep: only1(given) })
      const plain = ScriptedModel.make([
        callEcho("c1"),
        [...text("x"), toolCall("c2", "nobody", {}), ends("tool-calls")],
        reply("done")
      ])
      const unchanged = yield* run(agentOf(plain, settings))
      expectGrammar(chunks)
      expect(model.requests[0]).toStrictEqual(plain.requests[0])
      expect(model.requests[1]).toStrictEqual({ ...plain.requests[1], ...asked })
      expect({ ...model.requests[2], messages: [] }).toStrictEqual({ ...plain.requests[2], messages: [] })
      expect(types(chunks)).toStrictEqual(types(unchanged.chunks))
      // Of the conversation nothing has changed but what the model is told of its wrong call.
      expect(finishOf(chunks).response.messages.map(({ role }) => role)).toStrictEqual(
        finishOf(unchanged.chunks).response.messages.map(({ role }) => role)
      )
      expect(finishOf(chunks).messages.user).toStrictEqual([Message.user("go")])
    })
  )

  it.effect("may change the model, for one step; the step says which", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([callEcho("c1"), reply("done")])
      const second = ScriptedModel.make([callEcho("c2")], { modelId: "second" })
      const { chunks } = yield* run(agentOf(model), { prepareStep: only1({ model: second }) })
      expectGrammar(chunks)
      expect(second.requests[0]?.messages).toHaveLength(3)
      expect(only(chunks, "step-start").map(({ payload }) => payload.request.modelId)).toStrictEqual([
        "script",
        "second",
        "script"
      ])
      expect(only(chunks, "step-finish").map(({ payload }) => payload.metadata["modelId"])).toStrictEqual([
        "script",
        "second",
        "script"
      ])
      expect(finishOf(chunks).metadata).toStrictEqual({ provider: "scripted", modelId: "script" })
    })
  )

  it.effect("may give a list of models: those fall back among themselves, in this step", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([callEcho("c1"), reply("done")])
      const a = ScriptedModel.make([failing(refusal(401)), reply("never")], { modelId: "a" })
      const b = ScriptedModel.make([failing(refusal(503)), callEcho("c2"), reply("never")], { modelId: "b" })
      const { chunks } = yield* run(agentOf(model, { maxRetries: 1 }), {
        prepareStep: only1({ model: [a, { model: b }] })
      })
      expectGrammar(chunks)
      expect([a, b, model].map(({ requests }) => requests.length)).toStrictEqual([1, 2, 2])
      expect(only(chunks, "step-start").map(({ payload }) => payload.request.modelId)).toStrictEqual([
        "script",
        "b",
        "script"
      ])
      expect(textOf(chunks)).toBe("done")
    })
  )

  it.effect("may give a list of models to a run that has fallen back: it begins at its own first", () =>
    Effect.gen(function* () {
      const first = ScriptedModel.make([failing(refusal(401))], { modelId: "first" })
      const second = ScriptedModel.make([callEcho("c1"), reply("done")], { modelId: "second" })
      const a = ScriptedModel.make([callEcho("c2")], { modelId: "a" })
      const b = ScriptedModel.make([], { modelId: "b" })
      const { chunks } = yield* run(agentOf([first, second]), { prepareStep: only1({ model: [a, b] }) })
      expectGrammar(chunks)
      expect(only(chunks, "step-start").map(({ payload }) => payload.request.modelId)).toStrictEqual([
        "second",
        "a",
        "second"
      ])
    })
  )

  it.effect("that gives a list of which all fail fails the run: the run's own models are not asked", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([callEcho("c1"), reply("never")])
      const a = ScriptedModel.make([failing(refusal(401))], { modelId: "a" })
      const { chunks } = yield* run(agentOf([model, model]), { prepareStep: only1({ model: [a] }) })
      expectRefused(chunks, { _tag: "ModelError", modelId: "a", statusCode: 401 })
      expect(model.requests).toHaveLength(1)
      expect(finishOf(chunks).metadata).toMatchObject({ modelId: "a" })
    })
  )

  it.effect("is asked once for each step, however often its model is asked, and knows who took over", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const first = ScriptedModel.make([failing(refusal(503)), failing(refusal(401))], { modelId: "first" })
      const second = ScriptedModel.make([callEcho("c1"), reply("done")], { modelId: "second" })
      yield* run(agentOf([first, second]), {
        prepareStep: ({ model }) => {
          asked.push(model.modelId)
          return {}
        }
      })
      expect(asked).toStrictEqual(["first", "second"])
      expect(first.unused()).toBe(0)
    })
  )

  const inputs: ReadonlyArray<
    readonly [what: string, messages: NonNullable<StepChanges["messages"]>, told: ReadonlyArray<unknown>]
  > = [
    ["a text", "hi", [Message.user("hi")]],
    ["texts", ["a", "b"], [Message.user("a"), Message.user("b")]],
    ["one message", { role: "user", content: "hi" }, [Message.user("hi")]],
    [
      "messages of the AI SDK",
      [
        { role: "system", content: "Sys." },
        { role: "user", content: [{ type: "text", text: "hi" }] }
      ],
      [Message.system("Sys."), Message.user("hi")]
    ],
    [
      "a message of a user interface",
      [{ id: "u1", role: "user", parts: [{ type: "text", text: "hi" }] }],
      [Message.user("hi")]
    ],
    [
      "a mixture",
      ["a", { role: "assistant", content: "b" }],
      [Message.user("a"), { role: "assistant", content: [{ type: "text", text: "b" }] }]
    ]
  ]

  it.effect.each(inputs)("takes %s for messages", ([, messages, told]) =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([reply("done")])
      const { chunks } = yield* run(agentOf(model, { instructions: "Be brief." }), {
        prepareStep: () => ({ messages })
      })
      expectGrammar(chunks)
      expect(model.requests[0]?.messages).toStrictEqual([Message.system("Be brief."), ...told])
      expect(finishOf(chunks).messages.all.slice(0, -1)).toStrictEqual([Message.user("go")])
    })
  )

  it.effect("that gives the messages back changes nothing", () =>
    Effect.gen(function* () {
      const turns: ReadonlyArray<ScriptedModel.Turn> = [
        [
          { type: "reasoning-start", id: "r", providerMetadata: { kit: { signature: "s" } } },
          { type: "reasoning-delta", id: "r", delta: "hm" },
          { type: "reasoning-end", id: "r" },
          ...text("let me see"),
          { type: "tool-call", toolCallId: "p1", toolName: "search", input: "{}", providerExecuted: true },
          { type: "tool-result", toolCallId: "p1", toolName: "search", result: { hits: [1] } },
          toolCall("c1", "echo", { say: "a" }),
          toolCall("c2", "nobody", { n: 1 }),
          { type: "file", data: "AAECAw==", mediaType: "image/png" },
          ends("tool-calls")
        ],
        [toolCall("c1", "echo", { say: "b" }), ...text("twice", "b"), ends("tool-calls")],
        reply("done")
      ]
      const input = [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "look", providerOptions: { kit: { cache: true } } },
            { type: "image", image: "AAEC" }
          ]
        },
        {
          role: "assistant",
          content: [{ type: "tool-call", toolCallId: "old", toolName: "echo", input: { say: "x" } }]
        },
        {
          role: "tool",
          content: [
            {
              type: "tool-result",
              toolCallId: "old",
              toolName: "echo",
              output: { type: "content", value: [{ type: "text", text: "x" }] }
            }
          ]
        },
        { role: "user", content: "go on" }
      ] as const
      const ask = (prepareStep?: PrepareStep) =>
        Effect.gen(function* () {
          const model = ScriptedModel.make(turns)
          const options = prepareStep === undefined ? {} : { prepareStep }
          const chunks = yield* chunksOf(
            Agent.stream(agentOf(model, { instructions: "Brief." }), input, options)
          )
          return { chunks, requests: model.requests }
        }).pipe(Effect.provide(Id.layerSequential))
      const plain = yield* ask()
      const same = yield* ask(({ messages }) => ({ messages }))
      expect(plain.requests).toHaveLength(3)
      expect(same.requests).toStrictEqual(plain.requests)
      expect(same.chunks).toStrictEqual(plain.chunks)
    })
  )

  it.effect("that gives the messages back keeps a call that its provider has not answered yet", () =>
    Effect.gen(function* () {
      const turns: ReadonlyArray<ScriptedModel.Turn> = [
        [
          { type: "tool-call", toolCallId: "p1", toolName: "code", input: "{}", providerExecuted: true },
          ...callEcho("c1")
        ],
        [{ type: "tool-result", toolCallId: "p1", toolName: "code", result: 1 }, ...reply("ok")]
      ]
      const [plain, same] = [ScriptedModel.make(turns), ScriptedModel.make(turns)]
      yield* run(agentOf(plain))
      yield* run(agentOf(same), { prepareStep: ({ messages }) => ({ messages }) })
      expect(same.requests).toStrictEqual(plain.requests)
    })
  )

  it.effect("that changes the messages changes them for tools too, and not the conversation", () =>
    Effect.gen(function* () {
      const seen: Array<ReadonlyArray<Message.Message>> = []
      const look = Tool.make("look", {
        execute: (_, { messages }) => Effect.sync(() => void seen.push(messages))
      })
      const model = ScriptedModel.make([[toolCall("c1", "look", {}), ends("tool-calls")], reply("done")])
      const { chunks } = yield* run(agentOf(model), {
        prepareStep: ({ stepNumber }) => (stepNumber === 0 ? { messages: "secret", tools: [look] } : {})
      })
      expect(seen).toStrictEqual([[Message.user("secret")]])
      expect(model.requests[1]?.messages[0]).toStrictEqual(Message.user("go"))
      expect(JSON.stringify(finishOf(chunks))).not.toContain("secret")
    })
  )

  it.effect("may give a tool that the step can call, and the next cannot", () =>
    Effect.gen(function* () {
      const added = Tool.make("added", { execute: () => Effect.succeed("was there") })
      const call = (id: string) => [toolCall(id, "added", {}), ends("tool-calls")]
      const model = ScriptedModel.make([call("c1"), call("c2"), call("c3"), reply("done")])
      const { chunks } = yield* run(agentOf(model), { prepareStep: only1({ tools: [added] }) })
      expectGrammar(chunks)
      expect(
        only(chunks, "tool-result").map(({ payload }) => [payload.toolCallId, payload.result])
      ).toStrictEqual([["c2", "was there"]])
      expect(errorsOf(chunks)).toMatchObject([
        { _tag: "ToolNotFound", toolName: "added", available: ["echo", "other"] },
        { _tag: "ToolNotFound", toolName: "added", available: ["echo", "other"] }
      ])
    })
  )

  it.effect("may take its time: what was told before is read meanwhile", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const model = steps(1)
      const stream = Agent.stream(agentOf(model), "go", {
        prepareStep: ({ stepNumber }) =>
          stepNumber === 0 ? {} : Effect.as(Deferred.await(gate), { instructions: "late" })
      })
      const { chunks } = yield* read(stream, chunk =>
        chunk.type === "step-finish" ? Effect.asVoid(Deferred.succeed(gate, undefined)) : Effect.void
      )
      expectGrammar(chunks)
      expect(model.requests[1]?.messages[0]).toStrictEqual(Message.system("late"))
    })
  )

  const model = ScriptedModel.make([])
  const failures: ReadonlyArray<readonly [what: string, prepareStep: PrepareStep, error: object]> = [
    [
      "throws",
      () => {
        throw new Error("oh no")
      },
      { _tag: "InvalidConfiguration", field: "prepareStep", message: expect.stringContaining("oh no") }
    ],
    [
      "fails",
      () => Effect.fail(new Oops({ message: "oh no" })),
      { field: "prepareStep", message: expect.stringContaining("oh no") }
    ],
    [
      "fails with a text",
      () => Effect.fail("oh no"),
      { field: "prepareStep", message: expect.stringContaining("oh no") }
    ],
    ["dies", () => Effect.die("oh no"), { field: "prepareStep", message: expect.stringContaining("oh no") }],
    [
      "is interrupted from within",
      () => Effect.interrupt,
      { _tag: "InvalidConfiguration", field: "prepareStep" }
    ],
    [
      "fails with a refusal of its own",
      () => Effect.fail(new Errors.InvalidConfiguration({ field: "mine", message: "no" })),
      { _tag: "InvalidConfiguration", field: "mine", message: "no" }
    ],
    [
      "gives a message of no known shape",
      () => ({ messages: ["a", { role: "robot" } as never] }),
      { _tag: "InvalidMessage", path: expect.stringContaining("[1]") }
    ],
    ["gives nothing to say", () => ({ messages: [] }), { _tag: "InvalidMessage" }],
    [
      "gives a field that nobody knows",
      () => ({ message: "a" }) as never,
      { _tag: "InvalidConfiguration", field: "message" }
    ],
    [
      "gives what is no model",
      () => ({ model: "gpt-5" as never }),
      { _tag: "InvalidConfiguration", field: "model" }
    ],
    ["gives no model", () => ({ model: [] }), { _tag: "InvalidConfiguration", field: "model" }],
    [
      "gives a wrong list of models",
      () => ({ model: [model, {} as never] }),
      { _tag: "InvalidConfiguration", field: "model[1]" }
    ],
    [
      "gives two tools of one name",
      () => ({ tools: [other, other] }),
      { _tag: "InvalidConfiguration", field: "tools" }
    ],
    ["gives tools that are no list", () => ({ tools: { other } as never }), { _tag: "InvalidConfiguration" }],
    [
      "names a tool that is not there",
      () => ({ activeTools: ["echo", "eco"] }),
      {
        _tag: "InvalidConfiguration",
        field: "activeTools",
        message: expect.stringMatching(/"eco".*echo, other/)
      }
    ],
    [
      "chooses a tool that is not active",
      () => ({ activeTools: ["other"], toolChoice: { type: "tool", toolName: "echo" } }),
      { _tag: "InvalidConfiguration", field: "toolChoice", message: expect.stringMatching(/"echo".*other/) }
    ],
    ["gives a number", () => 5 as never, { _tag: "InvalidConfiguration", field: "prepareStep" }],
    ["gives a text", () => "Be brief." as never, { _tag: "InvalidConfiguration", field: "prepareStep" }],
    ["gives a list", () => ["go"] as never, { _tag: "InvalidConfiguration", field: "prepareStep" }],
    [
      "gives a promise",
      () => Promise.resolve({ instructions: "x" }) as never,
      { _tag: "InvalidConfiguration", field: "prepareStep" }
    ]
  ]

  it.effect.each(failures)("that %s fails the run", ([, prepareStep, error]) =>
    Effect.gen(function* () {
      const first = steps(1)
      const begun = yield* run(agentOf(first), { prepareStep })
      expectRefused(begun.chunks, error)
      expect(types(begun.chunks)).toStrictEqual(["start", "error", "finish"])
      expect(begun.exit).toStrictEqual(Exit.fail(errorOf(begun.chunks)))
      expect(first.requests).toHaveLength(0)
      // Between two steps, the run keeps what it has.
      const second = steps(1)
      const later = yield* run(agentOf(second), {
        prepareStep: state => (state.stepNumber === 0 ? {} : prepareStep(state))
      })
      expectRefused(later.chunks, error)
      expect(second.requests).toHaveLength(1)
      expect(finishOf(later.chunks).response.messages.map(({ role }) => role)).toStrictEqual([
        "assistant",
        "tool"
      ])
      expect(only(later.chunks, "step-finish")).toHaveLength(1)
    })
  )

  it.effect("chosen of the run's tools, and not active in this step, fails the run", () =>
    Effect.gen(function* () {
      const model = steps(1)
      const { chunks } = yield* run(agentOf(model, { toolChoice: { type: "tool", toolName: "echo" } }), {
        prepareStep: only1({ activeTools: ["other"] })
      })
      expectRefused(chunks, { _tag: "InvalidConfiguration", field: "toolChoice" })
      expect(model.requests).toHaveLength(1)
    })
  )

  it.effect("of a run takes the place of the agent's", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([reply("a"), reply("b")])
      const agent = agentOf(model, { prepareStep: () => ({ instructions: "of the agent" }) })
      yield* run(agent)
      yield* run(agent, { prepareStep: () => ({ modelSettings: { seed: 1 } }) })
      expect(model.requests.map(({ messages }) => messages.length)).toStrictEqual([2, 1])
      expect(model.requests[1]?.settings).toStrictEqual({ seed: 1 })
    })
  )

  it.effect.each([0, 1])("is interrupted by an abort while it is pending in step %i", step =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const asked = yield* Deferred.make<void>()
      let isInterrupted = false
      const model = steps(1)
      const stream = Agent.stream(agentOf(model), "go", {
        abortSignal: controller.signal,
        prepareStep: ({ stepNumber }) =>
          stepNumber < step
            ? {}
            : Effect.zipRight(Deferred.succeed(asked, undefined), Effect.never).pipe(
                Effect.onInterrupt(() =>
                  Effect.sync(() => {
                    isInterrupted = true
                  })
                )
              )
      })
      const fiber = yield* Effect.fork(read(stream))
      yield* Deferred.await(asked)
      controller.abort("enough")
      const { chunks, exit } = yield* Fiber.join(fiber)
      expectGrammar(chunks)
      expect(exit).toStrictEqual(Exit.void)
      expect(types(chunks).slice(-2)).toStrictEqual(["abort", "finish"])
      expect(isInterrupted).toBe(true)
      expect(model.requests).toHaveLength(step)
      expect(finishOf(chunks).response.messages).toHaveLength(step * 2)
    })
  )

  it.effect("may abort the run itself: no model is asked", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const model = steps(1)
      const { chunks } = yield* run(agentOf(model), {
        abortSignal: controller.signal,
        prepareStep: ({ stepNumber }) => {
          if (stepNumber === 1) controller.abort("enough")
          return {}
        }
      })
      expectGrammar(chunks)
      expect(types(chunks).slice(-2)).toStrictEqual(["abort", "finish"])
      expect(model.requests).toHaveLength(1)
    })
  )

  it.effect("is interrupted with its run, and nothing is left", () =>
    Effect.gen(function* () {
      const supervisor = yield* Supervisor.track
      const asked = yield* Deferred.make<void>()
      const prepareStep = () => Effect.zipRight(Deferred.succeed(asked, undefined), Effect.never)
      yield* Effect.gen(function* () {
        const fiber = yield* Effect.fork(
          Stream.runDrain(Agent.stream(agentOf(steps(1)), "go", { prepareStep }))
        )
        yield* Deferred.await(asked)
        expect(Exit.isInterrupted(yield* Fiber.interrupt(fiber))).toBe(true)
      }).pipe(Effect.supervised(supervisor))
      expect(yield* supervisor.value).toHaveLength(0)
    })
  )
})

describe("activeTools", () => {
  it.effect("are all that the model knows of; calling another is told to it", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([callEcho("c1"), reply("done")])
      const { chunks } = yield* run(agentOf(model, { activeTools: ["other"] }))
      expectGrammar(chunks)
      expect(model.requests.map(({ tools }) => tools)).toStrictEqual([[other.definition], [other.definition]])
      expect(errorsOf(chunks)).toMatchObject([
        { _tag: "ToolNotFound", toolName: "echo", available: ["other"] }
      ])
      expect(outputsOf(model.requests[1])).toStrictEqual([
        { type: "error-text", value: 'There is no tool "echo". Available tools: other.' }
      ])
    })
  )

  it.effect("may be none", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([callEcho("c1"), reply("done")])
      const { chunks } = yield* run(agentOf(model), { activeTools: [] })
      expect(model.requests[0]?.tools).toStrictEqual([])
      expect(errorsOf(chunks)).toMatchObject([{ _tag: "ToolNotFound", available: [] }])
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
    })
  )

  it.effect("leave no tool of the client's that is not among them to the client", () =>
    Effect.gen(function* () {
      const client = Tool.make("client", {})
      const model = ScriptedModel.make([[toolCall("c1", "client", {}), ends("tool-calls")], reply("done")])
      const { chunks } = yield* run(agentOf(model), { tools: [client], activeTools: ["echo"] })
      expectGrammar(chunks)
      expect(errorsOf(chunks)).toMatchObject([{ _tag: "ToolNotFound", toolName: "client" }])
      expect(model.requests).toHaveLength(2)
    })
  )

  it.effect("of a run take the place of the agent's, and may name the run's own tools", () =>
    Effect.gen(function* () {
      const mine = Tool.make("mine", { execute: () => Effect.succeed("mine") })
      const model = ScriptedModel.make([[toolCall("c1", "mine", {}), ends("tool-calls")], reply("done")])
      const { chunks } = yield* run(agentOf(model, { activeTools: ["echo"] }), {
        tools: [mine],
        activeTools: ["mine", "other"]
      })
      expect(model.requests[0]?.tools.map(({ name }) => name)).toStrictEqual(["mine", "other"])
      expect(only(chunks, "tool-result").map(({ payload }) => payload.result)).toStrictEqual(["mine"])
    })
  )

  it.effect("of a step may name tools that the others of the run may not call, and its own", () =>
    Effect.gen(function* () {
      const added = Tool.make("added", { execute: () => Effect.succeed("added") })
      const call = [toolCall("a", "echo", { say: "a" }), toolCall("b", "added", {}), ends("tool-calls")]
      const model = ScriptedModel.make([call, call, reply("done")])
      const { chunks } = yield* run(agentOf(model, { activeTools: ["other"] }), {
        prepareStep: only1({ tools: [added], activeTools: ["added", "echo"] })
      })
      expectGrammar(chunks)
      expect(model.requests.map(({ tools }) => tools.map(({ name }) => name))).toStrictEqual([
        ["other"],
        ["added", "echo"],
        ["other"]
      ])
      expect(only(chunks, "tool-result").map(({ payload }) => payload.result)).toStrictEqual(["a", "added"])
      expect(errorsOf(chunks)).toHaveLength(2)
    })
  )

  it.effect("of a step do without the tool that the step adds, unless they name it", () =>
    Effect.gen(function* () {
      const added = Tool.make("added", {})
      const model = steps(1)
      yield* run(agentOf(model), {
        prepareStep: ({ stepNumber }) =>
          stepNumber === 0 ? { tools: [added], activeTools: ["echo"] } : { tools: [added] }
      })
      expect(model.requests.map(({ tools }) => tools.map(({ name }) => name))).toStrictEqual([
        ["echo"],
        ["echo", "other", "added"]
      ])
    })
  )

  const wrong: ReadonlyArray<readonly [what: string, options: object, field: string, words: RegExp]> = [
    ["a tool that is not there", { activeTools: ["eco"] }, "activeTools", /"eco".*echo, other/],
    ["what is no list", { activeTools: "echo" }, "activeTools", /activeTools/],
    [
      "a choice of a tool that is not there",
      { toolChoice: { type: "tool", toolName: "eco" } },
      "toolChoice",
      /"eco".*echo, other/
    ],
    [
      "a choice of a tool that is not active",
      { toolChoice: { type: "tool", toolName: "echo" }, activeTools: ["other"] },
      "toolChoice",
      /"echo".*Active tools: other/
    ],
    ["a choice of no tool", { toolChoice: { type: "tool" } }, "toolChoice", /toolChoice/]
  ]

  it.effect.each(wrong)("%s is refused before any chunk", ([, options, field, words]) =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([])
      const error = { _tag: "InvalidConfiguration", field, message: expect.stringMatching(words) }
      expect(yield* refusalOf(Agent.stream(agentOf(model), "go", options))).toMatchObject(error)
      // The kind of a value is refused by the agent, what it names by the run.
      const made = Either.try({ try: () => agentOf(model, options), catch: (refusal: unknown) => refusal })
      const refusal = Either.isLeft(made) ? made.left : yield* refusalOf(Agent.stream(made.right, "go"))
      expect(refusal).toMatchObject(error)
      expect(model.requests).toHaveLength(0)
    })
  )

  it.effect.each(["auto", "none", "required"] as const)("a choice of %s needs no tool", toolChoice =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([reply("done")])
      yield* run(agentOf(model), { toolChoice, activeTools: [] })
      expect(model.requests[0]?.toolChoice).toBe(toolChoice)
    })
  )
})

describe("an option of undefined", () => {
  it.effect("is as good as none: what the agent says holds", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([callEcho("c1"), reply("never")])
      const agent = agentOf(model, {
        maxSteps: 1,
        activeTools: ["echo"],
        modelSettings: { seed: 1 },
        prepareStep: () => ({ instructions: "Be brief." })
      })
      // TypeScript allows it unless it is told to be exact.
      const options = {
        maxSteps: undefined,
        activeTools: undefined,
        modelSettings: undefined,
        prepareStep: undefined,
        timeouts: undefined,
        abortSignal: undefined,
        instructions: undefined,
        requestContext: undefined
      } as object
      yield* run(agent, options)
      expect(model.requests).toStrictEqual([
        {
          messages: [Message.system("Be brief."), Message.user("go")],
          tools: [echo.definition],
          includeRawChunks: false,
          settings: { seed: 1 }
        }
      ])
    })
  )
})

describe("toModelOutput", () => {
  const result = { rows: [1, 2, 3] }

  const telling = (toModelOutput: (output: unknown) => unknown, value: unknown = result) => {
    const fetch = Tool.make("fetch", { execute: () => Effect.succeed(value), toModelOutput })
    const model = ScriptedModel.make([[toolCall("c1", "fetch", {}), ends("tool-calls")], reply("done")])
    return Effect.map(run(Agent.make({ id: "teller", model, tools: [fetch] })), ({ chunks }) => {
      expectGrammar(chunks)
      const message = finishOf(chunks).response.messages[1]
      return {
        chunks,
        told: outputsOf(model.requests[1]),
        kept: message?.role === "tool" ? message.content.map(({ output }) => output) : undefined
      }
    })
  }

  const content = [
    { type: "text", text: "see" },
    { type: "image-data", data: "AAEC", mediaType: "image/png" }
  ]

  const outputs: ReadonlyArray<readonly [what: string, given: unknown, told: unknown]> = [
    ["a text", "three rows", { type: "text", value: "three rows" }],
    ["an empty text", "", { type: "text", value: "" }],
    ["a text with half a pair", "ok \ud83d", { type: "text", value: "ok \ufffd" }],
    ["an object", { count: 3 }, { type: "json", value: { count: 3 } }],
    ["a list", [1, "a"], { type: "json", value: [1, "a"] }],
    ["a number", 3, { type: "json", value: 3 }],
    ["false", false, { type: "json", value: false }],
    ["null", null, { type: "json", value: null }],
    ["nothing", undefined, { type: "json", value: null }],
    [
      "what JSON cannot hold",
      { n: 1n, at: new Date(0) },
      { type: "json", value: { n: "1", at: "1970-01-01T00:00:00.000Z" } }
    ],
    ["content", { type: "content", value: content }, { type: "content", value: content }],
    [
      "content in an older word",
      { type: "content", value: [{ type: "media", data: "AAEC", mediaType: "image/png" }] },
      { type: "content", value: [{ type: "image-data", data: "AAEC", mediaType: "image/png" }] }
    ],
    [
      "an image in the older word",
      { type: "content", value: [{ type: "media", data: "AAEC", mediaType: "image/png" }] },
      { type: "content", value: [content[1]] }
    ],
    ["no content", { type: "content", value: [] }, { type: "content", value: [] }],
    ["a tagged text", { type: "text", value: "t" }, { type: "text", value: "t" }],
    ["tagged JSON", { type: "json", value: [1n] }, { type: "json", value: ["1"] }],
    ["a tagged error", { type: "error-text", value: "bad" }, { type: "error-text", value: "bad" }],
    ["a tagged JSON error", { type: "error-json", value: { a: 1 } }, { type: "error-json", value: { a: 1 } }],
    ["a text that is none", { type: "text", value: 5 }, { type: "json", value: { type: "text", value: 5 } }],
    [
      "content that is none",
      { type: "content", value: "x" },
      { type: "json", value: { type: "content", value: "x" } }
    ],
    [
      "content of what is none",
      { type: "content", value: [1] },
      { type: "json", value: { type: "content", value: [1] } }
    ],
    [
      "an object of a type of its own",
      { type: "chart", value: 1 },
      { type: "json", value: { type: "chart", value: 1 } }
    ],
    ["an Effect", Effect.as(Effect.yieldNow(), "later"), { type: "text", value: "later" }]
  ]

  it.effect.each(outputs)("may give %s; readers see the output itself", ([, given, told]) =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const {
        chunks,
        kept,
        told: heard
      } = yield* telling(output => {
        seen.push(output)
        return given
      })
      expect(heard).toStrictEqual([told])
      expect(kept).toStrictEqual([told])
      expect(seen).toStrictEqual([result])
      expect(only(chunks, "tool-result").map(({ payload }) => payload.result)).toStrictEqual([result])
    })
  )

  it.effect("is given null for an output of undefined", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      yield* telling(output => void seen.push(output), undefined)
      // `undefined` as an argument means the default above.
      const fetch = Tool.make("fetch", {
        execute: () => Effect.void,
        toModelOutput: output => void seen.push(output)
      })
      const model = ScriptedModel.make([[toolCall("c1", "fetch", {}), ends("tool-calls")], reply("done")])
      yield* run(Agent.make({ id: "teller", model, tools: [fetch] }))
      expect(seen).toStrictEqual([result, null])
    })
  )

  it.effect("is given the output as it is shown: what the schema makes of it", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const fetch = Tool.make("fetch", {
        success: Schema.Struct({ at: Schema.Date }),
        execute: () => Effect.succeed({ at: new Date(0) }),
        toModelOutput: output => {
          seen.push(output)
          return output.at
        }
      })
      const model = ScriptedModel.make([[toolCall("c1", "fetch", {}), ends("tool-calls")], reply("done")])
      const { chunks } = yield* run(Agent.make({ id: "teller", model, tools: [fetch] }))
      expect(seen).toStrictEqual([{ at: "1970-01-01T00:00:00.000Z" }])
      expect(only(chunks, "tool-result").map(({ payload }) => payload.result)).toStrictEqual(seen)
      expect(outputsOf(model.requests[1])).toStrictEqual([
        { type: "text", value: "1970-01-01T00:00:00.000Z" }
      ])
    })
  )

  it.effect("hears of no failure, and of no value that says that it is one", () =>
    Effect.gen(function* () {
      let calls = 0
      const toModelOutput = () => ++calls
      const says = { isError: true, content: [{ type: "text", text: "bad key" }] }
      const tools = [
        Tool.make("says", { execute: () => Effect.succeed(says), toModelOutput }),
        Tool.make("fails", { execute: () => Effect.fail("no"), toModelOutput }),
        Tool.make("dies", { execute: () => Effect.die("no"), toModelOutput }),
        Tool.make("strict", {
          input: Schema.Struct({ n: Schema.Number }),
          execute: () => Effect.void,
          toModelOutput
        }),
        Tool.make("liar", {
          success: { type: "object", required: ["a"] },
          execute: () => Effect.succeed({}),
          toModelOutput
        })
      ]
      const model = ScriptedModel.make([
        [...tools.map(({ name }, index) => toolCall(`c${index}`, name, {})), ends("tool-calls")],
        reply("done")
      ])
      const { chunks } = yield* run(Agent.make({ id: "teller", model, tools }))
      expectGrammar(chunks)
      expect(calls).toBe(0)
      expect(only(chunks, "tool-result").map(({ payload }) => payload.isError)).toStrictEqual([true])
      expect(only(chunks, "tool-error")).toHaveLength(4)
      expect(outputsOf(model.requests[1])?.[0]).toStrictEqual({ type: "error-text", value: "bad key" })
    })
  )

  const broken: ReadonlyArray<readonly [what: string, toModelOutput: () => unknown]> = [
    [
      "throws",
      () => {
        throw new TypeError("oh no")
      }
    ],
    ["fails", () => Effect.fail(new Oops({ message: "oh no" }))],
    ["dies", () => Effect.die(new TypeError("oh no"))]
  ]

  it.effect.each(broken)("that %s is a failure of the tool, and the run goes on", ([what, toModelOutput]) =>
    Effect.gen(function* () {
      const { chunks, told } = yield* telling(toModelOutput)
      expect(only(chunks, "tool-result")).toHaveLength(0)
      expect(errorsOf(chunks)).toStrictEqual([expect.objectContaining({ message: "oh no" })])
      expect(told).toStrictEqual([{ type: "error-text", value: what === "fails" ? "Oops: oh no" : "oh no" }])
      expect(finishOf(chunks).stepResult.reason).toBe("stop")
    })
  )

  it.effect("that never ends is stopped with the run", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const asked = yield* Deferred.make<void>()
      const fetch = Tool.make("fetch", {
        execute: () => Effect.succeed(1),
        toModelOutput: () => Effect.zipRight(Deferred.succeed(asked, undefined), Effect.never)
      })
      const model = ScriptedModel.make([[toolCall("c1", "fetch", {}), ends("tool-calls")]])
      const agent = Agent.make({ id: "teller", model, tools: [fetch] })
      const fiber = yield* Effect.fork(read(Agent.stream(agent, "go", { abortSignal: controller.signal })))
      yield* Deferred.await(asked)
      controller.abort("enough")
      const { chunks } = yield* Fiber.join(fiber)
      expectGrammar(chunks)
      expect(types(chunks).slice(-3)).toStrictEqual(["step-finish", "abort", "finish"])
      expect(errorsOf(chunks)).toMatchObject([{ _tag: "RunAborted" }])
    })
  )
})

describe("requestContext", () => {
  const look = (seen: Array<RequestContext>) =>
    Tool.make("look", {
      execute: (_, { requestContext }) => Effect.sync(() => void seen.push(requestContext))
    })

  const looking = () =>
    ScriptedModel.make([
      [toolCall("c1", "look", {}), ends("tool-calls")],
      reply("done"),
      [toolCall("c1", "look", {}), ends("tool-calls")],
      reply("done")
    ])

  it.effect("is a Map that is used as it is, by whoever is told of it", () =>
    Effect.gen(function* () {
      const seen: Array<RequestContext> = []
      const note = ({ requestContext }: { readonly requestContext: RequestContext }) => {
        seen.push(requestContext)
      }
      const given: RequestContext = new Map([["user", "ada"]])
      const model = looking()
      const agent = Agent.make({
        id: "asker",
        instructions: state => {
          note(state)
          return "Be brief."
        },
        model: state => {
          note(state)
          return model
        },
        tools: state => {
          note(state)
          return [look(seen)]
        },
        prepareStep: state => {
          note(state)
          return undefined
        }
      })
      yield* run(agent, { requestContext: given })
      expect(seen).toHaveLength(6)
      for (const context of seen) expect(context).toBe(given)
    })
  )

  it.effect("is made of a record, which stays as it was, or of nothing; each run has its own", () =>
    Effect.gen(function* () {
      const seen: Array<RequestContext> = []
      const agent = Agent.make({ id: "asker", model: looking(), tools: [look(seen)] })
      const record = Object.freeze({ user: "ada", n: undefined })
      yield* run(agent, { requestContext: record })
      yield* run(agent)
      expect(seen).toStrictEqual([
        new Map<string, unknown>([
          ["user", "ada"],
          ["n", undefined]
        ]),
        new Map()
      ])
      expect(seen[0]).not.toBe(seen[1])
    })
  )

  it.effect("carries what a tool puts into it to the steps behind it", () =>
    Effect.gen(function* () {
      const put = Tool.make("put", {
        execute: (_, { requestContext }) => Effect.sync(() => void requestContext.set("found", 7))
      })
      const model = ScriptedModel.make([[toolCall("c1", "put", {}), ends("tool-calls")], reply("done")])
      yield* run(Agent.make({ id: "asker", model, tools: [put] }), {
        prepareStep: ({ requestContext }) => ({ instructions: `Found: ${requestContext.get("found")}` })
      })
      expect(model.requests.map(({ messages }) => messages[0])).toStrictEqual([
        Message.system("Found: undefined"),
        Message.system("Found: 7")
      ])
    })
  )

  it.effect("is shared with the agents below", () =>
    Effect.gen(function* () {
      const seen: Array<RequestContext> = []
      const below = Agent.make({
        id: "below",
        model: ({ requestContext }) => {
          seen.push(requestContext)
          return ScriptedModel.make([[toolCall("c1", "look", {}), ends("tool-calls")], reply("below")])
        },
        tools: [look(seen)]
      })
      const model = ScriptedModel.make([
        [toolCall("c1", "agent-below", { prompt: "go" }), ends("tool-calls")],
        reply("done")
      ])
      const given: RequestContext = new Map()
      const { chunks } = yield* run(Agent.make({ id: "above", model, tools: [Agent.asTool(below)] }), {
        requestContext: given
      })
      expectGrammar(chunks)
      expect(seen).toHaveLength(2)
      for (const context of seen) expect(context).toBe(given)
    })
  )
})

describe("a part of an agent that is a function", () => {
  it.effect("is made once for each run", () =>
    Effect.gen(function* () {
      const made: Array<string> = []
      const models = [steps(2), steps(2)]
      const agent = Agent.make({
        id: "maker",
        instructions: ({ requestContext }) => {
          made.push("instructions")
          return `For ${requestContext.get("user")}.`
        },
        model: () => {
          made.push("model")
          return models[made.filter(part => part === "model").length - 1] ?? steps(0)
        },
        tools: () => {
          made.push("tools")
          return [echo]
        }
      })
      const stream = (user: string) => chunksOf(Agent.stream(agent, "go", { requestContext: { user } }))
      yield* stream("ada")
      expect(made.toSorted()).toStrictEqual(["instructions", "model", "tools"])
      yield* stream("bob")
      expect(made).toHaveLength(6)
      expect(models.map(({ requests }) => requests.map(({ messages }) => messages[0]))).toStrictEqual([
        Array.from({ length: 3 }, () => Message.system("For ada.")),
        Array.from({ length: 3 }, () => Message.system("For bob."))
      ])
      expect(models[0]?.requests[0]?.tools).toStrictEqual([echo.definition])
    })
  )

  it.effect("is not made when the agent is, nor as long as nobody reads the stream", () =>
    Effect.gen(function* () {
      let made = 0
      const agent = Agent.make({
        id: "maker",
        model: () => {
          made++
          return steps(0)
        }
      })
      const stream = Agent.stream(agent, "go")
      expect(made).toBe(0)
      yield* chunksOf(stream)
      yield* chunksOf(stream)
      expect(made).toBe(2)
    })
  )

  it.effect("may be an Effect", () =>
    Effect.gen(function* () {
      const model = steps(1)
      const later = <A>(value: A) => Effect.as(Effect.yieldNow(), value)
      const agent = Agent.make({
        id: "maker",
        instructions: () => later("Late."),
        model: () => later([model, model]),
        tools: () => later([echo])
      })
      const chunks = yield* chunksOf(Agent.stream(agent, "go"))
      expectGrammar(chunks)
      expect(model.requests[0]?.messages[0]).toStrictEqual(Message.system("Late."))
      expect(only(chunks, "tool-result")).toHaveLength(1)
    })
  )

  it.effect("may make tools that need something from the surroundings", () =>
    Effect.gen(function* () {
      class Greeting extends Context.Tag("Greeting")<Greeting, string>() {}
      const greet = Tool.make("greet", { execute: () => Greeting })
      const model = ScriptedModel.make([[toolCall("c1", "greet", {}), ends("tool-calls")], reply("done")])
      const agent = Agent.make({ id: "maker", model, tools: () => [greet] })
      const chunks = yield* Effect.provide(
        chunksOf(Agent.stream(agent, "go")),
        Layer.succeed(Greeting, "moin")
      )
      expect(only(chunks, "tool-result").map(({ payload }) => payload.result)).toStrictEqual(["moin"])
    })
  )

  it.effect("is not made when the run has its own instructions", () =>
    Effect.gen(function* () {
      const model = steps(0)
      const instructions = () => Effect.die("never")
      yield* chunksOf(
        Agent.stream(Agent.make({ id: "maker", model, instructions }), "go", { instructions: "Mine." })
      )
      expect(model.requests[0]?.messages[0]).toStrictEqual(Message.system("Mine."))
    })
  )

  it.effect("makes tools like any: the run's take their place, and activeTools name them", () =>
    Effect.gen(function* () {
      const mine = Tool.make("other", { description: "mine" })
      const model = steps(0)
      const agent = Agent.make({ id: "maker", model, tools: () => [echo, other], activeTools: ["other"] })
      yield* chunksOf(Agent.stream(agent, "go", { tools: [mine] }))
      expect(model.requests[0]?.tools).toStrictEqual([mine.definition])
    })
  )

  const parts = ["instructions", "model", "tools"] as const
  const broken: ReadonlyArray<readonly [what: string, make: () => never]> = [
    [
      "throws",
      () => {
        throw new Error("oh no")
      }
    ],
    ["fails", () => Effect.fail(new Oops({ message: "oh no" })) as never],
    ["fails with a text", () => Effect.fail("oh no") as never],
    ["dies", () => Effect.die(new Error("oh no")) as never]
  ]

  it.effect.each(parts.flatMap(part => broken.map(([what, make]) => [part, what, make] as const)))(
    "%s that %s is refused before any chunk",
    ([part, , make]) =>
      Effect.gen(function* () {
        const model = ScriptedModel.make([])
        const agent = Agent.make({ id: "maker", model, [part]: make })
        const error = { _tag: "InvalidConfiguration", field: part, message: expect.stringContaining("oh no") }
        expect(yield* refusalOf(Agent.stream(agent, "go"))).toMatchObject(error)
        expect(yield* Effect.flip(Effect.scoped(Agent.run(agent, "go")))).toMatchObject(error)
        expect(yield* Effect.flip(Agent.generate(agent, "go"))).toMatchObject(error)
        expect(model.requests).toHaveLength(0)
      })
  )

  const wrong: ReadonlyArray<readonly [what: string, options: object, field: string]> = [
    ["two tools of one name", { tools: () => [echo, echo] }, "tools"],
    ["what is no list of tools", { tools: () => ({ echo }) }, "tools"],
    ["no tools at all", { tools: () => undefined }, "tools"],
    ["what is no model", { model: () => "gpt-5" }, "model"],
    ["no model", { model: () => undefined }, "model"],
    ["an empty list of models", { model: () => [] }, "model"],
    ["what is no text", { instructions: () => ({ text: "Be brief." }) }, "instructions"],
    ["a promise of instructions", { instructions: () => Promise.resolve("Be brief.") }, "instructions"]
  ]

  it.effect.each(wrong)("gives %s: refused before any chunk", ([, options, field]) =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([])
      const agent = Agent.make({ id: "maker", model, ...options } as never)
      expect(yield* refusalOf(Agent.stream(agent, "go"))).toMatchObject({
        _tag: "InvalidConfiguration",
        field
      })
      expect(model.requests).toHaveLength(0)
    })
  )

  it.effect.each(parts)("%s may take its time, and whoever waits may go: nothing is left", part =>
    Effect.gen(function* () {
      const supervisor = yield* Supervisor.track
      const readers: ReadonlyArray<(agent: Agent.Agent) => Effect.Effect<unknown, unknown>> = [
        agent => Stream.runDrain(Agent.stream(agent, "go")),
        agent => Agent.generate(agent, "go"),
        agent => Effect.scoped(Agent.run(agent, "go"))
      ]
      for (const reader of readers) {
        const asked = yield* Deferred.make<void>()
        let isInterrupted = false
        const make = () =>
          Effect.zipRight(Deferred.succeed(asked, undefined), Effect.never).pipe(
            Effect.onInterrupt(() =>
              Effect.sync(() => {
                isInterrupted = true
              })
            )
          )
        const agent = Agent.make({ id: "maker", model: steps(0), [part]: make })
        yield* Effect.gen(function* () {
          const fiber = yield* Effect.fork(reader(agent))
          yield* Deferred.await(asked)
          expect(Exit.isInterrupted(yield* Fiber.interrupt(fiber))).toBe(true)
        }).pipe(Effect.supervised(supervisor))
        expect(isInterrupted).toBe(true)
        expect(yield* supervisor.value).toHaveLength(0)
      }
    })
  )

  it.effect("of an agent below, too: an abort of the run above ends it", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const asked = yield* Deferred.make<void>()
      let isInterrupted = false
      const below = Agent.make({
        id: "below",
        model: steps(0),
        instructions: () =>
          Effect.zipRight(Deferred.succeed(asked, undefined), Effect.never).pipe(
            Effect.onInterrupt(() =>
              Effect.sync(() => {
                isInterrupted = true
              })
            )
          )
      })
      const model = ScriptedModel.make([
        [toolCall("c1", "agent-below", { prompt: "go" }), ends("tool-calls")]
      ])
      const above = Agent.make({ id: "above", model, tools: [Agent.asTool(below)] })
      const fiber = yield* Effect.fork(read(Agent.stream(above, "go", { abortSignal: controller.signal })))
      yield* Deferred.await(asked)
      controller.abort("enough")
      const { chunks } = yield* Fiber.join(fiber)
      expectGrammar(chunks)
      expect(types(chunks).slice(-2)).toStrictEqual(["abort", "finish"])
      expect(isInterrupted).toBe(true)
    })
  )

  it.effect("that is pending when the run is aborted holds it no longer, and is interrupted", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const asked = yield* Deferred.make<void>()
      let isInterrupted = false
      const instructions = () =>
        Effect.zipRight(Deferred.succeed(asked, undefined), Effect.never).pipe(
          Effect.onInterrupt(() =>
            Effect.sync(() => {
              isInterrupted = true
            })
          )
        )
      const model = ScriptedModel.make([])
      const agent = Agent.make({ id: "maker", model, instructions })
      const fiber = yield* Effect.fork(read(Agent.stream(agent, "go", { abortSignal: controller.signal })))
      yield* Deferred.await(asked)
      controller.abort("enough")
      yield* settle
      expect(fiber.unsafePoll()).not.toBeNull()
      const { chunks, exit } = yield* Fiber.join(fiber)
      expect(chunks).toHaveLength(0)
      expect(exit).toMatchObject({ cause: { error: { _tag: "RunAborted", cause: "enough" } } })
      expect(isInterrupted).toBe(true)
      expect(model.requests).toHaveLength(0)
    })
  )

  const beforehand: ReadonlyArray<
    readonly [what: string, instructions: Agent.Options<[]>["instructions"] & {}]
  > = [
    ["a text", "Be brief."],
    ["a function", () => "Be brief."],
    ["an Effect that is there", () => Effect.succeed("Be brief.")]
  ]

  it.effect.each(beforehand)("%s: a run that is aborted before it begins says so", ([, instructions]) =>
    Effect.gen(function* () {
      const agent = Agent.make({ id: "maker", model: steps(0), instructions })
      const { chunks, exit } = yield* read(
        Agent.stream(agent, "go", { abortSignal: AbortSignal.abort("early") })
      )
      expect(types(chunks)).toStrictEqual(["start", "abort", "finish"])
      expect(exit).toStrictEqual(Exit.void)
    })
  )

  it.effect("that takes its time is not waited for in a run that is aborted before it begins", () =>
    Effect.gen(function* () {
      const instructions = () => Effect.as(Effect.yieldNow(), "Be brief.")
      const agent = Agent.make({ id: "maker", model: steps(0), instructions })
      const stream = Agent.stream(agent, "go", { abortSignal: AbortSignal.abort("early") })
      expect(yield* refusalOf(stream)).toMatchObject({ _tag: "RunAborted", cause: "early" })
    })
  )

  it.effect("lets go of the signal of its run, however it ends", () =>
    Effect.gen(function* () {
      const { signal } = new AbortController()
      let listeners = 0
      const add = signal.addEventListener.bind(signal)
      const remove = signal.removeEventListener.bind(signal)
      signal.addEventListener = (...args: Parameters<typeof add>) => {
        listeners++
        add(...args)
      }
      signal.removeEventListener = (...args: Parameters<typeof remove>) => {
        listeners--
        remove(...args)
      }
      const dynamics = [
        () => "Be brief.",
        () => Effect.as(Effect.yieldNow(), "Be brief."),
        () => Effect.fail("oh no"),
        () => Effect.zipRight(Effect.yieldNow(), Effect.die("oh no"))
      ]
      for (const instructions of dynamics) {
        const agent = Agent.make({ id: "maker", model: steps(0), tools: () => [], instructions })
        yield* read(Agent.stream(agent, "go", { abortSignal: signal }))
        expect(listeners).toBe(0)
      }
      const asked = yield* Deferred.make<void>()
      const agent = Agent.make({
        id: "maker",
        model: steps(0),
        instructions: () => Effect.zipRight(Deferred.succeed(asked, undefined), Effect.never)
      })
      const fiber = yield* Effect.fork(read(Agent.stream(agent, "go", { abortSignal: signal })))
      yield* Deferred.await(asked)
      yield* Fiber.interrupt(fiber)
      expect(listeners).toBe(0)
    })
  )
})
