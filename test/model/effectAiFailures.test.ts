/** What an `@effect/ai` model fails with, and how it is stopped. */
import { AiError } from "@effect/ai"
import { describe, expect, it } from "@effect/vitest"
import { Agent, Errors, type LanguageModel } from "eddy"
import { Cause, Chunk, Deferred, Effect, Exit, Fiber, Option, Stream } from "effect"
import { only, read, textOf, turns, types } from "../agent/kit.js"
import { expectGrammar } from "../support/grammar.js"
import { request } from "../support/readAnswer.js"
import { refuseUnhandledRejections } from "../support/readers.js"
import * as Kit from "./effectAiKit.js"

refuseUnhandledRejections()

const secret = "sk-not-to-be-seen"

const sent = {
  method: "POST",
  url: `https://api.acme.example/v1?key=${secret}`,
  urlParams: [["key", secret]],
  hash: Option.none(),
  headers: { authorization: `Bearer ${secret}` }
} as const

const place = { module: "AcmeClient", method: "streamRequest" }

const refused = (status: number, headers: Record<string, string> = {}): AiError.HttpResponseError =>
  new AiError.HttpResponseError({
    ...place,
    reason: "StatusCode",
    description: `non 2xx status code: ${secret}`,
    request: sent,
    response: { status, headers: { ...headers, "set-cookie": secret } },
    body: `{"error":"${secret}"}`
  })

const unreachable = (reason: "Transport" | "Encode" | "InvalidUrl"): AiError.HttpRequestError =>
  new AiError.HttpRequestError({
    ...place,
    reason,
    request: sent,
    description: secret,
    cause: new Error(secret)
  })

/** A run of this answer that fails; its error, and what was told before it. */
const failing = Effect.fnUntraced(function* (turn: Kit.Turn) {
  const { agent } = yield* Kit.agentOf([turn], [], { provider: "acme", modelId: "m-1" })
  const { chunks, exit } = yield* read(Agent.stream(agent, "go"))
  expectGrammar(chunks)
  expect(types(chunks).slice(-2)).toStrictEqual(["error", "finish"])
  if (Exit.isSuccess(exit)) throw new Error("The run did not fail")
  // A failure, and not a defect.
  expect(Cause.defects(exit.cause)).toHaveLength(0)
  const error = Option.getOrUndefined(Cause.failureOption(exit.cause))
  if (!(error instanceof Errors.ModelError)) throw new Error(`The run failed with ${String(error)}`)
  expect(only(chunks, "error")[0]?.payload.error).toBe(error)
  expect(error).toMatchObject({ provider: "acme", modelId: "m-1" })
  expect(error.message).not.toContain(secret)
  expect(JSON.stringify(chunks)).not.toContain(secret)
  return { chunks, error }
})

const errorOf = (turn: Kit.Turn) => Effect.map(failing(turn), ({ error }) => error)

const fields = ({ isRetryable, message, reason, retryAfter, statusCode }: Errors.ModelError) => ({
  reason,
  message,
  ...(statusCode === undefined ? {} : { statusCode }),
  ...(isRetryable === undefined ? {} : { isRetryable }),
  ...(retryAfter === undefined ? {} : { retryAfter })
})

