/** Answers over HTTP whose stream breaks: the call fails at once, or the stream is resumed, where the server can do that. */
import { describe, expect, it } from "@effect/vitest"
import { Agent } from "eddy"
import { McpTools } from "eddy/mcp"
import { Effect } from "effect"
import { endingWith } from "../../src/mcp/answerStream.js"
import { chunksOf, only } from "../agent/kit.js"
import { type Asked, event, eventStream, result, serve } from "../support/mcpHttpServer.js"
import { agentOf, logLines } from "../support/mcpKit.js"

const called = (url: string) =>
  Effect.gen(function* () {
    const { tools } = yield* McpTools.connect({ url })
    const { agent } = agentOf(tools, ["a"])
    const chunks = yield* chunksOf(Agent.stream(agent, "go"))
    return {
      results: only(chunks, "tool-result").map(({ payload }) => payload.result),
      errors: only(chunks, "tool-error").map(({ payload }) => payload.error)
    }
  })

const breaks: ReadonlyArray<readonly [how: string, call: (asked: Asked) => void]> = [
  ["ends before it", ({ response }) => response.end()],
  ["breaks before it", ({ response }) => response.write(": soon\n\n", () => response.destroy())],
  [
    "breaks in the middle of it",
    ({ id, response }) => response.write(event({ id, result }).slice(0, -20), () => response.destroy())
  ]
]

/** A stream of these pieces, then its end or a failure. */
const streamOf = (pieces: ReadonlyArray<string>, failure?: Error) => {
  const rest = pieces.values()
  return new ReadableStream<Uint8Array>({
    pull: controller => {
      const { done, value } = rest.next()
      if (!done) controller.enqueue(new TextEncoder().encode(value))
      else if (failure === undefined) controller.close()
      else controller.error(failure)
    }
  })
}

const ending = (pieces: ReadonlyArray<string>, failure?: Error) =>
  new Response(endingWith(streamOf(pieces, failure), new TextEncoder().encode("LAST"))).text()

describe("a stream that is told to the end", () => {
  const plain = 'event: message\ndata: {"id: 1":"\\nid: 2"}\n\n'
  const marked = `event: message\nid: 7\ndata: {}\n\n`
  const broken = new Error("broken")

  it.live("has the last bytes, wherever it is cut, unless an event has an id", () =>
    Effect.promise(async () => {
      for (let at = 0; at <= plain.length; at++) {
        const pieces = [plain.slice(0, at), plain.slice(at)]
        expect(await ending(pieces)).toBe(`${plain}LAST`)
        expect(await ending(pieces, broken)).toBe(`${plain}LAST`)
      }
      for (let at = 0; at <= marked.length; at++) {
        const pieces = [marked.slice(0, at), marked.slice(at)]
        expect(await ending(pieces)).toBe(marked)
        await expect(ending(pieces, broken)).rejects.toThrow("broken")
      }
      expect(await ending(["id: 1\ndata: {}\n\n"])).not.toContain("LAST")
      // The SDK resumes from an event that is complete and has data.
      expect(await ending(["id: 1\ndata: {}\n"])).toContain("LAST")
      expect(await ending(["id: 1\n\n"])).toContain("LAST")
      expect(await ending(["id: 1\r", "\ndata: {}\r", "\n\r", "\n"])).not.toContain("LAST")
      expect(await ending([])).toBe("LAST")
    })
  )
})

describe("an answer whose stream", () => {
  it.scopedLive.each(breaks)("%s fails the call at once", ([, call]) =>
    Effect.gen(function* () {
      const { calls, url } = yield* serve({ call })
      const { errors, results } = yield* called(url)
      expect(results).toStrictEqual([])
      expect(errors).toMatchObject([
        { _tag: "ToolFailed", message: `The MCP server at ${new URL(url).origin} broke off its answer.` }
      ])
      expect(calls()).toBe(1)
    })
  )

  it.scopedLive("ends after it is complete, whatever ends it", () =>
    Effect.gen(function* () {
      const ended = yield* serve({ call: ({ id, response }) => response.end(event({ id, result })) })
      const lines: Array<string> = []
      expect(yield* called(ended.url).pipe(logLines(line => lines.push(line)))).toStrictEqual({
        results: [result],
        errors: []
      })
      const broken = yield* serve({
        call: ({ id, response }) => response.write(event({ id, result }), () => response.destroy())
      })
      expect(yield* called(broken.url)).toStrictEqual({ results: [result], errors: [] })
      // Its last empty line is missing, but nothing else.
      const cut = yield* serve({ call: ({ id, response }) => response.end(event({ id, result }).trimEnd()) })
      expect(yield* called(cut.url)).toStrictEqual({ results: [result], errors: [] })
      // The SDK would complain of a second answer to the first call.
      expect(lines).toStrictEqual([])
    })
  )

  it.scopedLive.each(["ends", "breaks"])("%s but can be resumed is resumed", how =>
    Effect.gen(function* () {
      let id = 0
      const from: Array<string> = []
      const { calls, url } = yield* serve({
        call: asked => {
          id = asked.id
          const first = event({ method: "notifications/message", params: { level: "info", data: "x" } }, "7")
          asked.response.write(first.slice(0, 2), () =>
            asked.response.write(first.slice(2), () =>
              how === "ends" ? asked.response.end() : asked.response.destroy()
            )
          )
        },
        resume: (response, last) => {
          from.push(last)
          response.writeHead(200, eventStream).end(event({ id, result }, "8"))
        }
      })
      expect(yield* called(url)).toStrictEqual({ results: [result], errors: [] })
      expect(from).toStrictEqual(["7"])
      expect(calls()).toBe(1)
    })
  )

  it.scopedLive("cannot be resumed although it has ids fails the call at once", () =>
    Effect.gen(function* () {
      const { calls, url } = yield* serve({
        call: ({ response }) =>
          response.write(
            event({ method: "notifications/message", params: { level: "info", data: "x" } }, "7"),
            () => response.destroy()
          ),
        resume: response => response.writeHead(404).end()
      })
      const { errors } = yield* called(url)
      expect(errors).toMatchObject([
        { _tag: "ToolFailed", message: `The MCP server at ${new URL(url).origin} broke off its answer.` }
      ])
      expect(calls()).toBe(1)
    })
  )
})
