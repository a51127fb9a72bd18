/** Traces and metrics of a container: the layer that is handed to it, and what is active where a run is started. */
import { context, trace } from "@opentelemetry/api"
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks"
import { BasicTracerProvider } from "@opentelemetry/sdk-trace-base"
import { Agent, createStep, createTool, createWorkflow, Eddy, InMemoryStore } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { z } from "zod"
import { endOf, OK, Traces } from "../agent/telemetryKit.js"
import { configurationError } from "../support/configurationError.js"
import { latch, refuseUnhandledRejections, until } from "../support/readers.js"

refuseUnhandledRejections()

const { finish, hang, reply, toolCall } = ScriptedModel

/** The manager that an application's own set-up registers. */
const contexts = new AsyncLocalStorageContextManager()
beforeAll(() => void context.setGlobalContextManager(contexts.enable()))
afterAll(() => {
  context.disable()
})

const tracer = new BasicTracerProvider().getTracer("app")

const calling = (tool: string) => [toolCall("c1", tool, {}), finish("tool-calls")]

/** An agent whose tool tells which span is active in it. */
const looker = (background = false, wait?: Promise<void>, id = "looker") => {
  const active: Array<string | undefined> = []
  const look = createTool({
    id: "look",
    background: { enabled: background },
    execute: async () => {
      await wait
      active.push(trace.getActiveSpan()?.spanContext().spanId)
      return "calm"
    }
  })
  const agent = new Agent({
    id,
    name: "looker",
    instructions: async () => "Be brief.",
    model: ScriptedModel.make([calling("look"), reply("Calm."), reply("Done.")], { modelId: "gpt-test" }),
    tools: { look }
  })
  return { agent, active }
}

const tree = ["invoke_agent looker", ["chat gpt-test"], ["execute_tool look"], ["chat gpt-test"]]

