// EDDY_DIST points the bench at another build, to compare two of ours.
import { Effect, Stream } from "effect"
import { z } from "zod"
import { scripted } from "../kit/model.mjs"

export const dist = process.env.EDDY_DIST
  ? new URL(`${process.env.EDDY_DIST}/`, "file:///")
  : new URL("../../../dist/", import.meta.url)

const { Agent, createTool, Eddy, InMemoryStore } = await import(new URL("promise.js", dist).href)
const { Agent: EffectAgent, LanguageModel } = await import(new URL("index.js", dist).href)

const add = createTool({
  id: "add",
  description: "Add one",
  inputSchema: z.object({ n: z.number() }),
  execute: async ({ n }) => ({ sum: n + 1 })
})

export const eddy = {
  name: "eddy",
  textOf: chunk => chunk.payload.text,
  resultOf: chunk => chunk.payload.result,
  nestedIn: chunk => (chunk.type === "tool-output" ? chunk.payload.output : undefined),
  /** `adopt` may put the agent into a container. */
  open: (script, more, adopt) => {
    const model = scripted(script, "v3")
    const tools = script.steps ? { add } : undefined
    const agent = new Agent({ id: "bench", instructions: "Answer.", model, tools })
    adopt?.(agent)
    const options = { maxSteps: script.turns, ...more }
    return { model, stream: () => agent.stream("hi", options) }
  },
  /** Partial values of a schema. */
  openObjects: (script, schema) => {
    const agent = new Agent({ id: "bench", instructions: "Answer.", model: scripted(script, "v3") })
    const stream = () => agent.stream("hi", { structuredOutput: { schema } })
    return { stream, objectsOf: out => out.objectStream }
  },
  /** The scripts of an agent, of the one below it, and so on. */
  openNested: scripts => {
    const agent = scripts.reduceRight(
      (below, script, depth) =>
        new Agent({
          id: `bench-${depth}`,
          description: "Tells.",
          instructions: "Answer.",
          model: scripted(script, "v3"),
          ...(below && { agents: { below } })
        }),
      undefined
    )
    return { stream: () => agent.stream("hi") }
  }
}

/** The same with `replay: false`: what was read is not kept. */
export const eddyUnkept = {
  ...eddy,
  name: "eddy, replay: false",
  open: script => eddy.open(script, { replay: false })
}

const passing = id => ({ id, processOutputStream: chunk => chunk })

/** The same with processors of the stream that change nothing. */
export const eddyProcessed = {
  ...eddy,
  name: "eddy, three processors",
  open: script => eddy.open(script, { outputProcessors: ["a", "b", "c"].map(passing) })
}

/** Conversations in memory: a thread of so many messages, and the next turn of it. */
export const openThreads = script => {
  const agent = new Agent({ id: "bench", instructions: "Answer.", model: scripted(script, "v3") })
  const container = new Eddy({ agents: { agent }, storage: new InMemoryStore() })
  const memory = (thread, lastMessages) => ({ memory: { thread, resource: "bench", lastMessages } })
  return {
    fill: async (thread, messages) => (await agent.stream(messages, memory(thread, false))).consumeStream(),
    turn: (thread, lastMessages) => agent.stream("And then?", memory(thread, lastMessages)),
    count: async thread => (await container.threads.messages(thread)).length,
    forget: thread => container.threads.delete(thread)
  }
}

/** The Effect face: no output object, the run is the stream. */
export const streamEffect = script => {
  const model = LanguageModel.fromAiSdk(scripted(script, "v3"))
  const agent = EffectAgent.make({ id: "bench", instructions: "Answer.", model, tools: [] })
  return async () => {
    const seen = { deltas: 0, length: 0 }
    await Effect.runPromise(
      Stream.runForEach(EffectAgent.stream(agent, "hi"), chunk =>
        Effect.sync(() => {
          if (chunk.type !== "text-delta") return
          seen.deltas++
          seen.length += chunk.payload.text.length
        })
      )
    )
    return seen
  }
}
