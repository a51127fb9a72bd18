/** Answers that a processor has changed, in the next request: a body that the provider takes, through the real packages. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, LanguageModel, Processor, Tool } from "eddy"
import { createTool, Eddy, InMemoryStore, Agent as PromiseAgent } from "eddy/promise"
import { Effect, Schema, Stream } from "effect"
import { z } from "zod"
import { type MakeSdkModel, sdk } from "../support/aiSdkModels.js"
import * as Server from "../support/transcriptServer.js"
import { anthropic, responses, signatures } from "../support/transcripts.js"

type Options = NonNullable<LanguageModel.ModelRequest["providerOptions"]>

interface Provider {
  readonly makeModel: MakeSdkModel
  readonly providerOptions: Options
  readonly body: string
  readonly final: string
}

const thinking: Options = { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } }

const claude: Provider = {
  makeModel: sdk.anthropic,
  providerOptions: thinking,
  body: anthropic.thinkingThenCalls,
  final: anthropic.text
}

const stored: Provider = {
  makeModel: sdk.openaiResponses,
  providerOptions: {},
  body: responses.reasoningTextThenCalls,
  final: responses.text
}

const unstored: Provider = {
  ...stored,
  providerOptions: { openai: { store: false, include: ["reasoning.encrypted_content"] } }
}

const redacting = (word: RegExp) => Processor.redact({ data: [], patterns: { word }, replacement: "[word]" })

type Play = (url: string, provider: Provider, word: RegExp) => Promise<void>

const effectFace: Play = async (url, { makeModel, providerOptions }, word) => {
  const agent = Agent.make({
    id: "boatman",
    model: LanguageModel.fromAiSdk(makeModel(url)),
    tools: [
      Tool.make("weather", {
        input: Schema.Struct({ city: Schema.String }),
        execute: () => Effect.succeed({ sky: "☁️" })
      })
    ],
    outputProcessors: [redacting(word)]
  })
  await Effect.runPromise(Stream.runDrain(Agent.stream(agent, "go", { providerOptions, maxRetries: 0 })))
}

const weather = (requireApproval: boolean) =>
  createTool({
    id: "weather",
    description: "",
    inputSchema: z.object({ city: z.string() }),
    requireApproval,
    execute: async () => ({ sky: "☁️" })
  })

const promiseAgent = (url: string, { makeModel, providerOptions }: Provider, word: RegExp, waits = false) => {
  const boatman = new PromiseAgent({
    id: "boatman",
    model: makeModel(url),
    tools: { weather: weather(waits) },
    outputProcessors: [redacting(word)],
    defaultOptions: { providerOptions, maxRetries: 0 }
  })
  new Eddy({ agents: { boatman }, storage: new InMemoryStore() })
  return boatman
}

const promiseFace: Play = async (url, provider, word) => {
  const output = await promiseAgent(url, provider, word).stream("go")
  expect((await output.getFullOutput()).error).toBeUndefined()
}

/** The call waits for approval, and the run is resumed from what was stored. */
const resumed: Play = async (url, provider, word) => {
  const agent = promiseAgent(url, provider, word, true)
  const output = await agent.stream("go")
  await output.getFullOutput()
  const [run] = await agent.listSuspendedRuns()
  const [call] = run?.calls ?? []
  if (run === undefined || call === undefined) throw new Error("No call waits.")
  const next = await agent.approveToolCall({ runId: run.runId, toolCallId: call.toolCallId })
  expect((await next.getFullOutput()).error).toBeUndefined()
}

const plays: ReadonlyArray<readonly [string, Play]> = [
  ["eddy", effectFace],
  ["eddy/promise", promiseFace],
  ["a run that was suspended", resumed]
]

const over = async (replies: ReadonlyArray<string>, play: (url: string) => Promise<void>) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* Server.make
        server.play(...replies.map(body => ({ body })))
        yield* Effect.promise(() => play(server.url))
        return server.requests.map(({ body }) => body)
      })
    )
  )

const noIds = /item_reference|rs_river|msg_river|"reasoning"|encrypted_content"\s*:/

describe.each(plays)("the next request of %s", (_, play) => {
  it("of Anthropic with thinking on has the turn as text when its signed thinking has changed", async () => {
    const [, second] = await over([claude.body, claude.final], url => play(url, claude, /Gezeiten/))
    expect(second).toMatchObject({
      thinking: { type: "enabled" },
      messages: [
        { role: "user", content: [{ type: "text", text: "go" }] },
        {
          role: "assistant",
          content: [{ type: "text", text: 'I called the tool "weather" with {"city":"Zürich 🏔️"}.' }]
        },
        { role: "user", content: [{ type: "text", text: 'Result of the tool "weather": {"sky":"☁️"}' }] }
      ]
    })
    expect(JSON.stringify(second)).not.toMatch(/tool_use|tool_result|Gezeiten/)
    expect(JSON.stringify(second)).not.toContain(signatures.redacted)
  })

  it("of Anthropic is as ever when nothing has changed", async () => {
    const [, second] = await over([claude.body, claude.final], url => play(url, claude, /nowhere/))
    expect(second).toMatchObject({
      messages: [
        {},
        {
          content: [
            { type: "thinking", signature: signatures.anthropic },
            { type: "redacted_thinking" },
            { type: "tool_use" }
          ]
        },
        { content: [{ type: "tool_result" }] }
      ]
    })
  })

  const changes: ReadonlyArray<readonly [string, RegExp, Provider]> = [
    ["reasoning, which OpenAI stores", /Abwägen/, stored],
    ["text, which OpenAI stores", /frage/, stored],
    ["reasoning, which OpenAI does not store", /Abwägen/, unstored],
    ["text, which OpenAI does not store", /frage/, unstored]
  ]

  it.each(changes)("has no id of the answer when its %s, has changed", async (_, word, provider) => {
    const [, second] = await over([provider.body, provider.final], url => play(url, provider, word))
    expect(second).toMatchObject({
      input: [
        { role: "user" },
        { role: "assistant", content: word.test("frage") ? "Ich [word] nach." : "Ich frage nach." },
        { type: "function_call", call_id: "call_eins", name: "weather" },
        { type: "function_call_output", call_id: "call_eins" }
      ]
    })
    const { input } = Object(second)
    expect(input).toHaveLength(4)
    expect(JSON.stringify(input)).not.toMatch(noIds)
  })
})

describe("a thread that holds a changed answer", () => {
  it.each([
    ["Anthropic", claude, /Gezeiten/],
    ["OpenAI", stored, /Abwägen/]
  ] as const)("begins a request that %s takes", async (_, provider, word) => {
    const bodies = await over([provider.body, provider.final, provider.final], async url => {
      const agent = promiseAgent(url, provider, word)
      const memory = { thread: "t", resource: "r" }
      for (const text of ["go", "more"]) {
        const output = await agent.stream(text, { memory })
        expect((await output.getFullOutput()).error).toBeUndefined()
      }
    })
    expect(bodies).toHaveLength(3)
    const { input, messages } = Object(bodies[2])
    // What the last answer said has not changed, and keeps its id.
    const told = JSON.stringify((input ?? messages).slice(0, 4))
    expect(told).toContain("go")
    expect(told).not.toMatch(noIds)
    expect(told).not.toMatch(/"type":"(redacted_)?thinking"|Gezeiten/)
  })
})
