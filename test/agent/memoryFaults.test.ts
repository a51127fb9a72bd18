/** What is left of a thread when a run fails or is stopped, when the store fails or hangs, and when two runs meet in it. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, type Chunk, Errors, type LanguageModel, Message, ThreadStore, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import {
  Cause,
  Deferred,
  Effect,
  Exit,
  Fiber,
  Layer,
  Logger,
  Scope,
  Stream,
  Supervisor,
  TestClock
} from "effect"
import { configurationError } from "../support/configurationError.js"
import { expectGrammar } from "../support/grammar.js"
import { chunksOf, finishOf, only, read, turns, types } from "./kit.js"
import {
  changed,
  counting,
  ends,
  expectPrompt,
  hang,
  memory,
  messagesOf,
  nextPrompt,
  reply,
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
const wait = Tool.make("wait", { execute: () => Effect.never })
/** Executed by the client. */
const pick = Tool.make("pick", { input: { type: "object" } })

const say = (input: string, answer: string) =>
  Agent.generate(agentOf(ScriptedModel.make([reply(answer)])), input, { memory })

type Is = (chunk: Chunk.Chunk) => boolean

/** Where a run is stopped, and what the thread holds of it then. */
interface Place {
  readonly what: string
  readonly script: ReadonlyArray<ScriptedModel.Turn>
  readonly at: Is
  readonly added: ReadonlyArray<Message.Message>
}

const assistant = (...content: ReadonlyArray<unknown>): Message.Message =>
  ({ role: "assistant", content }) as Message.Message
const said = (content: string) => ({ type: "text", text: content })
const called = (toolCallId: string, toolName: string, input: unknown = {}) => ({
  type: "tool-call",
  toolCallId,
  toolName,
  input
})
const outcomes = (...content: ReadonlyArray<readonly [id: string, toolName: string, output: unknown]>) =>
  ({
    role: "tool",
    content: content.map(([toolCallId, toolName, output]) => ({
      type: "tool-result",
      toolCallId,
      toolName,
      output
    }))
  }) as Message.Message
const cut = { type: "error-text", value: expect.any(String) }

const first: ScriptedModel.Turn = [...text("first"), toolCall("c0", "echo", { n: 0 }), ends("tool-calls")]
const firstStep = [
  assistant(said("first"), called("c0", "echo", { n: 0 })),
  outcomes(["c0", "echo", { type: "json", value: { n: 0 } }])
]

const isText =
  (content: string): Is =>
  chunk =>
    chunk.type === "text-delta" && chunk.payload.text === content
const isOf =
  (type: "tool-call" | "tool-result" | "tool-call-delta", toolCallId: string): Is =>
  chunk =>
    chunk.type === type && chunk.payload.toolCallId === toolCallId

const places: ReadonlyArray<Place> = [
  {
    what: "after a text",
    script: [[says("I will "), hang]],
    at: isText("I will "),
    added: [assistant(said("I will "))]
  },
  {
    what: "after a text in the second step",
    script: [first, [says("and then"), hang]],
    at: isText("and then"),
    added: [...firstStep, assistant(said("and then"))]
  },
  {
    what: "while arguments are written",
    script: [
      [
        says("so"),
        { type: "tool-input-start", id: "c1", toolName: "echo" },
        { type: "tool-input-delta", id: "c1", delta: '{"n":' },
        hang
      ]
    ],
    at: isOf("tool-call-delta", "c1"),
    added: [assistant(said("so"))]
  },
  {
    what: "after a call, before it is executed",
    script: [[says("so"), toolCall("c1", "echo", { n: 1 }), hang]],
    at: isOf("tool-call", "c1"),
    added: [assistant(said("so"), called("c1", "echo", { n: 1 })), outcomes(["c1", "echo", cut])]
  },
  {
    what: "while one tool runs and another is done",
    script: [[says("so"), toolCall("c1", "wait", {}), toolCall("c2", "echo", { n: 2 }), ends("tool-calls")]],
    at: isOf("tool-result", "c2"),
    added: [
      assistant(said("so"), called("c1", "wait"), called("c2", "echo", { n: 2 })),
      outcomes(["c1", "wait", cut], ["c2", "echo", { type: "json", value: { n: 2 } }])
    ]
  },
  {
    what: "while a provider executes a call",
    script: [
      [
        says("so"),
        { type: "tool-call", toolCallId: "p1", toolName: "web", input: "{}", providerExecuted: true },
        hang
      ]
    ],
    at: isOf("tool-call", "p1"),
    added: [assistant(said("so"), { ...called("p1", "web"), providerExecuted: true })]
  },
  {
    what: "in reasoning that nobody has signed",
    script: [[says("so"), { type: "reasoning-delta", id: "r", delta: "hm" }, hang]],
    at: chunk => chunk.type === "reasoning-delta",
    added: [assistant(said("so"))]
  },
  {
    what: "before the second step says anything",
    script: [first, [hang]],
    at: chunk => chunk.type === "step-finish",
    added: firstStep
  }
]