describe("a container with telemetry", () => {
  it("traces the runs of its workflows, below the span that is active where they are started", async () => {
    const traces = new Traces()
    const { agent } = looker()
    const workflow = createWorkflow({ id: "sail", inputSchema: z.object({ prompt: z.string() }) })
      .then(createStep(agent))
      .commit()
    await using eddy = new Eddy({
      agents: { agent },
      workflows: { workflow },
      storage: new InMemoryStore(),
      telemetry: { layer: traces.layer }
    })
    const outer = tracer.startSpan("request")
    const inputData = { prompt: "Look" }
    const [result] = await context.with(trace.setSpan(context.active(), outer), () =>
      Promise.all([eddy.getWorkflow("workflow").start({ inputData })])
    )
    expect(result.status).toBe("success")
    expect(traces.trees).toEqual([["invoke_workflow sail", tree]])
    expect(traces.unfinished).toEqual([])
    const { parentSpanContext } = traces.only("invoke_workflow sail")
    expect(parentSpanContext?.spanId).toBe(outer.spanContext().spanId)
  })

  it("traces the runs of its agents, and tells tools their span", async () => {
    const traces = new Traces()
    const { active, agent } = looker()
    await using eddy = new Eddy({ agents: { agent }, telemetry: { layer: traces.layer } })
    await (await eddy.agents.agent.stream("Look")).text
    expect(traces.trees).toEqual([tree])
    expect(traces.unfinished).toEqual([])
    expect(active).toEqual([traces.only("execute_tool look").spanContext().spanId])
    expect(JSON.stringify(traces.spans.map(({ attributes }) => attributes))).not.toContain("Calm.")
  })

  it("tells contents when it is asked to", async () => {
    const traces = new Traces()
    const { agent } = looker()
    await using eddy = new Eddy({
      agents: { agent },
      telemetry: { layer: traces.layer, captureContent: true }
    })
    await eddy.agents.agent.generate("Look")
    const said = traces.only("invoke_agent looker").attributes["gen_ai.output.messages"]
    expect(said).toBe(
      '[{"role":"assistant","parts":[{"type":"text","content":"Calm."}],"finish_reason":"stop"}]'
    )
  })

  it("puts runs below the spans that are active where they are started, many at once", async () => {
    const traces = new Traces()
    const agents = Object.fromEntries(
      Array.from({ length: 8 }, (_, at) => [`a${at}`, looker(false, undefined, `a${at}`).agent])
    )
    await using eddy = new Eddy({ agents, telemetry: { layer: traces.layer } })
    const requests = Object.values(eddy.agents).map(agent => {
      const span = tracer.startSpan("request")
      const { spanId } = span.spanContext()
      return context.with(trace.setSpan(context.active(), span), async () => {
        await Promise.resolve()
        await agent.generate("Look")
        return spanId
      })
    })
    const started = await Promise.all(requests)
    const runs = traces.named("invoke_agent looker")
    expect(runs.map(({ parentSpanContext }) => parentSpanContext?.spanId).sort()).toEqual(started.sort())
    expect(new Set(traces.spans.map(span => span.spanContext().traceId)).size).toBe(8)
  })

  it("traces tasks and the turns that answer them, below what was active at first", async () => {
    const traces = new Traces()
    const done = latch()
    const { active, agent } = looker(true, done.wait)
    await using eddy = new Eddy({
      agents: { agent },
      storage: new InMemoryStore(),
      backgroundTasks: { enabled: true },
      telemetry: { layer: traces.layer }
    })
    const span = tracer.startSpan("request")
    await context.with(trace.setSpan(context.active(), span), async () => {
      const memory = { thread: "t", resource: "u" }
      const output = await eddy.agents.agent.stream("Look", { memory, untilIdle: true })
      for await (const { type } of output.fullStream) if (type === "finish") done.open()
    })
    expect(traces.trees).toEqual([tree, ["invoke_agent looker", ["chat gpt-test"]]])
    const { spanId } = span.spanContext()
    expect(
      traces.named("invoke_agent looker").map(({ parentSpanContext }) => parentSpanContext?.spanId)
    ).toEqual([spanId, spanId])
    expect(active).toEqual([traces.only("execute_tool look").spanContext().spanId])
    expect(traces.unfinished).toEqual([])
  })

  it("ends the spans of what it aborts when it is shut down", async () => {
    const traces = new Traces()
    const agent = new Agent({ id: "looker", model: ScriptedModel.make([[hang]]) })
    const eddy = new Eddy({ agents: { agent }, telemetry: { layer: traces.layer } })
    const output = await agent.stream("Look")
    void output.consumeStream()
    await until(() => traces.spans.length === 2, "the model was asked")
    await eddy.shutdown()
    expect(traces.spans.map(endOf)).toEqual(Array(2).fill({ code: OK, isStopped: true }))
  })

  it("measures model calls by time and tokens", async () => {
    const traces = new Traces()
    const modelId = "measured-1"
    const agent = new Agent({
      id: "a",
      model: ScriptedModel.make([reply("Hi.", { inputTokens: 10, outputTokens: 3 })], { modelId })
    })
    await using eddy = new Eddy({ agents: { agent }, telemetry: { layer: traces.layer } })
    await eddy.agents.agent.generate("Hi")
    const base = {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "scripted",
      "gen_ai.request.model": modelId
    }
    for (const name of ["gen_ai.client.operation.duration", "gen_ai.client.operation.time_to_first_chunk"]) {
      const [point, ...others] = await traces.points(name, modelId)
      expect(others).toEqual([])
      expect(point).toMatchObject({ unit: "s", value: { count: 1 } })
      expect(point?.attributes).toEqual({ ...base, unit: "s" })
      expect(point?.value).toMatchObject({ buckets: { boundaries: expect.arrayContaining([0.01, 81.92]) } })
    }
    const tokens = await traces.points("gen_ai.client.token.usage", modelId)
    expect(tokens.map(({ attributes }) => attributes["gen_ai.token.type"]).sort()).toEqual([
      "input",
      "output"
    ])
    for (const { attributes, unit, value } of tokens) {
      expect(unit).toBe("{token}")
      expect(value).toMatchObject({ count: 1, sum: attributes["gen_ai.token.type"] === "input" ? 10 : 3 })
    }
  })

  it("measures calls that failed, by what they failed with", async () => {
    const traces = new Traces()
    const modelId = "measured-2"
    const agent = new Agent({ id: "a", model: ScriptedModel.make([], { modelId }) })
    await using eddy = new Eddy({ agents: { agent }, telemetry: { layer: traces.layer } })
    await expect(eddy.agents.agent.generate("Hi", { onError: () => undefined })).rejects.toThrow()
    const [point] = await traces.points("gen_ai.client.operation.duration", modelId)
    expect(point?.attributes["error.type"]).toBe("ModelError")
    expect(await traces.points("gen_ai.client.operation.time_to_first_chunk", modelId)).toEqual([])
  })

  it("rejects its runs with the error of a layer that cannot be built", async () => {
    const agent = new Agent({ id: "a", model: ScriptedModel.make([reply("Hi")]) })
    const layer = Layer.fail(new Error("No collector"))
    await using eddy = new Eddy({ agents: { agent }, telemetry: { layer } })
    await expect(eddy.agents.agent.generate("Hi")).rejects.toThrow("No collector")
  })

  it("refuses what cannot work", () => {
    const { layer } = new Traces()
    const refused = (telemetry: unknown) =>
      configurationError(() => new Eddy({ telemetry: telemetry as never }))
    expect(refused({}).field).toBe("telemetry.layer")
    expect(refused(null).field).toBe("telemetry")
    expect(refused({ layer, captureContents: true }).field).toBe("captureContents")
    expect(refused({ layer, captureContent: 1 }).field).toBe("telemetry.captureContent")
    expect(refused({ layer, contentLimit: 1.5 }).field).toBe("telemetry.contentLimit")
  })
})
