/** What stops a run: abort signals, interruption, scopes, readers that leave; and what is left of it then: nothing. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, type Chunk, Errors, type LanguageModel, type ModelPart, Tool } from "eddy"
import * as Facade from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import {
  Clock,
  Context,
  Deferred,
  Duration,
  Effect,
  Exit,
  Fiber,
  FiberRef,
  Scope,
  Stream,
  Supervisor,
  TestClock
} from "effect"
import { expectGrammar } from "../support/grammar.js"
import { call, finish, finishOf, modelOf, only, read, textOf, turns, types } from "./kit.js"

const { finish: ends, text, toolCall } = ScriptedModel

const never = (): Promise<never> => new Promise(() => undefined)

/** Real time that an abort may take: 50 ms are promised, the machine that runs this may be busy. */
const soon = 250

/** Says this much, then nothing more; hears neither its signal nor that it is cancelled. */
const silent = (...parts: ReadonlyArray<ModelPart.ModelPart>) =>
  modelOf([
    async function* () {
      yield* parts
      await never()
    }
  ])

/** Says this much, then nothing more, and tells how it was stopped. */
const attentive = (...parts: ReadonlyArray<ModelPart.ModelPart>) => {
  const stopped: Array<string> = []
  const kit = modelOf([
    signal => {
      signal.addEventListener("abort", () => stopped.push("signal"))
      const rest = parts.values()
      return new ReadableStream<unknown>(
        {
          pull: controller => {
            const { done, value } = rest.next()
            if (!done) controller.enqueue(value)
            return done ? never() : undefined
          },
          cancel: () => {
            stopped.push("cancelled")
          }
        },
        { highWaterMark: 0 }
      )
    }
  ])
  return { ...kit, stopped }
}

const agentOf = <const Tools extends ReadonlyArray<Tool.Any> = []>(
  model: LanguageModel.LanguageModel,
  tools?: Tools
) => Agent.make({ id: "stopper", model, ...(tools === undefined ? {} : { tools }) })

const expectAborted = (chunks: ReadonlyArray<Chunk.Chunk>, reason: unknown) => {
  expectGrammar(chunks)
  expect(types(chunks).slice(-2)).toStrictEqual(["abort", "finish"])
  expect(only(chunks, "abort")[0]?.payload).toStrictEqual(reason === undefined ? {} : { reason })
  expect(finishOf(chunks).stepResult).toStrictEqual({ reason: "aborted", isContinued: false })
}

/** Aborts as soon as a chunk of this type is read, and tells how long the rest took, in milliseconds. */
const abortAt = <E, R>(
  type: Chunk.ChunkType,
  streamOf: (signal: AbortSignal) => Stream.Stream<Chunk.Chunk, E, R>
) =>
  Effect.gen(function* () {
    const controller = new AbortController()
    let abortedAt = 0
    const told = yield* read(streamOf(controller.signal), chunk => {
      if (chunk.type !== type || abortedAt > 0) return Effect.void
      return Effect.map(Clock.currentTimeMillis, now => {
        abortedAt = now
        controller.abort("enough")
      })
    })
    return { ...told, took: (yield* Clock.currentTimeMillis) - abortedAt, isAborted: abortedAt > 0 }
  })

const deferred = <A>() => {
  let resolve: (value: A) => void = () => undefined
  const promise = new Promise<A>(settle => {
    resolve = settle
  })
  return { promise, resolve }
}

