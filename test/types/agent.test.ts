/** What the types of agents and tools promise: requirements, errors, arguments, and chunks by their type. */
import {
  Agent,
  type Chunk,
  type Errors,
  type FullOutput,
  type ModelOutput,
  Tool,
  type ToolContext
} from "eddy"
import * as Facade from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Context, Effect, Schema, type Scope, type Stream } from "effect"
import { describe, expectTypeOf, it } from "vitest"
import { z } from "zod"

class Search extends Context.Tag("Search")<Search, string>() {}
class Store extends Context.Tag("Store")<Store, string>() {}
class Clockwork extends Context.Tag("Clockwork")<Clockwork, string>() {}

const search = Tool.make("search", { execute: () => Search })
const store = Tool.make("store", { execute: () => Effect.zipRight(Store, Effect.fail("full")) })
const clockwork = Tool.make("clockwork", { execute: () => Clockwork })
const plain = Tool.make("plain", { execute: () => Effect.succeed(1) })
const client = Tool.make("client", {})
const model = ScriptedModel.make([])
const agent = Agent.make({ id: "a", model, tools: [search, store, plain, client] })
const alone = Agent.make({ id: "b", model })

type AgentError =
  | Errors.AgentDepthExceeded
  | Errors.InvalidConfiguration
  | Errors.InvalidMessage
  | Errors.ModelError
  | Errors.ProcessorFailed
  | Errors.RunAborted
  | Errors.RunTimedOut
  | Errors.StorageError
  | Errors.ThreadBusy
  | Errors.ThreadNotFound

describe("a tool", () => {
  it("needs no scope of its caller in the background", () => {
    const acquire = Effect.acquireRelease(Effect.succeed(1), () => Effect.void)
    const here = Tool.make("here", { execute: () => acquire })
    expectTypeOf(here).toEqualTypeOf<Tool.Tool<"here", Scope.Scope>>()
    // @ts-expect-error what it acquires would be released with the run, before the task is done
    Tool.make("late", { background: { enabled: true }, execute: () => acquire })
    const own = Tool.make("own", { background: { enabled: true }, execute: () => Effect.scoped(acquire) })
    expectTypeOf(own).toEqualTypeOf<Tool.Tool<"own">>()
    const needy = Tool.make("needy", { background: { enabled: true }, execute: () => Search })
    expectTypeOf(needy).toEqualTypeOf<Tool.Tool<"needy", Search>>()
  })

  it("knows its name and what it needs", () => {
    expectTypeOf(search).toEqualTypeOf<Tool.Tool<"search", Search>>()
    expectTypeOf(store).toEqualTypeOf<Tool.Tool<"store", Store>>()
    expectTypeOf(plain).toEqualTypeOf<Tool.Tool<"plain", never>>()
    expectTypeOf(client).toEqualTypeOf<Tool.Tool<"client", never>>()
    expectTypeOf<Tool.Requirements<typeof search | typeof store | typeof plain>>().toEqualTypeOf<
      Search | Store
    >()
  })

  it("gets arguments of the type that its schema gives", () => {
    Tool.make("t", {
      input: Schema.Struct({ at: Schema.Date, n: Schema.NumberFromString }),
      execute: (input, context) => {
        expectTypeOf(input).toEqualTypeOf<{ readonly at: Date; readonly n: number }>()
        expectTypeOf(context).toEqualTypeOf<ToolContext>()
        return Effect.void
      }
    })
    Tool.make("t", {
      input: z.object({ city: z.string(), unit: z.enum(["C", "F"]).default("C") }),
      execute: input => {
        expectTypeOf(input).toEqualTypeOf<{ city: string; unit: "C" | "F" }>()
        return Effect.void
      }
    })
    Tool.make("t", {
      input: { type: "object", properties: { city: { type: "string" } } },
      execute: input => {
        expectTypeOf(input).toEqualTypeOf<unknown>()
        return Effect.void
      }
    })
    Tool.make("t", {
      execute: input => {
        expectTypeOf(input).toEqualTypeOf<Record<string, never>>()
        return Effect.void
      }
    })
  })

  it("must return what its success schema takes", () => {
    Tool.make("t", {
      success: Schema.Struct({ at: Schema.Date }),
      execute: () => Effect.succeed({ at: new Date() })
    })
    Tool.make("t", {
      success: Schema.Struct({ at: Schema.Date }),
      // @ts-expect-error a string is no Date
      execute: () => Effect.succeed({ at: "today" })
    })
    Tool.make("t", {
      success: z.object({ n: z.number() }),
      // @ts-expect-error `n` is missing
      execute: () => Effect.succeed({})
    })
  })

  it("refuses schemas that need services", () => {
    const needy = Schema.transformOrFail(Schema.Struct({}), Schema.Struct({}), {
      decode: value => Effect.as(Search, value),
      encode: value => Effect.as(Search, value)
    })
    expectTypeOf<typeof needy>().not.toExtend<NonNullable<Parameters<typeof Tool.make>[1]["input"]>>()
  })
})