type Way = (agent: Agent.Agent, at: Is) => Effect.Effect<void, Errors.AgentError, ThreadStore.ThreadStore>

/** Whoever is told that the run is over finds everything in the thread. */
const ways: Readonly<Record<string, Way>> = {
  "its signal": Effect.fnUntraced(function* (agent, at) {
    const store = yield* Threads
    const controller = new AbortController()
    const held: Array<number> = []
    const { chunks } = yield* read(
      Agent.stream(agent, "go", { memory, abortSignal: controller.signal }),
      chunk => {
        if (at(chunk)) controller.abort("enough")
        if (chunk.type !== "abort" && chunk.type !== "finish") return Effect.void
        return Effect.map(Effect.orDie(store.messages("t1")), messages => void held.push(messages.length))
      }
    )
    expectGrammar(chunks)
    expect(types(chunks).slice(-2)).toStrictEqual(["abort", "finish"])
    const count = (yield* stored()).length
    expect(held).toStrictEqual([count, count])
  }),
  "interruption of its stream": Effect.fnUntraced(function* (agent, at) {
    const reached = yield* Deferred.make<void>()
    const fiber = yield* Agent.stream(agent, "go", { memory }).pipe(
      Stream.runForEach(chunk => (at(chunk) ? Deferred.succeed(reached, undefined) : Effect.void)),
      Effect.fork
    )
    yield* Deferred.await(reached)
    expect(Exit.isInterrupted(yield* Fiber.interrupt(fiber))).toBe(true)
  }),
  "a reader that leaves its stream": (agent, at) =>
    Stream.runDrain(Stream.takeUntil(Agent.stream(agent, "go", { memory }), at)),
  "the end of its scope": Effect.fnUntraced(function* (agent, at) {
    const scope = yield* Scope.make()
    const output = yield* Scope.extend(Agent.run(agent, "go", { memory }), scope)
    yield* Stream.runDrain(Stream.takeUntil(output.fullStream, at))
    yield* Scope.close(scope, Exit.void)
    expect(yield* output.status).toBe("aborted")
  }),
  "interruption of generate": Effect.fnUntraced(function* (agent, at) {
    // Nobody sees the chunks of `generate`: the agent's model and tools go as far as they can.
    const fiber = yield* Effect.fork(Agent.generate(agent, "go", { memory }))
    yield* turns(30)
    expect(at).toBeTypeOf("function")
    expect(Exit.isInterrupted(yield* Fiber.interrupt(fiber))).toBe(true)
  }),
  "abort() of its output": (agent, at) =>
    Effect.scoped(
      Effect.gen(function* () {
        const output = yield* Agent.run(agent, "go", { memory })
        yield* Stream.runDrain(Stream.takeUntil(output.fullStream, at))
        yield* output.abort("enough")
        const full = yield* output.fullOutput
        expect(full.status).toBe("aborted")
        const { length } = yield* stored()
        expect(length).toBe(1 + full.response.messages.length)
      })
    ),
  "the one reader of a run that keeps nothing": (agent, at) =>
    Effect.scoped(
      Effect.gen(function* () {
        const output = yield* Agent.run(agent, "go", { memory, replay: false })
        yield* Stream.runDrain(Stream.takeUntil(output.fullStream, at))
        const full = yield* output.fullOutput
        expect(full.status).toBe("aborted")
        const { length } = yield* stored()
        expect(length).toBe(1 + full.response.messages.length)
      })
    )
}

