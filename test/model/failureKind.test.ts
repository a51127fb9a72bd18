/** Whether a model call that failed is made again: wherever the provider or the transport puts why. */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { Agent, type Chunk, LanguageModel } from "eddy"
import { Duration, Effect, Fiber, Stream, TestClock, TestContext } from "effect"
import { createOpenAICompatible as createV2 } from "openai-compatible-v2"
import { createOpenAICompatible as createV3 } from "openai-compatible-v3"
import { describe, expect, it } from "vitest"
import { kindOf } from "../../src/model/failureKind.js"
import { finishOf, turns } from "../agent/kit.js"
import { hostileValues } from "../support/hostileValues.js"

const coded = (code: string, message = "broken"): Error => Object.assign(new Error(message), { code })

/** The error, so many causes deep. */
const below = (depth: number, error: unknown): unknown =>
  depth === 0 ? error : new Error("outer", { cause: below(depth - 1, error) })

const transports = [
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ECONNREFUSED",
  "EAI_AGAIN",
  "UND_ERR_SOCKET",
  "UND_ERR_BODY_TIMEOUT"
]

const table: ReadonlyArray<readonly [name: string, failure: unknown, expected: ReturnType<typeof kindOf>]> = [
  ["statusCode", { statusCode: 503 }, { statusCode: 503 }],
  ["status", { status: 429 }, { statusCode: 429 }],
  ["code as a number", { message: "busy", code: 503 }, { statusCode: 503 }],
  ["code as a text", { message: "busy", code: "429" }, { statusCode: 429 }],
  ["error.code", { error: { code: 502, message: "busy" } }, { statusCode: 502 }],
  ["the type overloaded_error", { type: "overloaded_error" }, { isRetryable: true }],
  ["error.type", { type: "error", error: { type: "overloaded_error" } }, { isRetryable: true }],
  ["the code rate_limit_exceeded", { code: "rate_limit_exceeded" }, { isRetryable: true }],
  ["a type that lasts", { type: "invalid_request_error", code: null }, { isRetryable: false }],
  ["no quota left", { type: "insufficient_quota", code: 429 }, { statusCode: 429, isRetryable: false }],
  ["a status in a text", "503 Service Unavailable", { statusCode: 503 }],
  ["a status in a message", new Error("Request failed with status code 429"), { statusCode: 429 }],
  ["a number that is no status", new Error("It took 500 tokens."), {}],
  ["a status in a cause", below(2, { statusCode: 529 }), { statusCode: 529 }],
  [
    "the provider's own word",
    { isRetryable: false, statusCode: 503 },
    { statusCode: 503, isRetryable: false }
  ],
  ["fetch failed", new TypeError("fetch failed"), { isRetryable: true }],
  ["terminated", new TypeError("terminated"), { isRetryable: true }],
  ["nothing known", new Error("a bug"), {}],
  ...transports.flatMap(code =>
    [0, 1, 5].map(
      depth => [`${code}, ${depth} causes deep`, below(depth, coded(code)), { isRetryable: true }] as const
    )
  ),
  [
    "one of several errors",
    new AggregateError([new Error("a"), coded("ECONNREFUSED")]),
    { isRetryable: true }
  ],
  ["a status beside a broken connection", { statusCode: 400, cause: coded("EPIPE") }, { statusCode: 400 }]
]

describe("the kind of a failure", () => {
  it.each(table)("is found in %s", (_, failure, expected) => {
    expect(kindOf(failure)).toEqual(expected)
  })

  it.each(Object.entries(hostileValues))("is looked for in %s", (_, make) => {
    expect(() => kindOf(make())).not.toThrow()
  })
})

/** Runs an agent whose time passes as fast as it waits. */
const chunksOf = (model: LanguageModel.LanguageModel): Promise<ReadonlyArray<Chunk.Chunk>> => {
  const chunks: Array<Chunk.Chunk> = []
  const agent = Agent.make({ id: "a", model, maxRetries: 1 })
  return Effect.gen(function* () {
    const fiber = yield* Effect.fork(
      Effect.exit(
        Stream.runForEach(Agent.stream(agent, "go"), chunk => Effect.sync(() => chunks.push(chunk)))
      )
    )
    for (let round = 0; round < 400 && (yield* Fiber.poll(fiber))._tag === "None"; round++) {
      yield* turns(10)
      yield* TestClock.adjust(Duration.seconds(2))
    }
    yield* Fiber.interrupt(fiber)
    return chunks
  }).pipe(Effect.provide(TestContext.TestContext), Effect.runPromise)
}

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`

const bodyOf = (parts: ReadonlyArray<unknown>): Response =>
  new Response(`${parts.map(data).join("")}data: [DONE]\n\n`, {
    headers: { "content-type": "text/event-stream" }
  })

const answer = [
  {
    id: "1",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta: { role: "assistant", content: "hello" } }]
  },
  { id: "1", created: 1, model: "m", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }
]

const inBand: Readonly<Record<string, unknown>> = {
  "code 503": { error: { message: "Overloaded", code: 503 } },
  "code 429": { error: { message: "Slow down", code: 429 } },
  "code 502 of openrouter": { error: { message: "Provider returned error", code: 502, metadata: {} } },
  "type overloaded_error": { error: { message: "Overloaded", type: "overloaded_error" } }
}

const packages = { v2: createV2, v3: createV3, v4: createOpenAICompatible }

describe.each(Object.entries(packages))(
  "an overload in the body of a 200, read by the package %s",
  (_, create) => {
    it.each(Object.entries(inBand))("is tried again: %s", async (_, error) => {
      let calls = 0
      const fetch = async () => bodyOf(calls++ === 0 ? [error] : answer)
      const provider = create({ name: "p", baseURL: "http://127.0.0.1/v1", apiKey: "k", fetch })
      const chunks = await chunksOf(LanguageModel.fromAiSdk(provider("m")))
      expect(calls).toBe(2)
      expect(finishOf(chunks)).toMatchObject({ stepResult: { reason: "stop" }, output: { text: "hello" } })
    })
  }
)

describe("a custom model whose stream breaks before anything is shown", () => {
  const broken: ReadonlyArray<readonly [string, unknown]> = [
    ...transports.map(code => [code, new TypeError("fetch failed", { cause: coded(code) })] as const),
    ["terminated", new TypeError("terminated")]
  ]

  it.each(broken)("is tried again: %s", async (_, error) => {
    let calls = 0
    const model: LanguageModel.LanguageModel = {
      provider: "own",
      modelId: "m",
      answer: () => {
        calls++
        return Effect.succeed({
          source: (async function* () {
            if (calls === 1) throw await Promise.resolve(error)
            yield { type: "finish", reason: "stop", usage: {} } as const
          })(),
          normalize: (part: unknown) => part as never
        })
      }
    }
    const chunks = await chunksOf(model)
    expect(calls).toBe(2)
    expect(finishOf(chunks).stepResult.reason).toBe("stop")
  })
})
