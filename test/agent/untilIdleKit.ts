/** What the tests of until-idle streams share: streams that are looked at while they are open, and what is left of them. */
import { getEventListeners } from "node:events"
import { Agent, type Chunk, type LanguageModel, type Message, type RunOptions, type Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Cause, Context, Effect, Exit, Fiber, Layer, Stream, Supervisor } from "effect"
import { expect } from "vitest"
import { TaskManager } from "../../src/background/TaskManager.js"
import { expectGrammar } from "../support/grammar.js"
import { gated, notesIn } from "./backgroundKit.js"
import { only, settle, types } from "./kit.js"

/** A stream that is being read, and what it has told so far. */
export interface Opened<E> {
  readonly chunks: ReadonlyArray<Chunk.Chunk>
  /** How it ended; `undefined` as long as it is open. */
  readonly exit: () => Exit.Exit<void, E> | undefined
  /** The reader leaves. */
  readonly leave: Effect.Effect<void>
  /** Fibers of the stream that are left. */
  readonly fibers: Effect.Effect<number>
}

/** Reads a stream beside the test; whatever it can do without time is done. */
export const opened = <E, R>(stream: Stream.Stream<Chunk.Chunk, E, R>) =>
  Effect.gen(function* () {
    const chunks: Array<Chunk.Chunk> = []
    const supervisor = yield* Supervisor.track
    const fiber = yield* Stream.runForEach(stream, chunk => Effect.sync(() => void chunks.push(chunk))).pipe(
      Effect.fork,
      Effect.supervised(supervisor)
    )
    yield* settle
    const open: Opened<E> = {
      chunks,
      exit: () => {
        const exit = fiber.unsafePoll()
        return exit === null ? undefined : exit
      },
      leave: Effect.zipRight(Fiber.interrupt(fiber), settle),
      fibers: Effect.map(
        supervisor.value,
        fibers => fibers.filter(one => one !== fiber && one.unsafePoll() === null).length
      )
    }
    return open
  })

/** An agent with these tools. */
export const agentOf = <const Tools extends ReadonlyArray<Tool.Any>>(
  model: LanguageModel.LanguageModel,
  tools: Tools,
  id = "worker"
) => Agent.make({ id, model, instructions: "Be brief.", tools })

/** Calls of `work`, and what the model says after each outcome. */
export const setUp = (turns: ReadonlyArray<ScriptedModel.Turn>, id?: string) => {
  const work = gated("work")
  const model = ScriptedModel.make(turns)
  return { work, model, agent: agentOf(model, [work.tool], id) }
}

/** An open until-idle stream. */
export const idling = <R>(agent: Agent.Agent<R>, options: RunOptions<[], undefined> = {}) =>
  opened(Agent.stream(agent, "go", { untilIdle: true, ...options }))

/** The same of a thread. */
export const idlingIn = <R>(
  agent: Agent.Agent<R>,
  memory: { readonly thread: string; readonly resource: string },
  options: Omit<RunOptions<[]>, "memory"> = {}
) => opened(Agent.stream(agent, "go", { untilIdle: true, ...options, memory }))

/** Whether a stream is over, and did not fail. */
export const expectClosed = <E>({ exit }: Opened<E>): void => {
  expect(exit()).toStrictEqual(Exit.void)
}

export const expectOpen = <E>({ exit }: Opened<E>): void => {
  expect(exit()).toBeUndefined()
}

/** What it failed with. */
export const failureOf = <E>({ exit }: Opened<E>): unknown => {
  const end = exit()
  return end !== undefined && Exit.isFailure(end) ? Cause.squash(end.cause) : end
}

/** The texts of the turns that are over, in order. */
export const textsOf = (chunks: ReadonlyArray<Chunk.Chunk>): ReadonlyArray<string> =>
  only(chunks, "finish").map(({ payload }) => String(payload.output["text"]))

/** Each run of a stream on its own: in order, and each with its start and its end. */
export const expectTurns = (chunks: ReadonlyArray<Chunk.Chunk>, count: number): void => {
  const runIds = [...new Set(only(chunks, "start").map(({ runId }) => runId))]
  expect(runIds).toHaveLength(count)
  const told = chunks.filter(({ type }) => !type.startsWith("background-task-"))
  for (const runId of runIds) expectGrammar(told.filter(chunk => chunk.runId === runId))
  expect(told.map(({ runId }) => runId)).toStrictEqual(
    runIds.flatMap(runId => told.filter(chunk => chunk.runId === runId).map(() => runId))
  )
}

/** What happened to each task: the types of its chunks, without what they begin with. */
export const eventsOf = (chunks: ReadonlyArray<Chunk.Chunk>, toolCallId: string): ReadonlyArray<string> =>
  types(
    chunks.filter(
      chunk =>
        chunk.type.startsWith("background-task-") &&
        "payload" in chunk &&
        "toolCallId" in chunk.payload &&
        chunk.payload["toolCallId"] === toolCallId
    )
  ).map(type => type.replace("background-task-", ""))

/** Calls that the note of a prompt names, with what it says of them. */
export const namedIn = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<string> =>
  notesIn(messages).flatMap(note =>
    note.split("\n").flatMap(line => {
      const found = /^- call (\S+) of "[^"]*" \([^)]*\) (.*)\.$/.exec(line)
      return found === null ? [] : `${found[1]} ${found[2]}`
    })
  )

/** Listeners of the manager at this moment. */
let listening = 0

/** Counts those who listen to the manager. */
export const counted = <A, E, R>(test: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | TaskManager> =>
  Effect.provide(
    test,
    Layer.effectContext(
      Effect.map(TaskManager, manager => {
        listening = 0
        const listen: typeof manager.listen = listener => {
          const forget = manager.listen(listener)
          let isOver = false
          listening++
          return () => {
            if (!isOver) listening--
            isOver = true
            forget()
          }
        }
        return Context.make(TaskManager, { ...manager, listen })
      })
    )
  )

/** What is left of a stream that is over. */
export const expectNothingLeft = <E>(open: Opened<E>, signal?: AbortSignal) =>
  Effect.gen(function* () {
    yield* settle
    const { idleScopes } = yield* TaskManager
    expect({
      fibers: yield* open.fibers,
      listening,
      scopes: idleScopes.size,
      ofSignal: signal === undefined ? 0 : getEventListeners(signal, "abort").length
    }).toStrictEqual({ fibers: 0, listening: 0, scopes: 0, ofSignal: 0 })
  })
