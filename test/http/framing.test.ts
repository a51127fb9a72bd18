/** Frames, and keep-alives that lose nothing. */
import { it as effectIt } from "@effect/vitest"
import type { Chunk } from "eddy"
import { Duration, Effect, Fiber, Queue, Stream, TestClock } from "effect"
import { describe, expect, it } from "vitest"
import { mapped } from "../../src/http/dialect.js"
import { keepAlive } from "../../src/http/keepAlive.js"
import * as Sse from "../../src/http/sse.js"

const chunk: Chunk.Chunk = {
  type: "text-delta",
  runId: "r",
  from: "AGENT",
  payload: { id: "t", text: "word" }
}

describe("frames", () => {
  it("are of one form", () => {
    expect(Sse.data("{}")).toBe("data: {}\n\n")
    expect(Sse.dataWithId(3, "{}")).toBe("id: 3\ndata: {}\n\n")
    expect(Sse.comment("a\r\nb\n\nc")).toBe(": a b c\n\n")
  })

  it("of a mapping end once, with its failure or without", () => {
    const dialect = (isDoneTold: boolean) =>
      mapped<string>({
        isDoneTold,
        mapper: runId => ({
          push: ({ type }) => [type],
          end: failure => [failure instanceof Error ? `${runId}: ${failure.message}` : "end"]
        })
      })
    const good = dialect(true).framing("r")
    expect(good.frames({ chunk, json: "" }, 0) + good.end()).toBe(
      'data: "text-delta"\n\ndata: "end"\n\ndata: [DONE]\n\n'
    )
    const bad = dialect(false).framing("r")
    expect(bad.error("gone") + bad.end()).toBe('data: "r: gone"\n\n')
  })
})

describe("a stream that is kept alive", () => {
  effectIt.effect("beats when it is silent, and loses nothing that is pulled meanwhile", () =>
    Effect.gen(function* () {
      const queue = yield* Queue.unbounded<string>()
      const seen: Array<string> = []
      const fiber = yield* keepAlive(Stream.fromQueue(queue), Duration.seconds(10), "beat").pipe(
        Stream.runForEach(frame => Effect.sync(() => void seen.push(frame))),
        Effect.fork
      )
      yield* TestClock.adjust("25 seconds")
      expect(seen).toEqual(["beat", "beat"])
      yield* Queue.offer(queue, "one")
      yield* TestClock.adjust("9 seconds")
      yield* Queue.offer(queue, "two")
      yield* TestClock.adjust("9 seconds")
      expect(seen).toEqual(["beat", "beat", "one", "two"])
      yield* TestClock.adjust("1 second")
      expect(seen.at(-1)).toBe("beat")
      yield* Fiber.interrupt(fiber)
    })
  )
})
