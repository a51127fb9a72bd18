/**
 * Runs over the real provider packages that do not end well: an error in the middle, a body that ends too early, a caller
 * who leaves. Each says so once, executes nothing that is not complete, and gives nothing away.
 */
import { describe, expect, it } from "@effect/vitest"
import { type Chunk, Errors } from "eddy"
import type { ModelOutput } from "eddy/promise"
import { Deferred, Effect, Fiber } from "effect"
import { apiKey, sdk } from "../support/aiSdkModels.js"
import { expectGrammar } from "../support/grammar.js"
import { textOf, typesOf } from "../support/readers.js"
import type * as Server from "../support/transcriptServer.js"
import { chat } from "../support/transcripts.js"
import { type Api, everywhere, named } from "../support/wireApis.js"
import {
  effectFace,
  type Face,
  finishOf,
  instructions,
  ofType,
  playing,
  runOver,
  toJson
} from "../support/wireRuns.js"

/** What every reader of a failed run gets: the same error everywhere, and what was said until then. */
const expectSettled = (output: ModelOutput, failure: unknown, text: string) =>
  Effect.promise(async () => {
    const rejections = await Promise.allSettled([output.text, output.usage, output.toolCalls, output.steps])
    for (const one of rejections) expect(one).toStrictEqual({ status: "rejected", reason: failure })
    const full = await output.getFullOutput()
    expect(full).toMatchObject({ text, finishReason: await output.finishReason })
    expect(full.error).toBe(failure)
    expect(output.error).toBe(failure)
  })

/** Nothing in what is sent that should stay in the process. */
const expectNothingGivenAway = (chunks: ReadonlyArray<Chunk.Chunk>, failure: Errors.ModelError) =>
  Effect.gen(function* () {
    const json = JSON.stringify(yield* toJson(chunks))
    for (const secret of [
      apiKey,
      instructions,
      "authorization",
      "x-api-key",
      "x-goog-api-key",
      "127.0.0.1"
    ]) {
      expect(json).not.toContain(secret)
    }
    expect(json).not.toMatch(/node_modules|\.js:\d+|\\n\s+at /)
    const errors = (yield* toJson(ofType(chunks, "error"))).map(chunk =>
      "payload" in chunk ? chunk.payload : {}
    )
    expect(errors).toStrictEqual([{ error: { name: "ModelError", message: failure.message } }])
  })

const expectFailed = (
  { chunks, failure }: { readonly chunks: ReadonlyArray<Chunk.Chunk>; readonly failure: unknown },
  reasons: ReadonlyArray<Errors.ModelError["reason"]>
): Errors.ModelError => {
  expectGrammar(chunks)
  expect(typesOf(chunks).slice(-2)).toStrictEqual(["error", "finish"])
  expect(ofType(chunks, "error").map(({ payload }) => payload.error)).toStrictEqual([failure])
  expect(finishOf(chunks).stepResult).toStrictEqual({ reason: "error", isContinued: false })
  if (!(failure instanceof Errors.ModelError)) return expect.fail(`No ModelError: ${String(failure)}`)
  expect(reasons).toContain(failure.reason)
  return failure
}