describe("an agent", () => {
  it("needs what its tools need", () => {
    expectTypeOf(agent).toEqualTypeOf<Agent.Agent<Search | Store>>()
    expectTypeOf(alone).toEqualTypeOf<Agent.Agent<never>>()
    expectTypeOf<Agent.Agent<Search>>().not.toExtend<Agent.Agent<Store>>()
    expectTypeOf<Agent.Agent<never>>().toExtend<Agent.Agent<Store>>()
  })

  it("streams chunks, fails with AgentError, and needs what all tools of the run need", () => {
    expectTypeOf(Agent.stream(agent, "go")).toEqualTypeOf<
      Stream.Stream<Chunk.Chunk, AgentError, Search | Store>
    >()
    expectTypeOf(Agent.stream(agent, "go", { tools: [clockwork, plain] })).toEqualTypeOf<
      Stream.Stream<Chunk.Chunk, AgentError, Search | Store | Clockwork>
    >()
    expectTypeOf(Agent.stream(alone, "go")).toEqualTypeOf<Stream.Stream<Chunk.Chunk, AgentError, never>>()
    expectTypeOf(Agent.stream(alone, "go", { maxSteps: 2 })).toEqualTypeOf<
      Stream.Stream<Chunk.Chunk, AgentError, never>
    >()
    expectTypeOf<AgentError>().toEqualTypeOf<Errors.AgentError>()
  })

  it("runs in a scope, and generates without one", () => {
    expectTypeOf(Agent.run(agent, "go")).toEqualTypeOf<
      Effect.Effect<ModelOutput.ModelOutput, AgentError, Search | Store | Scope.Scope>
    >()
    expectTypeOf(Agent.generate(agent, "go", { tools: [clockwork] })).toEqualTypeOf<
      Effect.Effect<FullOutput, AgentError | Errors.StructuredOutputError, Search | Store | Clockwork>
    >()
    expectTypeOf(Agent.generate(alone, "go")).toEqualTypeOf<
      Effect.Effect<FullOutput, AgentError | Errors.StructuredOutputError, never>
    >()
  })

  it("refuses options that nobody knows", () => {
    const options = { maxStep: 2 } as const
    expectTypeOf(options).not.toExtend<Parameters<typeof Agent.stream>[2]>()
    // @ts-expect-error a number is no message
    void (() => Agent.stream(alone, 1))
  })
})

describe("chunks", () => {
  it("are told apart by their type", () => {
    const look = (chunk: Facade.Chunk) => {
      if (chunk.type === "text-delta") expectTypeOf(chunk.payload.text).toEqualTypeOf<string>()
      if (chunk.type === "tool-call") {
        expectTypeOf(chunk).toEqualTypeOf<Facade.ChunkOf<"tool-call">>()
        expectTypeOf(chunk.payload.args).toEqualTypeOf<{ readonly [key: string]: unknown } | undefined>()
      }
      if (chunk.type === "tool-result") expectTypeOf(chunk.payload.result).toEqualTypeOf<unknown>()
      if (chunk.type === "object") expectTypeOf(chunk.object).toEqualTypeOf<unknown>()
      if (chunk.type === "finish") {
        expectTypeOf(chunk.payload.stepResult.reason).toEqualTypeOf<Facade.FinishReason>()
        expectTypeOf(chunk.payload.messages.all).toEqualTypeOf<ReadonlyArray<Facade.Message>>()
      }
      expectTypeOf(chunk.runId).toEqualTypeOf<string>()
    }
    expectTypeOf(look).parameter(0).toEqualTypeOf<Chunk.Chunk>()
  })

  it("of one type have names", () => {
    expectTypeOf<Chunk.Of<"error">["payload"]>().toEqualTypeOf<Chunk.PayloadOf<"error">>()
    expectTypeOf<Facade.ChunkOf<`data-${string}`>["data"]>().toEqualTypeOf<unknown>()
    expectTypeOf<"no-such-type">().not.toExtend<Facade.ChunkType>()
    expectTypeOf<"data-anything">().toExtend<Facade.ChunkType>()
  })
})

describe("the Promise face", () => {
  it("gives execute arguments of the type that the schema gives", () => {
    Facade.createTool({
      id: "t",
      inputSchema: z.object({ city: z.string() }),
      execute: async (input, context) => {
        expectTypeOf(input).toEqualTypeOf<{ city: string }>()
        expectTypeOf(context).toEqualTypeOf<Facade.ToolExecutionContext>()
        expectTypeOf(context.abortSignal).toEqualTypeOf<AbortSignal>()
      }
    })
    Facade.createTool({
      id: "t",
      inputSchema: Schema.Struct({ at: Schema.Date }),
      execute: ({ at }) => {
        expectTypeOf(at).toEqualTypeOf<Date>()
        return at.getTime()
      }
    })
    Facade.createTool({
      id: "t",
      inputSchema: { type: "object" },
      execute: input => {
        expectTypeOf(input).toEqualTypeOf<unknown>()
      }
    })
    Facade.createTool({
      id: "t",
      outputSchema: z.object({ n: z.number() }),
      // @ts-expect-error `n` is a number
      execute: async () => ({ n: "1" })
    })
  })

  it("streams chunks and text", () => {
    expectTypeOf<Facade.ModelOutput["fullStream"]>().toExtend<AsyncIterable<Facade.Chunk>>()
    expectTypeOf<Facade.ModelOutput["fullStream"]>().toExtend<ReadableStream<Facade.Chunk>>()
    expectTypeOf<Facade.ModelOutput["textStream"]>().toExtend<AsyncIterable<string>>()
    expectTypeOf<Facade.ModelOutput["text"]>().toEqualTypeOf<Promise<string>>()
    const streamed = (facade: Facade.Agent) => facade.stream("go")
    const generated = (facade: Facade.Agent) => facade.generate("go")
    expectTypeOf(streamed).returns.toEqualTypeOf<Promise<Facade.ModelOutput>>()
    expectTypeOf(generated).returns.toEqualTypeOf<Promise<Facade.FullOutput>>()
  })
})
