/** What the tests of goals share: threads with an objective, models that judge, and what is told of it. */
import { Agent, type Chunk, type LanguageModel, type Message, type RunOptions } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Option } from "effect"
import { expectGrammar } from "../support/grammar.js"
import { only, read } from "./kit.js"
import { memory, textIn } from "./memoryKit.js"

/** What the first judgement of all would load while time is looked at. */
export const loadGoals = (): Promise<unknown> =>
  Promise.all([
    import("../../src/agent/goals/judging.js"),
    import("../../src/storage/storedRows.js"),
    import("../../src/storage/storedObjectives.js")
  ])

export const thread = { threadId: memory.thread, resourceId: memory.resource } as const

/** A turn of a judge. */
export const verdict = (passed: boolean, reason?: string, more: object = {}): ScriptedModel.Turn =>
  ScriptedModel.reply(JSON.stringify({ passed, ...(reason === undefined ? {} : { reason }), ...more }))

/** An agent that says this, and whoever judges it. */
export const judgedBy = (
  turns: ReadonlyArray<ScriptedModel.Turn>,
  verdicts: ReadonlyArray<ScriptedModel.Turn>,
  goal: Omit<Agent.GoalOptions, "judge"> = {}
) => {
  const model = ScriptedModel.make(turns)
  const judge = ScriptedModel.make(verdicts, { provider: "court", modelId: "judge" })
  const agent = Agent.make({ id: "worker", model, goal: { judge, ...goal } })
  return { agent, judge, model }
}

/** Sets an objective of the thread, whose is told. */
export const setObjective = <R>(agent: Agent.Agent<R>, maxRuns?: number, objective = "Count to three.") =>
  Agent.setObjective(agent, objective, { ...thread, ...(maxRuns === undefined ? {} : { maxRuns }) })

/** The objective of the thread as it stands there. */
export const objectiveOf = <R>(agent: Agent.Agent<R>) =>
  Effect.map(Agent.getObjective(agent, thread), Option.getOrUndefined)

/** Runs in the thread, in order. */
export const runIn = <R>(agent: Agent.Agent<R>, options: Omit<RunOptions<[]>, "memory"> = {}) =>
  Effect.tap(read(Agent.stream(agent, "Begin.", { ...options, memory })), ({ chunks }) =>
    Effect.sync(() => expectGrammar(chunks))
  )

export const goalsOf = (chunks: ReadonlyArray<Chunk.Chunk>) =>
  only(chunks, "goal").map(({ payload }) => payload)

/** Each judgement in short. */
export const told = (chunks: ReadonlyArray<Chunk.Chunk>): ReadonlyArray<string> =>
  goalsOf(chunks).map(({ iteration, maxRuns, passed, status }) => {
    const word = passed ? "passed" : "rejected"
    return `${iteration}/${maxRuns} ${word}, ${status}`
  })

/** The system messages behind the first word of the conversation: what the run itself tells its model. */
export const notesIn = (request: LanguageModel.ModelRequest | undefined): ReadonlyArray<string> => {
  const messages = request?.messages ?? []
  const first = messages.findIndex(({ role }) => role !== "system")
  return messages.slice(first).flatMap(({ content, role }) => (role === "system" ? [String(content)] : []))
}

/** What a judge was given. */
export const caseOf = (request: LanguageModel.ModelRequest | undefined): unknown => {
  const messages: ReadonlyArray<Message.Message> = request?.messages ?? []
  return JSON.parse(textIn(messages, "user"))
}
