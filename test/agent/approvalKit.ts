/** What the tests of suspended runs share: tools that wait, legs, and what they come to. */
import { Agent, type Chunk, type Conversation, RunStore, ThreadStore, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Layer, Schema, type Stream } from "effect"
import { expect } from "vitest"
import { conversationFaults } from "../support/conversationFaults.js"
import { expectGrammar } from "../support/grammar.js"
import { chunksOf, finishOf, only } from "./kit.js"

export const { finish, reply, toolCall } = ScriptedModel

export const figures = { inputTokens: 10, outputTokens: 1 }

/** Calls of one answer. */
export const calling = (...calls: ReadonlyArray<ReturnType<typeof toolCall>>): ScriptedModel.Turn => [
  ...calls,
  finish("tool-calls", figures)
]

/** Where runs and threads are kept. */
export const stores = Layer.merge(RunStore.layerMemory, ThreadStore.layerMemory)

/** A tool that has to be approved; what it was executed with. */
export const guarded = (name = "remove", options: { readonly fails?: boolean } = {}) => {
  const executed: Array<unknown> = []
  const tool = Tool.make(name, {
    input: Schema.Struct({ n: Schema.Number }),
    requireApproval: true,
    execute: ({ n }) =>
      Effect.suspend(() => {
        executed.push(n)
        return options.fails === true ? Effect.fail("no such file") : Effect.succeed({ removed: n })
      })
  })
  return { tool, executed }
}

/** A tool that asks, and gives what it was answered. */
export const asking = (name = "ask") => {
  const executed: Array<{ readonly resumeData: unknown; readonly suspendData: unknown }> = []
  const tool = Tool.make(name, {
    input: Schema.Struct({ n: Schema.Number }),
    resume: Schema.Struct({ answer: Schema.String }),
    execute: ({ n }, { resumeData, suspend, suspendData }) => {
      executed.push({ resumeData, suspendData })
      if (resumeData === undefined) return suspend({ question: n })
      const { answer } = resumeData as { readonly answer: string }
      return answer === "again" ? suspend({ again: n }) : Effect.succeed({ n, answer })
    }
  })
  return { tool, executed }
}

/** The chunks of a run, in order. */
export const told = <E, R>(stream: Stream.Stream<Chunk.Chunk, E, R>, waiting: Iterable<string> = []) =>
  Effect.map(chunksOf(stream), chunks => {
    expectGrammar(chunks, waiting)
    expect(conversationFaults(finishOf(chunks).messages.all, () => false)).toEqual([])
    return chunks
  })

/** The calls that a run says wait. */
export const waitingIn = (chunks: ReadonlyArray<Chunk.Chunk>): ReadonlyArray<string> =>
  chunks.flatMap(chunk =>
    chunk.type === "tool-call-approval" || chunk.type === "tool-call-suspended"
      ? [chunk.payload.toolCallId]
      : []
  )

export const reasonOf = (chunks: ReadonlyArray<Chunk.Chunk>) => finishOf(chunks).stepResult.reason

export const textIn = (chunks: ReadonlyArray<Chunk.Chunk>): string =>
  only(chunks, "text-delta")
    .map(({ payload }) => payload.text)
    .join("")

/** Starts a run that is suspended. */
export const suspended = <R>(
  agent: Agent.Agent<R>,
  options: { readonly runId?: string; readonly memory?: { thread: string; resource: string } } = {},
  input: Conversation.Input = "go"
) =>
  Effect.map(told(Agent.stream(agent, input, { runId: "r1", ...options })), chunks => {
    expect(reasonOf(chunks)).toBe("suspended")
    return chunks
  })

/** The run of an agent as a process leaves it that has died while it carried out a decision about a call. */
export const claimed = (agentId: string, toolCallId: string, milliseconds: number) =>
  Effect.gen(function* () {
    const store = yield* RunStore.RunStore
    const [run] = (yield* store.list({ agentId })).runs
    if (run === undefined) throw new Error(`No run of ${agentId} waits.`)
    const snapshot = run.snapshot as { readonly calls: ReadonlyArray<{ readonly toolCallId: string }> }
    const calls = snapshot.calls.map(call =>
      call.toolCallId === toolCallId ? { ...call, claim: { owner: "dead" } } : call
    )
    const { createdAt: _, revision, updatedAt: __, holders: ___, ...stored } = run
    const lease = { owner: "dead", duration: milliseconds }
    yield* store.save({ ...stored, snapshot: { ...snapshot, calls } }, revision, lease)
  })