describe("an error in the middle", () => {
  it.live.each(everywhere)("%s", ([_, { api, face }]) =>
    Effect.gen(function* () {
      const ran = yield* runOver(face, api.makeModel, [{ body: api.broken.body }])
      const failure = expectFailed(ran, ["stream"])
      expect(failure).toMatchObject(api.broken.error)
      expect(textOf(ran.chunks)).toBe("Bis hier")
      expect(finishOf(ran.chunks).output.text).toBe("Bis hier")
      yield* expectNothingGivenAway(ran.chunks, failure)
      if (ran.output !== undefined) yield* expectSettled(ran.output, failure, "Bis hier")
    })
  )

  it.live.each(everywhere)("a socket that dies: %s", ([_, { api, face }]) =>
    Effect.gen(function* () {
      const ran = yield* runOver(face, api.makeModel, [{ body: api.truncated.body, end: "destroy" }])
      const failure = expectFailed(ran, ["stream", "request"])
      const said = textOf(ran.chunks)
      expect(api.truncated.said.startsWith(said)).toBe(true)
      yield* expectNothingGivenAway(ran.chunks, failure)
      if (ran.output !== undefined) yield* expectSettled(ran.output, failure, said)
    })
  )

  it.live("in the second step keeps the first", () =>
    Effect.gen(function* () {
      const replies = [{ body: chat.parallelCalls }, { body: chat.errorInTheMiddle }]
      const ran = yield* runOver(effectFace, sdk.chatV4, replies)
      expectFailed(ran, ["stream"])
      expect(ofType(ran.chunks, "step-finish")).toHaveLength(1)
      expect(ofType(ran.chunks, "tool-result")).toHaveLength(2)
      expect(finishOf(ran.chunks).output).toMatchObject({ text: "Bis hier", usage: { totalTokens: 34 } })
    })
  )
})

/** V2 of this package tells a body that ends too early like one that gives no reason to have ended. */
const tellsNoTruncation = ({ makeModel }: Api): boolean => makeModel === sdk.chatV2

describe("a body that ends too early", () => {
  it.live.each(everywhere)("in a text: %s", ([_, { api, face }]) =>
    Effect.gen(function* () {
      const ran = yield* runOver(face, api.makeModel, [{ body: api.truncated.body }])
      expect(textOf(ran.chunks)).toBe(api.truncated.said)
      if (tellsNoTruncation(api)) {
        expectGrammar(ran.chunks)
        expect(ran.failure).toBeUndefined()
        expect(finishOf(ran.chunks).stepResult.reason).toBe("other")
        return
      }
      const failure = expectFailed(ran, ["incomplete", "stream"])
      yield* expectNothingGivenAway(ran.chunks, failure)
      if (ran.output !== undefined) yield* expectSettled(ran.output, failure, api.truncated.said)
    })
  )

  it.live.each(everywhere)("in the arguments of a call: %s", ([_, { api, face }]) =>
    Effect.gen(function* () {
      for (const end of ["finish", "destroy"] as const) {
        const ran = yield* runOver(face, api.makeModel, [{ body: api.calls.torn, end }])
        expectFailed(ran, ["incomplete", "stream"])
        expect(ran.executed).toStrictEqual([])
        expect(ofType(ran.chunks, "tool-result")).toStrictEqual([])
        const begun = ofType(ran.chunks, "tool-call-input-streaming-start")
        // Google sends a call in one event: what is torn there has not begun.
        expect(begun).toHaveLength(api.makeModel === sdk.google ? 0 : 1)
        expect(ofType(ran.chunks, "tool-call-input-streaming-end")).toHaveLength(begun.length)
        expect(ran.requests).toHaveLength(1)
      }
    })
  )

  it.live.each(named)("anywhere before the end of the answer, no call is executed: %s", ([_, api]) =>
    Effect.scoped(
      Effect.gen(function* () {
        const { body, endMark, made } = api.calls
        const bytes = new TextEncoder().encode(body)
        const complete = new TextEncoder().encode(body.slice(0, body.indexOf(endMark))).length
        const server = yield* playing()
        for (let length = 0; length < complete; length += 83) {
          server.play({ body: bytes, bytes: length }, { body: api.text.body })
          const ran = yield* effectFace(server.url, api.makeModel)
          if (tellsNoTruncation(api) && ran.failure === undefined) {
            // Nothing tells an answer whose last call is complete from one that is: what is executed is what was asked.
            for (const { input } of ran.executed) expect(made.map(({ args }) => args)).toContainEqual(input)
            continue
          }
          expectFailed(ran, ["incomplete", "stream", "request"])
          expect(ran.executed).toStrictEqual([])
        }
      })
    )
  )
})