describe("an abort signal", () => {
  it.effect("that has fired before the run asks no model", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([text("hi")])
      const stream = Agent.stream(agentOf(model), "go", { abortSignal: AbortSignal.abort("early") })
      const { chunks, exit } = yield* read(stream)
      expect(types(chunks)).toStrictEqual(["start", "abort", "finish"])
      expectAborted(chunks, "early")
      expect(exit).toStrictEqual(Exit.void)
      expect(model.requests).toHaveLength(0)
      expect(finishOf(chunks).messages.all).toHaveLength(1)
    })
  )

  it.live("stops a provider that has gone silent and hears nothing", () =>
    Effect.gen(function* () {
      const { model } = silent({ type: "text-delta", id: "0", delta: "par" })
      const { chunks, exit, took } = yield* abortAt("text-delta", abortSignal =>
        Agent.stream(agentOf(model), "go", { abortSignal })
      )
      expectAborted(chunks, "enough")
      expect(took).toBeLessThan(soon)
      expect(exit).toStrictEqual(Exit.void)
      expect(textOf(chunks)).toBe("par")
      expect(finishOf(chunks).output.text).toBe("par")
      expect(finishOf(chunks).messages.all.at(-1)).toStrictEqual({
        role: "assistant",
        content: [{ type: "text", text: "par" }]
      })
    })
  )

  it.live("stops a provider that has not begun to answer", () =>
    Effect.gen(function* () {
      const signals: Array<AbortSignal> = []
      const model: LanguageModel.LanguageModel = {
        provider: "kit",
        modelId: "kit-1",
        answer: (_, signal) => {
          signals.push(signal)
          return Effect.promise(never)
        }
      }
      const { chunks, took } = yield* abortAt("start", abortSignal =>
        Agent.stream(agentOf(model), "go", { abortSignal })
      )
      expectAborted(chunks, "enough")
      expect(took).toBeLessThan(soon)
      expect(signals.map(signal => signal.aborted)).toStrictEqual([true])
      expect(signals[0]?.reason).toBe("enough")
    })
  )

  it.effect("tells the provider, by its signal and by cancelling what it sends", () =>
    Effect.gen(function* () {
      const { model, stopped } = attentive({ type: "text-delta", id: "0", delta: "par" })
      yield* abortAt("text-delta", abortSignal => Agent.stream(agentOf(model), "go", { abortSignal }))
      expect(stopped).toStrictEqual(["signal", "cancelled"])
    })
  )

  const stubborn: ReadonlyArray<readonly [what: string, execute: () => Effect.Effect<unknown>]> = [
    ["is Effect.never", () => Effect.never],
    ["waits for a promise", () => Effect.promise(never)]
  ]

  it.live.each(stubborn)("stops a tool that %s", ([, execute]) =>
    Effect.gen(function* () {
      const signals: Array<AbortSignal> = []
      const wait = Tool.make("wait", {
        execute: (_, { abortSignal, write }) => {
          signals.push(abortSignal)
          return Effect.zipRight(write("began"), execute())
        }
      })
      const model = ScriptedModel.make([
        [
          ...text("so"),
          toolCall("c1", "wait", {}),
          toolCall("c2", "wait", {}),
          ends("tool-calls", { inputTokens: 4 })
        ]
      ])
      const { chunks, exit, took } = yield* abortAt("tool-output", abortSignal =>
        Agent.stream(agentOf(model, [wait]), "go", { abortSignal })
      )
      expectAborted(chunks, "enough")
      expect(took).toBeLessThan(soon)
      expect(exit).toStrictEqual(Exit.void)
      expect(signals.map(({ aborted, reason }) => [aborted, reason])).toStrictEqual([
        [true, "enough"],
        [true, "enough"]
      ])
      const errors = only(chunks, "tool-error").map(chunk => chunk.payload)
      expect(errors.map(({ toolCallId }) => toolCallId)).toStrictEqual(["c1", "c2"])
      for (const { error } of errors) expect(error).toBeInstanceOf(Errors.RunAborted)
      const { messages, output } = finishOf(chunks)
      expect(output).toStrictEqual({ text: "so", usage: { inputTokens: 4 } })
      expect(messages.all.at(-1)?.content).toMatchObject([
        { toolCallId: "c1", output: { type: "error-text", value: "The run was aborted: enough" } },
        { toolCallId: "c2", output: { type: "error-text" } }
      ])
    })
  )

  it("a tool that goes on after the abort and asks for its signal late finds it fired", async () => {
    const begun = deferred<void>()
    const goOn = deferred<void>()
    const late = deferred<AbortSignal>()
    const slow = Facade.createTool({
      id: "slow",
      execute: async (_, context) => {
        begun.resolve()
        await goOn.promise
        late.resolve(context.abortSignal)
      }
    })
    const model = ScriptedModel.make([
      [ScriptedModel.toolCall("c", "slow", {}), ScriptedModel.finish("tool-calls")]
    ])
    const output = await new Facade.Agent({ id: "late", model, tools: { slow } }).stream("go")
    await begun.promise
    await output.cancel("enough")
    goOn.resolve()
    const signal = await late.promise
    expect([signal.aborted, signal.reason]).toEqual([true, "enough"])
  })

  it.live("stops a Promise tool that never settles and hears nothing", () =>
    Effect.promise(async () => {
      const wait = Facade.createTool({
        id: "wait",
        execute: async (_, { writer }) => {
          void writer.write("began")
          await never()
        }
      })
      const controller = new AbortController()
      const agent = new Facade.Agent({
        id: "stopper",
        model: ScriptedModel.make([[toolCall("c1", "wait", {}), ends("tool-calls")]]),
        tools: { wait }
      })
      const { finishReason, fullStream } = await agent.stream("go", { abortSignal: controller.signal })
      const chunks: Array<Facade.Chunk> = []
      let abortedAt = Number.NaN
      for await (const chunk of fullStream) {
        chunks.push(chunk)
        if (chunk.type !== "tool-output") continue
        abortedAt = performance.now()
        controller.abort("enough")
      }
      expect(performance.now() - abortedAt).toBeLessThan(soon)
      expectAborted(chunks, "enough")
      expect(await finishReason).toBe("aborted")
    })
  )

  it.live("stops a run whose stop condition never decides; its step is told whole", () =>
    Effect.gen(function* () {
      const echo = Tool.make("echo", { execute: () => Effect.succeed("x") })
      const model = ScriptedModel.make([[toolCall("c1", "echo", {}), ends("tool-calls")]])
      const { chunks, isAborted, took } = yield* abortAt("tool-result", abortSignal =>
        Agent.stream(agentOf(model, [echo]), "go", { abortSignal, stopWhen: () => Effect.never })
      )
      expect(isAborted).toBe(true)
      expectAborted(chunks, "enough")
      expect(took).toBeLessThan(soon)
      expect(types(chunks).slice(-3)).toStrictEqual(["step-finish", "abort", "finish"])
      expect(finishOf(chunks).messages.all).toHaveLength(3)
    })
  )

  it.effect("fired by a tool stops this tool too, and the ones behind it are not begun", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const begun: Array<string> = []
      const signals: Array<AbortSignal> = []
      const abort = Tool.make("abort", {
        execute: (_, { abortSignal, toolCallId }) =>
          Effect.suspend(() => {
            begun.push(toolCallId)
            signals.push(abortSignal)
            controller.abort()
            return Effect.never
          })
      })
      const model = ScriptedModel.make([
        [toolCall("c1", "abort", {}), toolCall("c2", "abort", {}), ends("tool-calls")]
      ])
      const stream = Agent.stream(agentOf(model, [abort]), "go", { abortSignal: controller.signal })
      const seen: Array<boolean> = []
      const { chunks } = yield* read(stream, chunk =>
        Effect.sync(() => {
          if (chunk.type === "abort") seen.push(...signals.map(signal => signal.aborted))
        })
      )
      expectAborted(chunks, controller.signal.reason)
      expect(begun).toStrictEqual(["c1"])
      expect(seen).toStrictEqual([true])
    })
  )

  it.effect("fired by a tool that then ends keeps its result, and says that no step follows", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const abort = Tool.make("abort", {
        execute: () =>
          Effect.sync(() => {
            controller.abort("enough")
            return "aborted"
          })
      })
      const model = ScriptedModel.make([[toolCall("c1", "abort", {}), ends("tool-calls")]])
      const stream = Agent.stream(agentOf(model, [abort]), "go", { abortSignal: controller.signal })
      const { chunks } = yield* read(stream)
      expectAborted(chunks, "enough")
      expect(only(chunks, "tool-result").map(chunk => chunk.payload.result)).toStrictEqual(["aborted"])
      expect(only(chunks, "step-finish").map(chunk => chunk.payload.stepResult.isContinued)).toStrictEqual([
        false
      ])
      expect(model.requests).toHaveLength(1)
    })
  )

  it.effect("after the last step has ended changes nothing, between two steps it ends the run", () =>
    Effect.gen(function* () {
      const echo = Tool.make("echo", { execute: () => Effect.succeed("x") })
      const model = () =>
        ScriptedModel.make([
          [toolCall("c1", "echo", {}), ends("tool-calls")],
          [...text("done"), ends("stop")]
        ])
      const whole = yield* abortAt("finish", abortSignal =>
        Agent.stream(agentOf(model(), [echo]), "go", { abortSignal })
      )
      expect(finishOf(whole.chunks).stepResult.reason).toBe("stop")
      const cut = yield* abortAt("step-finish", abortSignal =>
        Agent.stream(agentOf(model(), [echo]), "go", { abortSignal })
      )
      expectAborted(cut.chunks, "enough")
      expect(textOf(cut.chunks)).toBe("")
    })
  )

  it.effect("is let go of after every run, however it ended", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const { signal } = controller
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
      const answer = [...text("a b c d"), ends("stop")]
      const model = ScriptedModel.make([answer, text("cut"), answer])
      const agent = agentOf(model)
      const stream = Agent.stream(agent, "go", { abortSignal: signal })
      yield* read(stream)
      yield* read(stream)
      yield* Stream.runDrain(Stream.take(stream, 3))
      expect(listeners).toBe(0)
      expect(model.unused()).toBe(0)
    })
  )
})