describe("an answer that fails before its first part", () => {
  it.effect("at the provider's status", () =>
    Effect.gen(function* () {
      for (const [statusCode, isRetryable] of [
        [400, false],
        [401, false],
        [408, true],
        [409, true],
        [429, true],
        [500, true],
        [529, true]
      ] as const) {
        const cause = refused(statusCode)
        const error = yield* errorOf(Stream.fail(cause))
        expect(fields(error)).toStrictEqual({
          reason: "request",
          message: `The model call failed with status ${statusCode}.`,
          statusCode,
          isRetryable
        })
        expect(error.cause).toBe(cause)
      }
    })
  )

  it.effect("and says when to try again", () =>
    Effect.gen(function* () {
      const waitOf = (headers: Record<string, string>) =>
        Effect.map(errorOf(Stream.fail(refused(429, headers))), error => error.retryAfter)
      expect(yield* waitOf({ "retry-after": "7" })).toBe(7000)
      expect(yield* waitOf({ "Retry-After": " 0.5 " })).toBe(500)
      expect(yield* waitOf({ "retry-after-ms": "1500", "retry-after": "7" })).toBe(1500)
      const date = "Thu, 26 Nov 2026 10:00:00 GMT"
      expect(yield* waitOf({ date, "retry-after": "Thu, 26 Nov 2026 10:00:10 GMT" })).toBe(10_000)
      expect(yield* waitOf({ "retry-after": "soon", "retry-after-ms": "-1" })).toBeUndefined()
      expect(yield* waitOf({})).toBeUndefined()
    })
  )

  it.effect("in every other way that @effect/ai knows", () =>
    Effect.gen(function* () {
      const reason = "request"
      const told = (error: AiError.AiError) => Effect.map(errorOf(Stream.fail(error)), fields)
      expect(yield* told(unreachable("Transport"))).toStrictEqual({
        reason,
        message: "The provider could not be reached, or the connection broke off.",
        isRetryable: true
      })
      expect(yield* told(unreachable("Encode"))).toStrictEqual({
        reason,
        message: "The request could not be encoded.",
        isRetryable: false
      })
      expect(yield* told(unreachable("InvalidUrl"))).toStrictEqual({
        reason,
        message: "The address of the provider is no valid URL.",
        isRetryable: false
      })
      const { body: _body, ...rest } = refused(200)
      const response = { ...place, request: rest.request, response: rest.response, body: secret }
      expect(yield* told(new AiError.HttpResponseError({ ...response, reason: "Decode" }))).toStrictEqual({
        reason,
        message: "The provider sent something that could not be read.",
        statusCode: 200
      })
      expect(yield* told(new AiError.HttpResponseError({ ...response, reason: "EmptyBody" }))).toStrictEqual({
        reason,
        message: "The provider sent no body.",
        statusCode: 200
      })
      const description = `Detected unsupported media type:\n${secret}`
      expect(yield* told(new AiError.MalformedInput({ ...place, description }))).toStrictEqual({
        reason,
        message: "Detected unsupported media type."
      })
      expect(yield* told(new AiError.MalformedOutput({ ...place, cause: new Error(secret) }))).toStrictEqual({
        reason,
        message: "The provider sent something that could not be read."
      })
      expect(yield* told(new AiError.UnknownError({ ...place, cause: new Error(secret) }))).toStrictEqual({
        reason,
        message: "The model call failed."
      })
    })
  )

  it.effect("with a defect", () =>
    Effect.gen(function* () {
      const boom = new Error("boom")
      const error = yield* errorOf(Stream.die(boom))
      expect(fields(error)).toStrictEqual({ reason: "request", message: "boom" })
      expect(error.cause).toBe(boom)
      expect(
        fields(
          yield* errorOf(
            Stream.suspend(() => {
              throw boom
            })
          )
        )
      ).toStrictEqual({
        reason: "request",
        message: "boom"
      })
      expect(yield* errorOf(Stream.execute(Effect.interrupt))).toMatchObject({ reason: "request" })
    })
  )

  it.effect("fails already when it is asked for, and not first when it is read", () =>
    Effect.gen(function* () {
      const nothing = Stream.mapChunks(Kit.oneByOne(Kit.ends()), () => Chunk.empty<Kit.Encoded>())
      const { model } = yield* Kit.agentOf([Stream.concat(nothing, Stream.fail(refused(503)))])
      const begun = model.answer(request(), new AbortController().signal)
      if (!Effect.isEffect(begun)) throw new Error("The answer is no Effect")
      expect(yield* Effect.flip(begun)).toMatchObject({ reason: "request", statusCode: 503 })
    })
  )
})