describe("a caller who leaves", () => {
  const atMost = 250

  /** How long the server takes to notice, in milliseconds. */
  const untilDisconnected = (asked: Server.Request, leave: Effect.Effect<unknown>) =>
    Effect.gen(function* () {
      const before = performance.now()
      yield* leave
      yield* Deferred.await(asked.disconnected)
      return performance.now() - before
    })

  /** Says something and then nothing more. */
  const stuck = ({ text: { body } }: Api): Server.Reply => ({
    body,
    bytes: Math.floor(body.length * 0.8),
    end: "hang"
  })

  const silent: Server.Reply = { body: "", end: "silent" }

  const leaving = (
    face: Face,
    api: Api,
    reply: Server.Reply,
    leave: (controller: AbortController, fiber: Fiber.RuntimeFiber<unknown>) => Effect.Effect<unknown>
  ) =>
    Effect.gen(function* () {
      const server = yield* playing(reply)
      const controller = new AbortController()
      const isBegun = yield* Deferred.make<void>()
      const seen: Array<Chunk.Chunk> = []
      const onChunk = (chunk: Chunk.Chunk): void => {
        seen.push(chunk)
        if (chunk.type === "text-delta") Deferred.unsafeDone(isBegun, Effect.void)
      }
      const fiber = yield* Effect.fork(
        face(server.url, api.makeModel, { abortSignal: controller.signal, onChunk })
      )
      const asked = yield* server.firstRequest
      if (reply.end === "hang") yield* Deferred.await(isBegun)
      const elapsed = yield* untilDisconnected(asked, leave(controller, fiber))
      expect(elapsed).toBeLessThan(atMost)
      return { fiber, seen }
    })

  const abort = (controller: AbortController) => Effect.sync(() => controller.abort("Der Gast ging."))

  it.scopedLive.each(everywhere)("in the middle, by signal: %s", ([_, { api, face }]) =>
    Effect.gen(function* () {
      const { fiber } = yield* leaving(face, api, stuck(api), abort)
      const ran = yield* Fiber.join(fiber)
      expectGrammar(ran.chunks)
      expect(typesOf(ran.chunks).slice(-2)).toStrictEqual(["abort", "finish"])
      expect(ofType(ran.chunks, "abort")).toMatchObject([{ payload: { reason: "Der Gast ging." } }])
      const said = textOf(ran.chunks)
      expect(finishOf(ran.chunks)).toMatchObject({
        stepResult: { reason: "aborted" },
        output: { text: said }
      })
      if (ran.output === undefined) {
        expect(ran.failure).toBeUndefined()
      } else {
        expect(ran.failure).toBeInstanceOf(Errors.RunAborted)
        yield* expectSettled(ran.output, ran.failure, said)
      }
    })
  )

  it.scopedLive.each(everywhere)("before there is an answer, by signal: %s", ([_, { api, face }]) =>
    Effect.gen(function* () {
      const { fiber } = yield* leaving(face, api, silent, abort)
      const ran = yield* Fiber.join(fiber)
      expectGrammar(ran.chunks)
      expect(typesOf(ran.chunks)).toStrictEqual(["start", "step-start", "abort", "finish"])
      expect(finishOf(ran.chunks).stepResult.reason).toBe("aborted")
    })
  )

  it.scopedLive.each(named)("by interruption, in the middle: %s", ([_, api]) =>
    Effect.gen(function* () {
      const { seen } = yield* leaving(effectFace, api, stuck(api), (_, fiber) => Fiber.interrupt(fiber))
      expect(textOf(seen)).not.toBe("")
      expect(typesOf(seen)).not.toContain("finish")
    })
  )

  it.scopedLive.each(named)("by interruption, before there is an answer: %s", ([_, api]) =>
    Effect.gen(function* () {
      const { seen } = yield* leaving(effectFace, api, silent, (_, fiber) => Fiber.interrupt(fiber))
      expect(typesOf(seen)).not.toContain("finish")
    })
  )
})