describe("a run that is stopped", () => {
  const cases = Object.keys(ways).flatMap(by => places.map(place => ({ by, ...place })))

  it.effect.each(cases)("by $by, $what", ({ added, at, by, script }) =>
    Effect.gen(function* () {
      const model = ScriptedModel.make(script)
      yield* ways[by]?.(agentOf(model, [echo, wait]), at) ?? Effect.die("no such way")
      // Looked at once: whoever stopped it waits for nothing.
      const held = yield* messagesOf()
      expect(held).toStrictEqual([Message.user("go"), ...added])
      expect(held.filter(({ role }) => role === "user")).toHaveLength(1)
      const prompt = yield* nextPrompt()
      // A call without an outcome is not told, and everything else is.
      const isOwed = (part: { readonly type: string }) =>
        part.type === "tool-call" && "providerExecuted" in part
      const told = held.map(message =>
        message.role === "assistant"
          ? { ...message, content: message.content.filter(part => !isOwed(part)) }
          : message
      )
      expect(prompt).toStrictEqual([...told, Message.user("next")])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("before it has begun stores nothing, and opens nothing", () =>
    Effect.gen(function* () {
      const { calls, layer } = counting()
      const stream = Agent.stream(agentOf(ScriptedModel.make([])), "go", {
        memory,
        abortSignal: AbortSignal.abort()
      })
      const chunks = yield* Effect.provide(chunksOf(stream), layer)
      expect(types(chunks)).toStrictEqual(["start", "abort", "finish"])
      expect(calls).toStrictEqual([])
    })
  )

  it.effect("by its time limit, in a tool, keeps the step; in an answer it does not keep the answer", () =>
    Effect.gen(function* () {
      const limited = (
        script: ReadonlyArray<ScriptedModel.Turn>,
        at: ReadonlyArray<string>,
        thread: string
      ) =>
        Effect.gen(function* () {
          const agent = agentOf(ScriptedModel.make(script), [echo, wait], { timeouts: { run: "1 minute" } })
          const { chunks, exit } = yield* read(
            Agent.stream(agent, "go", { memory: { ...memory, thread } }),
            chunk => (at.includes(chunk.type) ? TestClock.adjust("1 minute") : Effect.void)
          )
          expectGrammar(chunks)
          expect(Exit.isFailure(exit) && Cause.squash(exit.cause)).toBeInstanceOf(Errors.RunTimedOut)
          return yield* messagesOf(thread)
        })
      expect(yield* limited([first, [says("cut"), hang]], ["step-finish"], "answer")).toStrictEqual([
        Message.user("go"),
        ...firstStep
      ])
      const inTool: ScriptedModel.Turn = [says("so"), toolCall("c1", "wait", {}), ends("tool-calls")]
      expect(yield* limited([inTool], ["text-end"], "tool")).toStrictEqual([
        Message.user("go"),
        assistant(said("so"), called("c1", "wait")),
        outcomes(["c1", "wait", cut])
      ])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("leaves no fiber behind, whoever stops it", () =>
    Effect.gen(function* () {
      const supervisor = yield* Supervisor.track
      const place = places.find(({ what }) => what.startsWith("while one tool runs"))
      if (place === undefined) throw new Error("no place")
      for (const [by, way] of Object.entries(ways)) {
        yield* way(agentOf(ScriptedModel.make(place.script), [echo, wait]), place.at).pipe(
          Effect.provide(layerMemory),
          Effect.supervised(supervisor)
        )
        expect([by, (yield* supervisor.value).length]).toStrictEqual([by, 0])
      }
    })
  )
})

describe("a run that fails", () => {
  const boom: ScriptedModel.ScriptPart = { type: "error", error: new Error("boom") }

  const failing: ReadonlyArray<readonly [what: string, turn: ScriptedModel.Turn]> = [
    ["before it says anything", [boom]],
    ["in a text", [says("lost"), boom]],
    ["after a call", [says("lost"), toolCall("c1", "echo", {}), boom]],
    ["because its answer is cut off", [says("lost")]]
  ]

  it.effect.each(failing)("%s: the user's message is kept, and nothing of the answer", ([, turn]) =>
    Effect.gen(function* () {
      const agent = agentOf(ScriptedModel.make([turn]), [echo], { maxRetries: 0 })
      const { chunks, exit } = yield* read(Agent.stream(agent, "go", { memory }))
      expectGrammar(chunks)
      expect(Exit.isFailure(exit)).toBe(true)
      expect(finishOf(chunks).response).toMatchObject({ messages: [], uiMessages: [] })
      expect(yield* messagesOf()).toStrictEqual([Message.user("go")])
      expect(yield* nextPrompt()).toStrictEqual([Message.user("go"), Message.user("next")])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect.each(failing)("%s, in the second step: the first step is kept", ([, turn]) =>
    Effect.gen(function* () {
      const agent = agentOf(ScriptedModel.make([first, turn]), [echo], { maxRetries: 0 })
      yield* Effect.exit(Agent.generate(agent, "go", { memory }))
      expect(yield* messagesOf()).toStrictEqual([Message.user("go"), ...firstStep])
      expect(yield* nextPrompt()).toStrictEqual([Message.user("go"), ...firstStep, Message.user("next")])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("and is tried again says in the thread what the second attempt said, once", () =>
    Effect.gen(function* () {
      const failure = { type: "error", error: { statusCode: 503, message: "busy" } } as const
      const agent = agentOf(ScriptedModel.make([[failure], reply("at last")]), [echo])
      const fiber = yield* Effect.fork(Agent.generate(agent, "go", { memory }))
      yield* turns(20)
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      expect(yield* messagesOf()).toStrictEqual([Message.user("go"), assistant(said("at last"))])
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("because of stopWhen or prepareStep keeps its steps", () =>
    Effect.gen(function* () {
      const stopWhen = () => {
        throw new Error("no")
      }
      const agent = agentOf(ScriptedModel.make([first]), [echo], { stopWhen })
      const { exit } = yield* read(Agent.stream(agent, "go", { memory }))
      expect(Exit.isFailure(exit)).toBe(true)
      expect(yield* messagesOf()).toStrictEqual([Message.user("go"), ...firstStep])
    }).pipe(Effect.provide(layerMemory))
  )
})

const full = new Errors.StorageError({ operation: "ThreadStore.append", message: "The disk is full." })

/** A store whose operation does this from its n-th call on (1-based). */
const faulty = (
  operation: "open" | "messages" | "append",
  from: number,
  fault: Effect.Effect<never, Errors.StorageError>
) =>
  changed(store => {
    let count = 0
    const guard = <A, E>(asked: Effect.Effect<A, E>) =>
      Effect.suspend((): Effect.Effect<A, E | Errors.StorageError> => (++count >= from ? fault : asked))
    return {
      open: thread => (operation === "open" ? guard(store.open(thread)) : store.open(thread)),
      messages: (id, options) =>
        operation === "messages" ? guard(store.messages(id, options)) : store.messages(id, options),
      append: (id, messages) =>
        operation === "append" ? guard(store.append(id, messages)) : store.append(id, messages)
    }
  })

const failureOf = (exit: Exit.Exit<unknown, unknown>): unknown =>
  Exit.isFailure(exit) ? Cause.squash(exit.cause) : expect.fail("It did not fail")

describe("a store that fails", () => {
  const cases = [
    ["open", 1, 0, ["start", "error", "finish"]],
    ["messages", 1, 0, ["start", "error", "finish"]],
    ["append", 1, 0, ["start", "error", "finish"]],
    ["append", 2, 1, undefined],
    ["append", 3, 2, undefined]
  ] as const

  const faults: ReadonlyArray<readonly [what: string, Effect.Effect<never, Errors.StorageError>]> = [
    ["fails", Effect.fail(full)],
    ["dies", Effect.die(new TypeError("a defect"))]
  ]

  for (const [what, fault] of faults) {
    it.effect.each(cases)(`whose %s ${what} at call %s fails the run`, ([operation, from, asked, told]) =>
      Effect.gen(function* () {
        const model = ScriptedModel.make([first, reply("done")])
        const agent = agentOf(model, [echo])
        const { chunks, exit } = yield* read(Agent.stream(agent, "go", { memory }))
        expectGrammar(chunks)
        expect(types(chunks).slice(-2)).toStrictEqual(["error", "finish"])
        if (told !== undefined) expect(types(chunks)).toStrictEqual(told)
        expect(failureOf(exit)).toBeInstanceOf(Errors.StorageError)
        expect(only(chunks, "error")[0]?.payload.error).toBe(failureOf(exit))
        expect(finishOf(chunks).stepResult.reason).toBe("error")
        expect(model.requests).toHaveLength(asked)
      }).pipe(Effect.provide(faulty(operation, from, fault)))
    )

    it.effect.each(cases)(`whose %s ${what} at call %s settles the output of the run`, ([operation, from]) =>
      Effect.scoped(
        Effect.gen(function* () {
          const agent = agentOf(ScriptedModel.make([first, reply("done")]), [echo])
          const output = yield* Agent.run(agent, "go", { memory })
          const { chunks, exit } = yield* read(output.fullStream)
          expect(chunks.at(-1)?.type).toBe("finish")
          expect(failureOf(exit)).toBeInstanceOf(Errors.StorageError)
          expect(yield* Effect.flip(Stream.runDrain(output.textStream))).toBeInstanceOf(Errors.StorageError)
          expect(yield* Effect.flip(output.text)).toBeInstanceOf(Errors.StorageError)
          expect((yield* output.fullOutput).status).toBe("failed")
          expect(yield* Effect.flip(Agent.generate(agent, "go", { memory }))).toBeInstanceOf(
            Errors.StorageError
          )
        })
      ).pipe(Effect.provide(faulty(operation, from, fault)))
    )
  }

  it.effect("names itself, not what it was asked to store", () =>
    Effect.gen(function* () {
      const secret = new Error("INSERT INTO messages VALUES ('my secret')")
      const agent = agentOf(ScriptedModel.make([]))
      const error = yield* Effect.flip(Agent.generate(agent, "go", { memory }))
      expect(error).toBeInstanceOf(Errors.StorageError)
      expect(error.message).not.toContain("secret")
      expect(error).toMatchObject({ cause: secret })
    }).pipe(
      Effect.provide(faulty("append", 1, Effect.die(new Error("INSERT INTO messages VALUES ('my secret')"))))
    )
  )

  it.effect(
    "after the step: the run says its step, then why it ends; nothing of the step is in the thread",
    () =>
      Effect.gen(function* () {
        const agent = agentOf(ScriptedModel.make([first]), [echo])
        const { chunks } = yield* read(Agent.stream(agent, "go", { memory }))
        expect(types(chunks).slice(-3)).toStrictEqual(["step-finish", "error", "finish"])
        expect(only(chunks, "step-finish")[0]?.payload.stepResult.isContinued).toBe(false)
        expect(yield* messagesOf()).toStrictEqual([Message.user("go")])
      }).pipe(Effect.provide(faulty("append", 2, Effect.fail(full))))
  )

  it.effect(
    "after a step that leaves a call to the client: the call has an outcome, as in every run that fails",
    () =>
      Effect.gen(function* () {
        const model = ScriptedModel.make([[...text("pick"), toolCall("c1", "pick", {}), ends("tool-calls")]])
        const { chunks } = yield* read(Agent.stream(agentOf(model, [pick]), "go", { memory }))
        expectGrammar(chunks)
        expect(types(chunks).slice(-4)).toStrictEqual(["tool-error", "step-finish", "error", "finish"])
      }).pipe(Effect.provide(faulty("append", 2, Effect.fail(full))))
  )

  it.effect("refuses a thread of another resource: nothing is asked, nothing stored", () =>
    Effect.gen(function* () {
      yield* say("mine", "yours")
      const model = ScriptedModel.make([])
      const { chunks, exit } = yield* read(
        Agent.stream(agentOf(model), "theirs", { memory: { thread: "t1", resource: "u2" } })
      )
      expectGrammar(chunks)
      expect(failureOf(exit)).toBeInstanceOf(Errors.ThreadNotFound)
      expect(failureOf(exit)).toMatchObject({ threadId: "t1" })
      expect(types(chunks)).toStrictEqual(["start", "error", "finish"])
      expect(JSON.stringify(finishOf(chunks))).not.toContain("mine")
      expect(model.requests).toHaveLength(0)
      expect(yield* stored()).toHaveLength(2)
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("a thread that is deleted meanwhile fails the run", () =>
    Effect.gen(function* () {
      const store = yield* Threads
      const drop = Tool.make("drop", { execute: () => store.delete("t1") })
      const model = ScriptedModel.make([[toolCall("c1", "drop", {}), ends("tool-calls")]])
      const { chunks, exit } = yield* read(Agent.stream(agentOf(model, [drop]), "go", { memory }))
      expectGrammar(chunks)
      expect(failureOf(exit)).toBeInstanceOf(Errors.ThreadNotFound)
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("an empty input on an empty thread fails the run", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([])
      const error = yield* Effect.flip(Agent.generate(agentOf(model), [], { memory }))
      expect(error).toBeInstanceOf(Errors.InvalidMessage)
    }).pipe(Effect.provide(layerMemory))
  )

  it.effect("when a run is stopped: the run ends as stopped, and the log says what is missing", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.make(
        ({ message, logLevel }) => void lines.push(`${logLevel.label} ${String(message)}`)
      )
      const controller = new AbortController()
      const agent = agentOf(ScriptedModel.make([[says("part"), hang]]))
      const { chunks, exit } = yield* read(
        Agent.stream(agent, "go", { memory, abortSignal: controller.signal, runId: "r1" }),
        chunk => Effect.sync(() => void (chunk.type === "text-delta" && controller.abort()))
      ).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
      expect(exit).toStrictEqual(Exit.void)
      expect(finishOf(chunks).stepResult.reason).toBe("aborted")
      expect(lines.filter(line => /^WARN.*r1.*t1/.test(line))).toHaveLength(1)
    }).pipe(Effect.provide(faulty("append", 2, Effect.fail(full))))
  )
})

describe("a store that hangs", () => {
  const hanging: ReadonlyArray<readonly [what: string, Effect.Effect<never>]> = [
    ["for ever", Effect.never],
    ["in a promise", Effect.promise(() => new Promise<never>(() => undefined))],
    ["for ever, and cannot be interrupted", Effect.uninterruptible(Effect.never)]
  ]

  /** Reads the run until it has told its finish, with a minute for whatever it waits for. */
  const readToFinish = Effect.fnUntraced(function* (
    stream: Stream.Stream<Chunk.Chunk, Errors.AgentError, ThreadStore.ThreadStore>,
    look: (chunk: Chunk.Chunk) => void
  ) {
    const chunks: Array<Chunk.Chunk> = []
    const finished = yield* Deferred.make<void>()
    yield* Effect.forkDaemon(
      Stream.runForEach(stream, chunk => {
        chunks.push(chunk)
        look(chunk)
        return chunk.type === "finish" ? Deferred.succeed(finished, undefined) : Effect.void
      })
    )
    yield* turns(20)
    return { chunks, finished }
  })

  it.effect.each(hanging)("%s, when a run is stopped, holds it 5 seconds and no longer", ([, never]) =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const agent = agentOf(ScriptedModel.make([[says("part"), hang]]))
      const stream = Agent.stream(agent, "go", { memory, abortSignal: controller.signal })
      const { chunks, finished } = yield* readToFinish(stream, chunk => {
        if (chunk.type === "text-delta") controller.abort("enough")
      })
      yield* TestClock.adjust("4900 millis")
      yield* turns(10)
      expect(types(chunks).at(-1)).toBe("text-end")
      yield* TestClock.adjust("200 millis")
      yield* turns(10)
      expect(yield* Deferred.isDone(finished)).toBe(true)
      expectGrammar(chunks)
      expect(types(chunks).slice(-2)).toStrictEqual(["abort", "finish"])
    }).pipe(Effect.provide(faulty("append", 2, never)))
  )

  it.effect("when a reader leaves, holds it 5 seconds and no longer", () =>
    Effect.gen(function* () {
      const agent = agentOf(ScriptedModel.make([[says("part"), hang]]))
      const stream = Agent.stream(agent, "go", { memory })
      const fiber = yield* Effect.fork(
        Stream.runDrain(Stream.takeUntil(stream, chunk => chunk.type === "text-delta"))
      )
      yield* turns(20)
      yield* TestClock.adjust("4900 millis")
      yield* turns(10)
      expect(fiber.unsafePoll()).toBe(null)
      yield* TestClock.adjust("200 millis")
      yield* Fiber.join(fiber)
    }).pipe(Effect.provide(faulty("append", 2, Effect.never)))
  )

  it.effect("when its stream is interrupted, holds it 5 seconds and no longer", () =>
    Effect.gen(function* () {
      const reached = yield* Deferred.make<void>()
      const agent = agentOf(ScriptedModel.make([[says("part"), hang]]))
      const fiber = yield* Effect.fork(
        Stream.runForEach(Agent.stream(agent, "go", { memory }), chunk =>
          chunk.type === "text-delta" ? Deferred.succeed(reached, undefined) : Effect.void
        )
      )
      yield* Deferred.await(reached)
      yield* Fiber.interruptFork(fiber)
      yield* turns(20)
      yield* TestClock.adjust("4900 millis")
      yield* turns(10)
      expect(fiber.unsafePoll()).toBe(null)
      yield* TestClock.adjust("200 millis")
      expect(Exit.isInterrupted(yield* Fiber.await(fiber))).toBe(true)
    }).pipe(Effect.provide(faulty("append", 2, Effect.never)))
  )

  const opening = [
    ["open", 1],
    ["messages", 1],
    ["append", 1]
  ] as const

  it.effect.each(opening)("in %s: an abort ends the run at once", ([operation, from]) =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const model = ScriptedModel.make([])
      const stream = Agent.stream(agentOf(model), "go", { memory, abortSignal: controller.signal })
      const { chunks, exit } = yield* read(stream, chunk =>
        Effect.sync(() => {
          if (chunk.type === "start") setImmediate(() => controller.abort("enough"))
        })
      )
      expect(types(chunks)).toStrictEqual(["start", "abort", "finish"])
      expect(exit).toStrictEqual(Exit.void)
      expect(model.requests).toHaveLength(0)
    }).pipe(Effect.provide(faulty(operation, from, Effect.never)))
  )

  it.effect.each(opening)("in %s: the time limit of the run ends it", ([operation, from]) =>
    Effect.gen(function* () {
      const agent = agentOf(ScriptedModel.make([]), [], { timeouts: { run: "1 minute" } })
      const { chunks, exit } = yield* read(Agent.stream(agent, "go", { memory }), chunk =>
        chunk.type === "start"
          ? Effect.asVoid(Effect.fork(Effect.zipRight(turns(5), TestClock.adjust("1 minute"))))
          : Effect.void
      )
      expect(types(chunks)).toStrictEqual(["start", "error", "finish"])
      expect(failureOf(exit)).toBeInstanceOf(Errors.RunTimedOut)
    }).pipe(Effect.provide(faulty(operation, from, Effect.never)))
  )

  it.effect("in the append of a step: an abort ends the step and, 5 seconds later, the run", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const agent = agentOf(ScriptedModel.make([first]), [echo])
      const stream = Agent.stream(agent, "go", { memory, abortSignal: controller.signal })
      const { chunks, finished } = yield* readToFinish(stream, () => undefined)
      expect(types(chunks).at(-1)).toBe("tool-result")
      controller.abort("enough")
      yield* turns(10)
      yield* TestClock.adjust("5 seconds")
      yield* Deferred.await(finished)
      expectGrammar(chunks)
      expect(types(chunks).slice(-3)).toStrictEqual(["step-finish", "abort", "finish"])
    }).pipe(Effect.provide(faulty("append", 2, Effect.never)))
  )
})

describe("a store that is slow", () => {
  /** Each append takes some turns of the event loop, before and after it is done. */
  const slow = changed(store => ({
    append: (id, messages) => Effect.zipLeft(Effect.zipRight(turns(3), store.append(id, messages)), turns(3))
  }))

  it.effect("two runs at once on one thread: every prompt is well formed, everything is stored once", () =>
    Effect.gen(function* () {
      for (const round of [1, 2, 3]) {
        const names = [`x${round}`, `y${round}`, `z${round}`]
        const models = names.map(name =>
          ScriptedModel.make([
            // All of them call their calls the same.
            [...text(`${name}-1`), toolCall("c1", "echo", { of: name }), ends("tool-calls")],
            [...text(`${name}-2`), toolCall("c1", "echo", { of: name }), ends("tool-calls")],
            reply(`${name}-3`)
          ])
        )
        yield* Effect.forEach(
          models,
          (model, index) =>
            Effect.zipRight(
              turns(index * 4),
              Agent.generate(agentOf(model, [echo]), `${names[index]}-0`, { memory: whole })
            ),
          { concurrency: "unbounded" }
        )
        for (const model of models) {
          expect(model.requests).toHaveLength(3)
          for (const request of model.requests) expectPrompt(request.messages)
        }
        const held = yield* stored()
        expect(held).toHaveLength(round * 3 * 6)
        expect(new Set(held.map(({ id }) => id)).size).toBe(held.length)
        for (const name of names) {
          const of = held.filter(({ message }) => textIn([message]).startsWith(name))
          expect(of.map(({ message }) => textIn([message]))).toStrictEqual(
            [0, 1, 2, 3].map(n => `${name}-${n}`)
          )
        }
        const prompt = yield* nextPrompt([])
        yield* Effect.flatMap(Threads, store => store.messages("t1")).pipe(
          Effect.map(messages => expect(prompt.length).toBe(messages.length - 1))
        )
        yield* forgetLast
      }
    }).pipe(Effect.provide(slow))
  )

  /** `nextPrompt` has added an answer. */
  const forgetLast = Effect.gen(function* () {
    const store = yield* Threads
    const held = (yield* store.messages("t1")).slice(0, -1)
    yield* store.delete("t1")
    yield* store.open({ id: "t1", resourceId: "u1" })
    yield* store.append("t1", held)
  })

  it.effect("a run that is stopped while a step is being stored has it once", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const agent = agentOf(ScriptedModel.make([first]), [echo])
      const { chunks } = yield* read(
        Agent.stream(agent, "go", { memory, abortSignal: controller.signal }),
        chunk =>
          Effect.sync(() => {
            if (chunk.type === "tool-result") setImmediate(() => setImmediate(() => controller.abort()))
          })
      )
      expectGrammar(chunks)
      expect(finishOf(chunks).stepResult.reason).toBe("aborted")
      expect(yield* messagesOf()).toStrictEqual([Message.user("go"), ...firstStep])
    }).pipe(Effect.provide(slow))
  )

  it.effect("a run that is stopped while a step is being stored that leaves a call to the client", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const model = ScriptedModel.make([[...text("pick"), toolCall("c1", "pick", {}), ends("tool-calls")]])
      const { chunks } = yield* read(
        Agent.stream(agentOf(model, [pick]), "go", { memory, abortSignal: controller.signal }),
        chunk =>
          Effect.sync(() => {
            if (chunk.type === "tool-call") setImmediate(() => setImmediate(() => controller.abort()))
          })
      )
      expect(finishOf(chunks).stepResult.reason).toBe("aborted")
      expectGrammar(chunks)
      expect(yield* nextPrompt()).toStrictEqual([
        Message.user("go"),
        assistant(said("pick"), called("c1", "pick")),
        outcomes(["c1", "pick", cut]),
        Message.user("next")
      ])
    }).pipe(Effect.provide(slow))
  )

  it.effect("is waited for before the step is finished and before the next model call", () =>
    Effect.gen(function* () {
      const store = yield* Threads
      let isOpen = false
      const gate = yield* Deferred.make<void>()
      const gated = Layer.succeed(Threads, {
        ...store,
        append: (id: string, messages: ReadonlyArray<ThreadStore.NewMessage>) =>
          Effect.zipRight(
            messages.some(({ message }) => message.role === "tool") ? Deferred.await(gate) : Effect.void,
            store.append(id, messages)
          )
      })
      const model = ScriptedModel.make([first, reply("done")])
      const seen: Array<string> = []
      const fiber = yield* Agent.stream(agentOf(model, [echo]), "go", { memory }).pipe(
        Stream.runForEach(chunk => Effect.sync(() => void seen.push(chunk.type))),
        Effect.provide(gated),
        Effect.fork
      )
      yield* turns(30)
      expect(seen.at(-1)).toBe("tool-result")
      expect(model.requests).toHaveLength(1)
      isOpen = yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(fiber)
      expect(isOpen).toBe(true)
      expect(model.requests).toHaveLength(2)
    }).pipe(Effect.provide(layerMemory))
  )
})

describe("what cannot work is refused before any chunk", () => {
  const refused = (options: object, agent: object = {}) =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([])
      const { chunks, exit } = yield* read(
        Agent.stream(Agent.make({ id: "keeper", model, ...agent }), "go", options) as Stream.Stream<
          Chunk.Chunk,
          Errors.AgentError
        >
      )
      expect(chunks).toStrictEqual([])
      // An error that can be caught, and no defect.
      if (!Exit.isFailure(exit)) return expect.fail("It was not refused")
      const failure = Cause.failureOption(exit.cause)
      expect(failure._tag).toBe("Some")
      return Cause.squash(exit.cause) as Errors.InvalidConfiguration
    })

  it.effect("a run with memory where there is no store", () =>
    Effect.gen(function* () {
      const error = yield* refused({ memory })
      expect(error).toBeInstanceOf(Errors.InvalidConfiguration)
      expect(error.field).toBe("memory")
      expect(error.message).toMatch(/"keeper".*storage: new InMemoryStore\(\).*ThreadStore/)
    })
  )

  const wrong: ReadonlyArray<readonly [what: string, memory: unknown, field: string]> = [
    ["an empty thread", { ...memory, thread: "" }, "memory.thread"],
    ["no thread", { resource: "u1" }, "memory.thread"],
    ["a thread that is null", { ...memory, thread: null }, "memory.thread"],
    ["a thread with an empty id", { ...memory, thread: { id: "" } }, "memory.thread.id"],
    ["a thread without an id", { ...memory, thread: { title: "x" } }, "memory.thread"],
    ["a thread that is a number", { ...memory, thread: 1 }, "memory.thread"],
    ["an empty resource", { ...memory, resource: "" }, "memory.resource"],
    ["no resource", { thread: "t1" }, "memory.resource"],
    ["a misspelt field", { ...memory, lastMessage: 3 }, "lastMessage"],
    ["a misspelt field of the thread", { ...memory, thread: { id: "t1", titel: "x" } }, "titel"],
    ["lastMessages -1", { ...memory, lastMessages: -1 }, "memory.lastMessages"],
    ["lastMessages 1.5", { ...memory, lastMessages: 1.5 }, "memory.lastMessages"],
    ["lastMessages NaN", { ...memory, lastMessages: Number.NaN }, "memory.lastMessages"],
    ["lastMessages true", { ...memory, lastMessages: true }, "memory.lastMessages"]
  ]

  it.effect.each(wrong)("%s", ([, given, field]) =>
    Effect.gen(function* () {
      const { calls, layer } = counting()
      const error = yield* Effect.provide(refused({ memory: given }), layer)
      expect(error).toBeInstanceOf(Errors.InvalidConfiguration)
      expect(error.field).toBe(field)
      expect(error.message.length).toBeGreaterThan(20)
      expect(calls).toStrictEqual([])
    })
  )

  it.each([
    [{ lastMessages: -1 }, "memory.lastMessages"],
    [{ lastMessages: 1.5 }, "memory.lastMessages"],
    [{ lastMessage: 2 }, "lastMessage"],
    [{ thread: "t1", resource: "u1" }, "thread"]
  ])("by the agent: %j", (given, field) => {
    const model = ScriptedModel.make([])
    expect(configurationError(() => Agent.make({ id: "keeper", model, memory: given as object })).field).toBe(
      field
    )
  })
})

describe("what a turn costs", () => {
  /** A thread of so many messages, half of them the user's. */
  const seed = (count: number) =>
    Effect.gen(function* () {
      const store = yield* Threads
      yield* store.open({ id: "t1", resourceId: "u1" })
      yield* store.append(
        "t1",
        Array.from({ length: count }, (_, index) => ({
          id: `seed-${index}`,
          message: index % 2 === 0 ? Message.user(`u${index}`) : assistant(said(`a${index}`))
        }))
      )
    })

  const turnOf = Effect.fnUntraced(function* (count: number, lastMessages: number | undefined) {
    const { calls, forget, layer, rows } = counting()
    return yield* Effect.gen(function* () {
      yield* seed(count)
      forget()
      const model = ScriptedModel.make([first, reply("done")])
      yield* Agent.generate(agentOf(model, [echo]), "go", {
        memory: { ...memory, ...(lastMessages === undefined ? {} : { lastMessages }) }
      })
      return { calls: [...calls], ...rows, told: model.requests[0]?.messages.length }
    }).pipe(Effect.provide(layer))
  })

  it.effect("is what is recalled, not what is stored", () =>
    Effect.gen(function* () {
      const costs = {
        calls: ["open", "startRun", "messages", "append", "append", "append"],
        read: 40,
        written: 4,
        told: 41
      }
      expect(yield* turnOf(50, undefined)).toStrictEqual(costs)
      expect(yield* turnOf(1_000, undefined)).toStrictEqual(costs)
      expect(yield* turnOf(1_000, 4)).toStrictEqual({ ...costs, read: 4, told: 5 })
      expect(yield* turnOf(1_000, 0)).toStrictEqual({
        calls: ["open", "startRun", "append", "append", "append"],
        read: 0,
        written: 4,
        told: 1
      })
    })
  )

  it.effect("grows with the steps, not with their square: each message is written once", () =>
    Effect.gen(function* () {
      const written = (steps: number) =>
        Effect.gen(function* () {
          const { calls, layer, rows } = counting()
          const turn = (index: number) => [toolCall(`c${index}`, "echo", { index }), ends("tool-calls")]
          const script = Array.from({ length: steps }, (_, index) => turn(index))
          const agent = agentOf(ScriptedModel.make(script), [echo], { maxSteps: steps })
          yield* Effect.provide(Agent.generate(agent, "go", { memory }), layer)
          return [calls.length, rows.written]
        })
      expect(yield* written(10)).toStrictEqual([3 + 1 + 10, 1 + 20])
      expect(yield* written(50)).toStrictEqual([3 + 1 + 50, 1 + 100])
    })
  )
})