describe("interrupting whoever reads the stream", () => {
  it.effect("stops the provider, and the stream ends without a word", () =>
    Effect.gen(function* () {
      const { model, signals, stopped } = attentive({ type: "text-delta", id: "0", delta: "par" })
      const reached = yield* Deferred.make<void>()
      const chunks: Array<Chunk.Chunk> = []
      const fiber = yield* Agent.stream(agentOf(model), "go").pipe(
        Stream.runForEach(chunk => {
          chunks.push(chunk)
          return chunk.type === "text-delta" ? Deferred.succeed(reached, undefined) : Effect.void
        }),
        Effect.fork
      )
      yield* Deferred.await(reached)
      const exit = yield* Fiber.interrupt(fiber)
      expect(Exit.isInterrupted(exit)).toBe(true)
      expect(stopped).toStrictEqual(["signal", "cancelled"])
      expect(signals[0]?.reason).toMatchObject({ name: "AbortError" })
      expect(types(chunks)).toStrictEqual(["start", "step-start", "text-start", "text-delta"])
    })
  )

  it.effect("stops a provider that hears nothing", () =>
    Effect.gen(function* () {
      const { model } = silent({ type: "text-delta", id: "0", delta: "par" })
      const reached = yield* Deferred.make<void>()
      const fiber = yield* Agent.stream(agentOf(model), "go").pipe(
        Stream.runForEach(chunk =>
          chunk.type === "text-delta" ? Deferred.succeed(reached, undefined) : Effect.void
        ),
        Effect.fork
      )
      yield* Deferred.await(reached)
      expect(Exit.isInterrupted(yield* Fiber.interrupt(fiber))).toBe(true)
    })
  )

  it.effect("stops the tools: signals fire, finalizers have run, no fiber is left", () =>
    Effect.gen(function* () {
      const supervisor = yield* Supervisor.track
      const began = yield* Deferred.make<void>()
      const log: Array<string> = []
      const wait = Tool.make("wait", {
        execute: (_, { abortSignal }) => {
          abortSignal.addEventListener("abort", () => log.push("signal"))
          return Effect.zipRight(Deferred.succeed(began, undefined), Effect.never).pipe(
            Effect.ensuring(
              Effect.zipRight(
                turns(3),
                Effect.sync(() => log.push("finalizer"))
              )
            )
          )
        }
      })
      const model = ScriptedModel.make([[toolCall("c1", "wait", {}), ends("tool-calls")]])
      yield* Effect.gen(function* () {
        const fiber = yield* Effect.fork(Stream.runDrain(Agent.stream(agentOf(model, [wait]), "go")))
        yield* Deferred.await(began)
        expect((yield* supervisor.value).length).toBeGreaterThan(0)
        yield* Fiber.interrupt(fiber)
      }).pipe(Effect.supervised(supervisor))
      expect(log).toStrictEqual(["signal", "finalizer"])
      expect(yield* supervisor.value).toHaveLength(0)
    })
  )

  it.effect(
    "works for a run that was begun where nobody may interrupt: its abort signal still stops it",
    () =>
      Effect.gen(function* () {
        const { model } = silent({ type: "text-delta", id: "0", delta: "par" })
        const { chunks } = yield* Effect.uninterruptible(
          abortAt("text-delta", abortSignal => Agent.stream(agentOf(model), "go", { abortSignal }))
        )
        expectAborted(chunks, "enough")
      })
  )

  it.effect("leaves no fiber behind a run that ended by itself, failed, or was read in part", () =>
    Effect.gen(function* () {
      const supervisor = yield* Supervisor.track
      const echo = Tool.make("echo", { execute: () => Effect.as(turns(1), "x") })
      const answer = [...text("a b c"), toolCall("c1", "echo", {}), ends("tool-calls")]
      const model = ScriptedModel.make([answer, [ends("stop")], text("cut"), answer])
      const stream = Agent.stream(agentOf(model, [echo]), "go")
      yield* Effect.gen(function* () {
        yield* read(stream)
        yield* read(stream)
        yield* Stream.runDrain(Stream.take(stream, 4))
      }).pipe(Effect.supervised(supervisor))
      expect(model.unused()).toBe(0)
      expect(yield* supervisor.value).toHaveLength(0)
    })
  )
})