describe("an answer that fails behind a part", () => {
  it.effect("keeps everything that was said before", () =>
    Effect.gen(function* () {
      const [start, one, two] = Kit.text("Hel", "lo")
      const said = [start, one, two].flatMap(part => part ?? [])
      // The failure is there as soon as the chunk is.
      const { chunks, error } = yield* failing(
        Stream.concat(Kit.atOnce(...said), Stream.fail(refused(500, { "retry-after": "1" })))
      )
      expect(fields(error)).toStrictEqual({
        reason: "stream",
        message: "The model call failed with status 500.",
        statusCode: 500,
        isRetryable: true,
        retryAfter: 1000
      })
      expect(textOf(chunks)).toBe("Hello")
    })
  )

  it.effect("with a defect, or with a finalizer that breaks too", () =>
    Effect.gen(function* () {
      const said = Kit.oneByOne(...Kit.text("Hi"))
      const died = yield* errorOf(Stream.concat(said, Stream.die("boom")))
      expect(fields(died)).toStrictEqual({ reason: "stream", message: "boom" })
      const failed = Stream.concat(said, Stream.fail(unreachable("Transport")))
      const error = yield* errorOf(Stream.ensuring(failed, Effect.die("finalizer")))
      expect(error.reason).toBe("stream")
    })
  )

  it.effect("with an error part", () =>
    Effect.gen(function* () {
      const withError = (error: unknown) =>
        Kit.oneByOne(...Kit.text("Hi"), { type: "error", error }, Kit.ends())
      const own = yield* failing(withError({ type: "overloaded_error", message: "Overloaded" }))
      expect(fields(own.error)).toStrictEqual({ reason: "stream", message: "Overloaded", isRetryable: true })
      expect(textOf(own.chunks)).toBe("Hi")
      expect(fields(yield* errorOf(withError(refused(429, { "retry-after": "2" }))))).toStrictEqual({
        reason: "stream",
        message: "The model call failed with status 429.",
        statusCode: 429,
        isRetryable: true,
        retryAfter: 2000
      })
    })
  )

  it.effect("when the provider says so at its end", () =>
    Effect.gen(function* () {
      expect(yield* errorOf(Kit.oneByOne(...Kit.text("Hi"), Kit.ends("error")))).toMatchObject({
        reason: "stream"
      })
    })
  )

  it.effect("but what breaks behind the finish breaks nothing", () =>
    Effect.gen(function* () {
      const said = Kit.oneByOne(...Kit.text("Hi"), Kit.ends())
      for (const broken of [
        Stream.concat(said, Stream.fail(refused(500))),
        Stream.ensuring(said, Effect.die("finalizer"))
      ]) {
        const { agent } = yield* Kit.agentOf([broken])
        expect((yield* Agent.generate(agent, "go")).text).toBe("Hi")
      }
    })
  )
})

describe("an answer without a finish", () => {
  it.effect("is incomplete", () =>
    Effect.gen(function* () {
      expect(yield* errorOf(Kit.oneByOne(...Kit.text("Hi")))).toMatchObject({ reason: "incomplete" })
      expect(yield* errorOf(Kit.oneByOne(...Kit.writes("c1", "look_up", '{"q":')))).toMatchObject({
        reason: "incomplete"
      })
      expect(yield* errorOf(Stream.empty)).toMatchObject({ reason: "incomplete" })
    })
  )
})

/** Says this much, then nothing more; `released` tells how its finalizer found it. */
const silent = Effect.fnUntraced(function* (...parts: ReadonlyArray<Kit.Encoded>) {
  const begun = yield* Deferred.make<void>()
  const released = yield* Deferred.make<"interrupted" | "ended">()
  const release = (exit: Exit.Exit<unknown, unknown>) =>
    Deferred.succeed(released, Exit.isInterrupted(exit) ? "interrupted" : "ended")
  const held = Effect.acquireRelease(Deferred.succeed(begun, undefined), (_, exit) => release(exit))
  const turn: Kit.Turn = Stream.unwrapScoped(
    Effect.as(held, Stream.concat(Kit.oneByOne(...parts), Stream.never))
  )
  const kit = yield* Kit.agentOf([turn])
  return { ...kit, begun, released }
})

