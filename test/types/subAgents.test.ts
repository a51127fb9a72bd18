/** What the types of agents of agents promise, and of runs with a thread: requirements add up, and what has no sense is refused. */
import { Agent, type Chunk, type Errors, type FullOutput, type Nesting, ThreadStore, Tool } from "eddy"
import * as Facade from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Context, Effect, type Stream } from "effect"
import { describe, expectTypeOf, it } from "vitest"

class Search extends Context.Tag("Search")<Search, string>() {}
class Shop extends Context.Tag("Shop")<Shop, string>() {}

const model = ScriptedModel.make([])
const search = Tool.make("search", { execute: () => Search })
const shop = Tool.make("shop", { execute: () => Shop })
const searcher = Agent.make({ id: "searcher", model, tools: [search] })
const free = Agent.make({ id: "free", model })

type AgentError = Effect.Effect.Error<ReturnType<typeof plain>>
const plain = () => Agent.generate(free, "go")

describe("an agent as a tool", () => {
  it("needs what the agent needs", () => {
    expectTypeOf(Agent.asTool(searcher)).toEqualTypeOf<Tool.Tool<string, Search>>()
    expectTypeOf(Agent.asTool(free)).toEqualTypeOf<Tool.Tool<string, never>>()
  })

  it("hands its needs on to whoever has it as a tool, at every depth", () => {
    const mid = Agent.make({ id: "mid", model, tools: [Agent.asTool(searcher), shop] })
    expectTypeOf(mid).toEqualTypeOf<Agent.Agent<Search | Shop>>()
    const top = Agent.make({ id: "top", model, tools: [Agent.asTool(mid)] })
    expectTypeOf(top).toEqualTypeOf<Agent.Agent<Search | Shop>>()
    expectTypeOf(Agent.stream(top, "go")).toEqualTypeOf<
      Stream.Stream<Chunk.Chunk, Errors.AgentError, Search | Shop>
    >()
    expectTypeOf(Agent.make({ id: "calm", model, tools: [Agent.asTool(free)] })).toEqualTypeOf<
      Agent.Agent<never>
    >()
  })

  it("hands them on when the agent is a tool of one run", () => {
    expectTypeOf(Agent.generate(free, "go", { tools: [Agent.asTool(searcher)] })).toEqualTypeOf<
      Effect.Effect<FullOutput, AgentError, Search>
    >()
  })

  it("and when a tool runs the agent by itself", () => {
    const byHand = Tool.make("by-hand", { execute: () => Agent.generate(searcher, "go") })
    expectTypeOf(Agent.make({ id: "top", model, tools: [byHand] })).toEqualTypeOf<Agent.Agent<Search>>()
  })

  it("has no thread, signal or tools of its own", () => {
    Agent.asTool(free, { options: { maxSteps: 2, instructions: "x", timeouts: { run: 1 } } })
    // @ts-expect-error the thread is the caller's affair
    Agent.asTool(free, { options: { memory: { thread: "t", resource: "r" } } })
    // @ts-expect-error the caller stops it
    Agent.asTool(free, { options: { abortSignal: new AbortController().signal } })
    // @ts-expect-error what they need would be lost
    Agent.asTool(free, { options: { tools: [search] } })
    // @ts-expect-error the caller's context is its own
    Agent.asTool(free, { options: { requestContext: {} } })
  })

  it("nested chunks are chunks", () => {
    expectTypeOf<Nesting.Nested["chunk"]>().toEqualTypeOf<Chunk.Chunk>()
  })
})

describe("a run with a thread", () => {
  const memory = { thread: "t", resource: "r" } as const

  it("needs a store, and one without needs none", () => {
    expectTypeOf(Agent.generate(free, "go", { memory })).toEqualTypeOf<
      Effect.Effect<FullOutput, AgentError, ThreadStore.ThreadStore>
    >()
    expectTypeOf(Agent.stream(searcher, "go", { memory })).toEqualTypeOf<
      Stream.Stream<Chunk.Chunk, Errors.AgentError, Search | ThreadStore.ThreadStore>
    >()
    expectTypeOf(Agent.generate(free, "go", { memory: undefined })).toEqualTypeOf<
      Effect.Effect<FullOutput, AgentError>
    >()
    expectTypeOf(
      Effect.provide(Agent.generate(free, "go", { memory }), ThreadStore.layerMemory)
    ).toEqualTypeOf<Effect.Effect<FullOutput, AgentError>>()
  })

  it("fails with what a store fails with", () => {
    expectTypeOf<Errors.StorageError | Errors.ThreadNotFound>().toExtend<AgentError>()
  })

  it("names thread and resource", () => {
    // @ts-expect-error whose thread it is must be said
    const nobodys = () => Agent.stream(free, "go", { memory: { thread: "t" } })
    // @ts-expect-error the id of the thread must be said
    const nameless = () => Agent.stream(free, "go", { memory: { resource: "r" } })
    // @ts-expect-error an agent remembers in some way; which thread it is the run says
    const wrong = () => Agent.make({ id: "a", model, memory: { thread: "t", resource: "r" } })
    for (const made of [nobodys, nameless, wrong]) expectTypeOf(made).toBeFunction()
    Agent.make({ id: "a", model, memory: { lastMessages: false } })
  })
})

describe("the promise face", () => {
  it("takes agents by name, and a store", () => {
    const helper = new Facade.Agent({ id: "helper", model })
    const boss = new Facade.Agent({ id: "boss", model, agents: { helper }, memory: { lastMessages: 4 } })
    const eddy = new Facade.Eddy({ agents: { boss }, storage: new Facade.InMemoryStore() })
    expectTypeOf(eddy.getAgent("boss")).toEqualTypeOf<Facade.Agent>()
    expectTypeOf(eddy.threads.list).returns.resolves.toEqualTypeOf<Facade.ThreadPage>()
    expectTypeOf(eddy.threads.get).returns.resolves.toEqualTypeOf<Facade.Thread | undefined>()
    expectTypeOf(eddy.threads.messages).returns.resolves.toEqualTypeOf<ReadonlyArray<Facade.ThreadMessage>>()
    expectTypeOf(eddy.threads.delete).returns.resolves.toEqualTypeOf<boolean>()
    // @ts-expect-error what is no agent cannot be called
    const wrong = () => new Facade.Agent({ id: "boss", model, agents: { helper: { id: "x" } } })
    expectTypeOf(wrong).toBeFunction()
  })
})