describe("a reader that leaves", () => {
  it.effect("after three chunks cancels the provider", () =>
    Effect.gen(function* () {
      const deltas = Array.from(
        { length: 500 },
        (): ModelPart.ModelPart => ({ type: "text-delta", id: "0", delta: "x" })
      )
      const { model, stopped } = attentive(...deltas)
      const chunks = yield* Stream.runCollect(Stream.take(Agent.stream(agentOf(model), "go"), 3))
      expect([...chunks].map(chunk => chunk.type)).toStrictEqual(["start", "step-start", "text-start"])
      expect(stopped).toStrictEqual(["signal", "cancelled"])
    })
  )

  it.effect("of a finished answer cancels nothing", () =>
    Effect.gen(function* () {
      const { model, stopped } = attentive({ type: "text-delta", id: "0", delta: "x" }, finish("stop"))
      const { exit } = yield* read(Agent.stream(agentOf(model), "go"))
      expect(exit).toStrictEqual(Exit.void)
      // The source is let go of, and the provider is not told that anything is wrong.
      expect(stopped).toStrictEqual(["cancelled"])
    })
  )
})

describe("a reader that does not pull", () => {
  it.effect("holds the provider, a few parts beyond 64", () =>
    Effect.gen(function* () {
      let pulls = 0
      const { model } = modelOf([
        () => ({
          [Symbol.asyncIterator]: () => ({
            next: async () => {
              pulls++
              if (pulls === 1_000) return { done: false, value: finish("stop") }
              return { done: pulls > 1_000, value: { type: "text-delta", id: "0", delta: "x" } }
            }
          })
        })
      ])
      const scope = yield* Scope.make()
      const pull = yield* Scope.extend(Stream.toPull(Agent.stream(agentOf(model), "go")), scope)
      yield* turns(20)
      expect(pulls).toBe(0)
      yield* pull
      yield* turns(50)
      expect(pulls).toBeGreaterThan(10)
      expect(pulls).toBeLessThanOrEqual(70)
      yield* pull
      yield* turns(50)
      expect(pulls).toBeLessThanOrEqual(140)
      yield* Scope.close(scope, Exit.void)
      const before = pulls
      yield* turns(20)
      expect(pulls).toBeLessThanOrEqual(before + 1)
    })
  )

  it.effect("does not hold a run for ever: read to its end, it has every part", () =>
    Effect.gen(function* () {
      const { model } = modelOf([
        async function* () {
          for (let index = 0; index < 1_000; index++)
            yield { type: "text-delta", id: "0", delta: `${index} ` }
          yield finish("stop")
        }
      ])
      const { chunks } = yield* read(Agent.stream(agentOf(model), "go"), (_, count) =>
        count % 100 === 0 ? turns(2) : Effect.void
      )
      expectGrammar(chunks)
      expect(textOf(chunks)).toBe(Array.from({ length: 1_000 }, (_, index) => `${index} `).join(""))
    })
  )
})