describe("a provider that has gone silent", () => {
  it.effect("is interrupted when the run is aborted", () =>
    Effect.gen(function* () {
      const { agent, released } = yield* silent(...Kit.text("Hi"))
      const controller = new AbortController()
      const { chunks, exit } = yield* read(
        Agent.stream(agent, "go", { abortSignal: controller.signal }),
        chunk => (chunk.type === "text-end" ? Effect.sync(() => controller.abort("enough")) : Effect.void)
      )
      expectGrammar(chunks)
      expect(types(chunks).slice(-2)).toStrictEqual(["abort", "finish"])
      expect(exit).toStrictEqual(Exit.void)
      expect(yield* Deferred.await(released)).toBe("interrupted")
    })
  )

  it.effect("is interrupted when the run is aborted before it has said anything", () =>
    Effect.gen(function* () {
      const { agent, begun, released } = yield* silent()
      const controller = new AbortController()
      const fiber = yield* Effect.fork(read(Agent.stream(agent, "go", { abortSignal: controller.signal })))
      yield* Deferred.await(begun)
      controller.abort()
      const { chunks } = yield* Fiber.join(fiber)
      expect(types(chunks)).toContain("abort")
      expect(yield* Deferred.await(released)).toBe("interrupted")
    })
  )

  it.effect("is interrupted with the fiber that runs the agent", () =>
    Effect.gen(function* () {
      for (const parts of [[], Kit.text("Hi")]) {
        const { agent, begun, released } = yield* silent(...parts)
        const fiber = yield* Effect.fork(Agent.generate(agent, "go"))
        yield* Deferred.await(begun)
        yield* turns(8)
        yield* Fiber.interrupt(fiber)
        expect(yield* Deferred.await(released)).toBe("interrupted")
      }
    })
  )

  it.effect("is interrupted when its reader has read enough", () =>
    Effect.gen(function* () {
      const { agent, released } = yield* silent(...Kit.text("Hi"))
      const chunks = yield* Stream.runCollect(
        Stream.takeUntil(Agent.stream(agent, "go"), chunk => chunk.type === "text-delta")
      )
      expect(textOf([...chunks])).toBe("Hi")
      expect(yield* Deferred.await(released)).toBe("interrupted")
    })
  )

  it.effect("behind its finish is waited for by nobody", () =>
    Effect.gen(function* () {
      const { agent, released } = yield* silent(...Kit.text("Hi"), Kit.ends())
      expect((yield* Agent.generate(agent, "go")).text).toBe("Hi")
      expect(yield* Deferred.await(released)).toBe("interrupted")
    })
  )

  it.effect("and that does not want to be interrupted holds nothing up", () =>
    Effect.gen(function* () {
      for (const parts of [[], Kit.text("Hi")]) {
        const begun = yield* Deferred.make<void>()
        const stubborn = Stream.concat(
          Kit.oneByOne(...parts),
          Stream.execute(Deferred.succeed(begun, undefined))
        ).pipe(Stream.concat(Stream.execute(Effect.uninterruptible(Effect.never))))
        const { agent } = yield* Kit.agentOf([stubborn])
        const fiber = yield* Effect.fork(Agent.generate(agent, "go"))
        yield* Deferred.await(begun)
        yield* Fiber.interrupt(fiber)
      }
    })
  )
})

