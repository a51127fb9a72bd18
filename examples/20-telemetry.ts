/**
 * Traces: a container hands what its agents do to OpenTelemetry, here to an exporter in memory that is printed as a tree.
 *
 * Run it: npm run example -- telemetry
 *
 * It prints the answer, and every span below the one that it belongs to:
 *
 *     Sail at nine, on a beam reach.
 *     request
 *       invoke_agent skipper (121 + 26 tokens)
 *         chat skipper-1 (40 + 8 tokens)
 *         execute_tool agent-forecaster
 *           invoke_agent forecaster (27 + 9 tokens)
 *             chat forecaster-1 (10 + 4 tokens)
 *             execute_tool wind
 *               read the buoy
 *             chat forecaster-1 (17 + 5 tokens)
 *         chat skipper-1 (54 + 9 tokens)
 */
import * as NodeSdk from "@effect/opentelemetry/NodeSdk"
import { trace } from "@opentelemetry/api"
import { InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base"
import { NodeTracerProvider } from "@opentelemetry/sdk-trace-node"
import { Agent, createTool, Eddy } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { pickModel } from "./support/model.js"

const { finish, reply, toolCall } = ScriptedModel
const usage = (inputTokens: number, outputTokens: number) => ({ inputTokens, outputTokens })

// What an application has anyway: an exporter, and spans of its own.
const exporter = new InMemorySpanExporter()
const spanProcessor = new SimpleSpanProcessor(exporter)
new NodeTracerProvider({ spanProcessors: [spanProcessor] }).register()
const app = trace.getTracer("harbour")

const wind = createTool({
  id: "wind",
  execute: () =>
    // Inside of a tool its span is the active one.
    app.startActiveSpan("read the buoy", span => {
      span.end()
      return { knots: 11, from: "south" }
    })
})

const forecasts = ScriptedModel.make(
  [[toolCall("w1", "wind", {}), finish("tool-calls", usage(10, 4))], reply("11 knots, south.", usage(17, 5))],
  { modelId: "forecaster-1" }
)
const forecaster = new Agent({ id: "forecaster", model: await pickModel(forecasts), tools: { wind } })

const askForecaster = toolCall("f1", "agent-forecaster", { prompt: "How is the wind?" })
const orders = ScriptedModel.make(
  [
    [askForecaster, finish("tool-calls", usage(40, 8))],
    reply("Sail at nine, on a beam reach.", usage(54, 9))
  ],
  { modelId: "skipper-1" }
)
const skipper = new Agent({ id: "skipper", model: await pickModel(orders), agents: { forecaster } })

// With `captureContent: true` spans carry messages too, and arguments and results of tools.
const layer = NodeSdk.layer(() => ({ resource: { serviceName: "harbour" }, spanProcessor }))
await using eddy = new Eddy({ agents: { skipper }, telemetry: { layer } })

await app.startActiveSpan("request", async span => {
  console.log((await eddy.agents.skipper.generate("When do we sail?")).text)
  span.end()
})

const print = (parentId: string | undefined, indent: string): void => {
  for (const span of exporter.getFinishedSpans()) {
    if (span.parentSpanContext?.spanId !== parentId) continue
    const tokens = ["input", "output"].map(type => span.attributes[`gen_ai.usage.${type}_tokens`])
    console.log(`${indent}${span.name}${tokens[0] === undefined ? "" : ` (${tokens.join(" + ")} tokens)`}`)
    print(span.spanContext().spanId, `${indent}  `)
  }
}
print(undefined, "")