describe("Agent.run", () => {
  it.effect("is aborted by the end of its scope, and has settled then", () =>
    Effect.gen(function* () {
      const { model, stopped } = attentive({ type: "text-delta", id: "0", delta: "par" })
      const scope = yield* Scope.make()
      const output = yield* Scope.extend(Agent.run(agentOf(model), "go"), scope)
      const first = yield* Stream.runHead(output.textStream)
      expect(first).toMatchObject({ value: "par" })
      expect(yield* output.status).toBe("running")
      yield* Scope.close(scope, Exit.void)
      expect(stopped).toStrictEqual(["signal", "cancelled"])
      const full = yield* output.fullOutput
      expect(full).toMatchObject({ status: "aborted", text: "par", finishReason: "aborted" })
      expectAborted([...(yield* Stream.runCollect(output.fullStream))], "The scope of the run was closed.")
      expect(yield* Effect.flip(output.text)).toBeInstanceOf(Errors.RunAborted)
    })
  )

  it.effect("leaves no fiber behind its scope, also with a tool that waits", () =>
    Effect.gen(function* () {
      const supervisor = yield* Supervisor.track
      const began = yield* Deferred.make<void>()
      const wait = Tool.make("wait", {
        execute: () => Effect.zipRight(Deferred.succeed(began, undefined), Effect.never)
      })
      const model = ScriptedModel.make([[toolCall("c1", "wait", {}), ends("tool-calls")]])
      yield* Agent.run(agentOf(model, [wait]), "go").pipe(
        Effect.zipRight(Deferred.await(began)),
        Effect.scoped,
        Effect.supervised(supervisor)
      )
      expect(yield* supervisor.value).toHaveLength(0)
    })
  )

  it.effect("generate that is interrupted stops its run", () =>
    Effect.gen(function* () {
      const began = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<void>()
      const wait = Tool.make("wait", {
        execute: () =>
          Effect.zipRight(Deferred.succeed(began, undefined), Effect.never).pipe(
            Effect.ensuring(Deferred.succeed(ended, undefined))
          )
      })
      const model = ScriptedModel.make([[toolCall("c1", "wait", {}), ends("tool-calls")]])
      const fiber = yield* Effect.fork(Agent.generate(agentOf(model, [wait]), "go"))
      yield* Deferred.await(began)
      expect(Exit.isInterrupted(yield* Fiber.interrupt(fiber))).toBe(true)
      expect(yield* Deferred.isDone(ended)).toBe(true)
    })
  )
})