describe("an answer behind the port", () => {
  const begin = Effect.fnUntraced(function* (model: LanguageModel.LanguageModel, signal: AbortSignal) {
    const begun = model.answer(request(), signal)
    if (!Effect.isEffect(begun)) throw new Error("The answer is no Effect")
    const { normalize, source } = yield* begun
    if (!(Symbol.asyncIterator in source)) throw new Error("The source is not iterable")
    const iterator = source[Symbol.asyncIterator]()
    return {
      next: Effect.map(
        Effect.promise(() => iterator.next()),
        ({ done, value }) => (done === true ? "over" : normalize(value)?.type)
      ),
      cancel: Effect.promise(async () => iterator.return?.())
    }
  })

  it.effect("is interrupted by its signal alone, and ends then", () =>
    Effect.gen(function* () {
      const { model, released } = yield* silent({ type: "text-start", id: "0" })
      const controller = new AbortController()
      const answer = yield* begin(model, controller.signal)
      expect(yield* answer.next).toBe("text-start")
      const next = yield* Effect.fork(answer.next)
      yield* turns(2)
      controller.abort()
      expect(yield* Deferred.await(released)).toBe("interrupted")
      expect(yield* Fiber.join(next)).toBe("over")
      expect(yield* answer.next).toBe("over")
    })
  )

  it.effect("is interrupted when whoever waits for its beginning is", () =>
    Effect.gen(function* () {
      const { begun, model, released } = yield* silent()
      const fiber = yield* Effect.fork(begin(model, new AbortController().signal))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(fiber)
      expect(yield* Deferred.await(released)).toBe("interrupted")
    })
  )

  it.effect(
    "is not asked for when its signal has fired before, and interrupted when its beginning may not be",
    () =>
      Effect.gen(function* () {
        const early = yield* silent()
        expect(yield* Effect.exit(begin(early.model, AbortSignal.abort()))).toSatisfy(Exit.isInterrupted)
        expect(early.requests).toHaveLength(0)
        const late = yield* silent({ type: "text-start", id: "0" })
        const controller = new AbortController()
        yield* Effect.uninterruptible(begin(late.model, controller.signal))
        controller.abort()
        expect(yield* Deferred.await(late.released)).toBe("interrupted")
      })
  )

  it.effect("is interrupted when it is cancelled, also by a reader that waits", () =>
    Effect.gen(function* () {
      const { model, released } = yield* silent({ type: "text-start", id: "0" })
      const answer = yield* begin(model, new AbortController().signal)
      expect(yield* answer.next).toBe("text-start")
      const next = yield* Effect.fork(answer.next)
      yield* turns(2)
      yield* answer.cancel
      expect(yield* Deferred.await(released)).toBe("interrupted")
      expect(yield* Fiber.join(next)).toBe("over")
    })
  )

  it.effect("is not ahead of its reader, and lets go of the signal at its end", () =>
    Effect.gen(function* () {
      const said: Array<string> = []
      const turn = Kit.oneByOne(...Kit.text("Hi"), Kit.ends()).pipe(
        Stream.tap(part => Effect.sync(() => said.push(part.type)))
      )
      const { model } = yield* Kit.agentOf([turn])
      const { signal } = new AbortController()
      const listeners = new Set<unknown>()
      signal.addEventListener = (_: string, listener: unknown) => listeners.add(listener)
      signal.removeEventListener = (_: string, listener: unknown) => listeners.delete(listener)
      const answer = yield* begin(model, signal)
      yield* turns(4)
      expect(said).toStrictEqual(["text-start"])
      expect(yield* answer.next).toBe("text-start")
      yield* turns(4)
      expect(said).toStrictEqual(["text-start"])
      expect(yield* answer.next).toBe("text-delta")
      expect(listeners.size).toBe(1)
      expect([yield* answer.next, yield* answer.next, yield* answer.next]).toStrictEqual([
        "text-end",
        "finish",
        "over"
      ])
      expect(listeners.size).toBe(0)
      expect(yield* answer.next).toBe("over")
    })
  )

  it.effect("tells its failure once", () =>
    Effect.gen(function* () {
      const { model } = yield* Kit.agentOf([
        Stream.concat(Kit.atOnce({ type: "text-start", id: "0" }), Stream.fail(refused(500)))
      ])
      const answer = yield* begin(model, new AbortController().signal)
      expect(yield* answer.next).toBe("text-start")
      expect(yield* Effect.exit(answer.next)).toSatisfy(Exit.isFailure)
      expect(yield* answer.next).toBe("over")
    })
  )
})
