/** What traces cost, in counts that no machine's load can change: nothing where nobody listens, and never anything per chunk. */
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base"
import { Agent, type Chunk, Tool } from "eddy"
import { createTool, Agent as PromiseAgent } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Context, DefaultServices, Effect, Stream, Tracer } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"
import { Traces } from "../agent/telemetryKit.js"

const { finish, text, toolCall } = ScriptedModel

const look = Tool.make("look", { execute: () => Effect.succeed("calm") })

const script = (deltas: number) =>
  ScriptedModel.make([
    [toolCall("c1", "look", {}), finish("tool-calls")],
    [...text("word ".repeat(deltas)), finish("stop")]
  ])

const reading = (deltas: number) => {
  const agent = Agent.make({ id: "a", model: script(deltas), tools: [look] })
  return Stream.runFold(Agent.stream(agent, "Hi"), 0, (count, { type }: Chunk.Chunk) =>
    type === "text-delta" ? count + 1 : count
  )
}

/** Effect's own tracer: whatever makes a span where nobody listens asks it. */
const silent = Context.get(DefaultServices.liveServices, Tracer.Tracer)

afterEach(() => {
  vi.restoreAllMocks()
})

describe("without a listener", () => {
  it("no span is made by a run of the Effect face", async () => {
    const made = vi.spyOn(silent, "span")
    expect(await Effect.runPromise(reading(100))).toBeGreaterThanOrEqual(100)
    expect(made).not.toHaveBeenCalled()
    await Effect.runPromise(Effect.withSpan(Effect.void, "is counted"))
    expect(made).toHaveBeenCalledTimes(1)
  })

  it("no span is made by a run of the Promise face", async () => {
    const made = vi.spyOn(silent, "span")
    const tool = createTool({ id: "look", execute: () => "calm" })
    const agent = new PromiseAgent({ id: "a", model: script(100), tools: { look: tool } })
    expect((await (await agent.stream("Hi")).text).length).toBeGreaterThan(400)
    expect(made).not.toHaveBeenCalled()
  })
})

describe("with a listener", () => {
  it("a run has as many spans, events and attributes whatever it says", async () => {
    const sizes = []
    for (const deltas of [1, 10, 1000]) {
      const traces = new Traces()
      await Effect.runPromise(Effect.provide(reading(deltas), traces.layer))
      const sum = (count: (span: ReadableSpan) => number) =>
        traces.spans.reduce((all, span) => all + count(span), 0)
      sizes.push({
        spans: traces.spans.length,
        events: sum(({ events }) => events.length),
        attributes: sum(({ attributes }) => Object.keys(attributes).length)
      })
    }
    expect(sizes[0]).toMatchObject({ spans: 4, events: 0 })
    expect(sizes).toEqual(Array(3).fill(sizes[0]))
  })
})