describe("the surroundings of a run", () => {
  it.effect("a paced model and a tool that sleeps go by the clock of the test", () =>
    Effect.gen(function* () {
      const slow = Tool.make("slow", { execute: () => Effect.as(Effect.sleep("1 minute"), "slept") })
      const model = ScriptedModel.make([
        [
          ...text("one"),
          ScriptedModel.pause("10 seconds"),
          ...text("two", "b"),
          toolCall("c1", "slow", {}),
          ends("tool-calls")
        ],
        [...text("three"), ends("stop")]
      ])
      const times: Array<readonly [what: string, seconds: number]> = []
      const fiber = yield* Agent.stream(agentOf(model, [slow]), "go").pipe(
        Stream.runForEach(chunk => {
          const what =
            chunk.type === "text-delta"
              ? chunk.payload.text
              : chunk.type === "tool-result"
                ? "result"
                : undefined
          if (what === undefined) return Effect.void
          return Effect.map(Clock.currentTimeMillis, now => void times.push([what, now / 1_000]))
        }),
        Effect.fork
      )
      // Seconds pass one by one, and the run has turns of the event loop between them.
      yield* Effect.forEach(
        Array.from({ length: 80 }),
        () => Effect.zipRight(turns(2), TestClock.adjust(Duration.seconds(1))),
        { discard: true }
      )
      yield* Fiber.join(fiber)
      expect(times.map(([what]) => what)).toStrictEqual(["one", "two", "result", "three"])
      const [one = 0, two = 0, result = 0, three = 0] = times.map(([, seconds]) => seconds)
      expect(one).toBeLessThan(3)
      expect(two - one).toBeGreaterThanOrEqual(7)
      expect(result - two).toBeGreaterThanOrEqual(57)
      expect(three - result).toBeLessThan(5)
    })
  )

  it.effect("fiber refs reach the tools", () =>
    Effect.gen(function* () {
      class Tenant extends Context.Reference<Tenant>()("Tenant", { defaultValue: () => "nobody" }) {}
      const depth = FiberRef.unsafeMake(0)
      const look = Tool.make("look", {
        execute: () => Effect.all([Tenant, FiberRef.get(depth)])
      })
      const model = ScriptedModel.make([[toolCall("c1", "look", {}), ends("tool-calls")], [ends("stop")]])
      const { chunks } = yield* read(Agent.stream(agentOf(model, [look]), "go")).pipe(
        Effect.provideService(Tenant, "acme"),
        Effect.locally(depth, 3)
      )
      expect(only(chunks, "tool-result")[0]?.payload.result).toStrictEqual(["acme", 3])
    })
  )

  it.effect("a call that comes with other parts in one tick is executed once", () =>
    Effect.gen(function* () {
      let executions = 0
      const count = Tool.make("count", {
        input: { type: "object" },
        execute: () => Effect.sync(() => ++executions)
      })
      const { model } = modelOf([
        async function* () {
          yield { type: "tool-input-start", id: "c1", toolName: "count" }
          yield { type: "tool-input-delta", id: "c1", delta: '{"q":1}' }
          yield { type: "tool-input-delta", id: "c1", delta: "" }
          yield { type: "tool-input-delta", id: "c1", delta: " " }
          yield { type: "tool-input-end", id: "c1" }
          yield call("c1", "count", '{"q":1} ')
          yield call("c1", "count", { q: 1 })
          yield finish("tool-calls")
        },
        async function* () {
          yield finish("stop")
        }
      ])
      const { chunks } = yield* read(Agent.stream(agentOf(model, [count]), "go"))
      expectGrammar(chunks)
      expect(executions).toBe(1)
      expect(only(chunks, "tool-call").map(chunk => chunk.payload.args)).toStrictEqual([{ q: 1 }])
    })
  )
})
