/** An until-idle stream of an agent: its turns are runs, and its scope is what they belong to. */
import type * as Batch from "effect/Chunk"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Happening } from "../../background/hub.js"
import { outcomePart } from "../../background/taskChunks.js"
import * as UntilIdle from "../../background/UntilIdle.js"
import type { Chunk, Of } from "../../protocol/Chunk.js"
import type { Input } from "../../protocol/Conversation.js"
import type { AgentError, ThreadBusy } from "../../protocol/Errors.js"
import { IdGenerator } from "../../protocol/Id.js"
import type { Message } from "../../protocol/Message.js"
import type { Task } from "../../protocol/Task.js"
import * as Usage from "../../protocol/tokens.js"
import { ThreadStore, type ThreadTurn } from "../../storage/ThreadStore.js"
import type * as Tool from "../../tool/Tool.js"
import { lastMessagesOf } from "../checkOptions.js"
import type { Agent, RunRequirements } from "../definition.js"
import { follow } from "../loop/following.js"
import { type Run, RunControl } from "../loop/run.js"
import { toStream } from "../loop/streaming.js"
import { prepare, type Turn } from "../prepare.js"
import type { MemoryOptions, RunOptions } from "../RunOptions.js"
import { holdTurn } from "../thread.js"
import type { Beginning } from "./idleBeginning.js"
import { progressChunk } from "./progress.js"
import type { Resumed, ResumeOptions } from "./resuming.js"
import { type Answered, replace } from "./runTasks.js"

const threadIdOf = (memory: MemoryOptions): string =>
  typeof memory.thread === "string" ? memory.thread : memory.thread.id

/**
 * The same thread, recalled as far back as these calls, whatever a run is told otherwise: the model hears that their outcomes
 * stand in the conversation. Of a store that fails the run says so itself.
 */
const recalling = <R, Memory extends MemoryOptions>(
  agent: Agent<R>,
  memory: Memory,
  tasks: ReadonlyArray<Task>
): Effect.Effect<Memory> =>
  Effect.gen(function* () {
    const store = yield* Effect.serviceOption(ThreadStore)
    if (Option.isNone(store)) return memory
    let last = Math.max(1, lastMessagesOf(agent.memory, memory))
    for (;;) {
      const found = yield* store.value.messages(threadIdOf(memory), { last })
      const told = new Set(
        found.flatMap(({ message }) =>
          message.role === "tool" ? message.content.map(({ toolCallId }) => toolCallId) : []
        )
      )
      const isEnough = tasks.every(({ toolCallId }) => told.has(toolCallId))
      if (isEnough || found.length < last) return { ...memory, lastMessages: last }
      last *= 4
    }
  }).pipe(Effect.orElseSucceed(() => memory))

/** The turns after the first: each stops with the stream, whichever it is then. */
class Following {
  private turn: RunControl | undefined

  constructor(private readonly control: RunControl) {
    control.onHalt(() => this.stop())
  }

  next(): RunControl {
    const turn = new RunControl()
    this.turn = turn
    if (this.control.halted !== undefined) this.stop()
    return turn
  }

  private stop(): void {
    const { halted } = this.control
    this.turn?.abort(halted?._tag === "Aborted" ? halted.reason : undefined)
  }
}

/** Done when the turn is to stop. */
const halting = (control: RunControl): Effect.Effect<void> =>
  Effect.async(resume => {
    const look = (): void => {
      if (control.halted !== undefined) resume(Effect.void)
    }
    control.onHalt(look)
    look()
  })

/** The turn of a run in its thread, ended with the scope; `undefined` when the run is stopped first, or there is no store. */
const turnBeside = (
  memory: MemoryOptions,
  runId: string,
  stopping: RunControl
): Effect.Effect<ThreadTurn | undefined, ThreadBusy, Scope.Scope> =>
  Effect.gen(function* () {
    const store = yield* Effect.serviceOption(ThreadStore)
    if (Option.isNone(store)) return undefined
    let turn: ThreadTurn | undefined
    yield* Effect.addFinalizer(() => Effect.sync(() => turn?.end()))
    const request = { threadId: threadIdOf(memory), resourceId: memory.resource, runId, within: [] }
    const taking = holdTurn(store.value, { ...request, whenBusy: "queue" }, taken => {
      turn = taken
    })
    yield* Effect.raceFirst(taking, halting(stopping))
    return turn
  })

/** What the runs of one stream have said, with the outcomes that came since. */
class Conversation {
  private messages: Array<Message> = []
  private readonly runIds = new Set<string>()
  /** The run that came last. */
  runId = ""
  /** It waits for somebody, and so does the stream: whoever decides goes on. */
  isSuspended = false

  constructor(private readonly answered: Answered) {}

  /** A turn begins: what it dispatches may be done before anybody reads that it has. */
  began(runId: string): void {
    this.runId = runId
    this.runIds.add(runId)
  }

  /** Remembers what a turn tells. */
  readonly see = (chunks: Batch.Chunk<Chunk>): Batch.Chunk<Chunk> => {
    for (const chunk of chunks) if (chunk.type === "finish") this.ended(chunk)
    return chunks
  }

  private ended({ payload }: Of<"finish">): void {
    this.isSuspended = payload.stepResult.reason === "suspended"
    this.messages = [...payload.messages.all]
  }

  has(runId: string): boolean {
    return this.runIds.has(runId)
  }

  /** With what these tasks came to. */
  after(tasks: ReadonlyArray<Task>): ReadonlyArray<Message> {
    for (const task of tasks) {
      const part = this.answered.outcomeOf(task.id) ?? outcomePart(task, undefined)
      if (replace(this.messages, task.toolCallId, part)) continue
      const { args, toolCallId, toolName } = task
      this.messages.push(
        { role: "assistant", content: [{ type: "tool-call", toolCallId, toolName, input: args }] },
        { role: "tool", content: [part] }
      )
    }
    return [...this.messages]
  }
}

/** What an until-idle stream begins with: a run, or, when a call was resumed, what was heard of it since. */
export interface FirstTurn<R> {
  readonly runId: string | undefined
  readonly stream: Stream.Stream<Chunk, AgentError, R>
  /** Tasks that are waited for, whatever run called them. */
  readonly taskIds: ReadonlyArray<string>
  readonly heard: () => ReadonlyArray<Happening>
}

/** A stream that begins with a run. */
export const beginWith = <R>(runId: string, stream: Stream.Stream<Chunk, AgentError, R>): FirstTurn<R> => ({
  runId,
  stream,
  taskIds: [],
  heard: () => []
})

/** Stops all turns when the signal fires, also between two of them, as long as the stream is open. */
const followed = <E, R>(
  stream: Stream.Stream<Chunk, E, R>,
  signal: AbortSignal | undefined,
  control: RunControl
): Stream.Stream<Chunk, E, R> => {
  if (signal === undefined) return stream
  const outer = new RunControl()
  outer.onHalt(() => control.abort(signal.reason))
  return Stream.unwrapScoped(
    Effect.as(
      Effect.acquireRelease(
        Effect.sync(() => follow(signal, outer)),
        release => Effect.sync(release)
      ),
      stream
    )
  )
}

/** A run that is prepared, as a stream of its own, closed when it ends. */
export const turnOf = <R>(run: Run<R>): Stream.Stream<Chunk, AgentError> =>
  Stream.ensuring(toStream(run), Effect.suspend(run.close))

/** What is told of a turn that could not begin: somebody reads the stream, and is to know why it ends. */
const refusal = Effect.fnUntraced(function* <R>(agent: Agent<R>, error: AgentError) {
  const ids = yield* IdGenerator
  const envelope = { runId: ids.next("run"), from: "AGENT" as const }
  const payload = { agentId: agent.id, messageId: ids.next("message") }
  const chunks: ReadonlyArray<Chunk> = [
    { type: "start", ...envelope, payload },
    { type: "error", ...envelope, payload: { error } },
    {
      type: "finish",
      ...envelope,
      payload: {
        stepResult: { reason: "error", isContinued: false },
        output: { usage: Usage.empty, text: "" },
        metadata: {},
        messages: { all: [], user: [], nonUser: [] },
        response: { messages: [], uiMessages: [] }
      }
    }
  ]
  return Stream.concat(Stream.fromIterable(chunks), Stream.fail(error))
})

/** The same for a run that is prepared already, with what its later turns need. */
export const preparedUntilIdle = <
  R,
  const Tools extends ReadonlyArray<Tool.Any>,
  const Memory extends MemoryOptions | undefined
>(
  beginning: Beginning<R>,
  options: RunOptions<Tools, Memory>,
  run: Run<R | RunRequirements<Tools, Memory>>,
  services: Context.Context<R | RunRequirements<Tools, Memory>>
): Stream.Stream<Chunk, AgentError> =>
  Stream.provideContext(untilIdle(beginning, options, beginWith(run.runId, turnOf(run))), services)

const stoppedBy =
  (control: RunControl) =>
  (listener: () => void): boolean => {
    control.onHalt(listener)
    return control.halted !== undefined
  }

/**
 * The stream that begins with `first`, and goes on with runs of the same agent and options until its tasks are answered. What
 * only the first run has, its id for one, is its own.
 */
export const untilIdle = <
  R,
  const Tools extends ReadonlyArray<Tool.Any>,
  const Memory extends MemoryOptions | undefined
>(
  { agent, answered, control, idle, manager }: Beginning<R>,
  options: RunOptions<Tools, Memory>,
  first: FirstTurn<R | RunRequirements<Tools, Memory>>
): Stream.Stream<Chunk, AgentError, R | RunRequirements<Tools, Memory>> => {
  // The id is that of the first run.
  const { runId: _, ...again } = options
  const { memory } = options
  const conversation = new Conversation(answered)
  if (first.runId !== undefined) conversation.began(first.runId)
  const known = new Set(first.taskIds)
  const scope = (task: Task): boolean => {
    if (task.agentId !== agent.id) return false
    if (memory === undefined) return conversation.has(task.runId) || known.has(task.id)
    return task.threadId === threadIdOf(memory) && task.resourceId === memory.resource
  }
  const turns = new Following(control)
  const continueWith = (settled: ReadonlyArray<Task>) => {
    const stopping = turns.next()
    const begin = (
      answering: Pick<Turn, "settled" | "threadTurn">,
      input: Input,
      runOptions: RunOptions<Tools, Memory>
    ) =>
      Effect.acquireRelease(
        prepare(agent, input, runOptions, stopping, { answered, ...answering }),
        prepared => Effect.suspend(prepared.close)
      )
    // With a thread, the outcomes stand there.
    const run =
      memory === undefined
        ? begin({ settled }, conversation.after(settled), again)
        : Effect.gen(function* () {
            const runId = (yield* IdGenerator).next("run")
            const threadTurn = yield* turnBeside(memory, runId, stopping)
            // A run that had the turn meanwhile may have answered.
            const open = settled.filter(({ id }) => !answered.has(id))
            if (open.length === 0) return undefined
            const recalled = yield* Effect.raceFirst(
              Effect.disconnect(recalling(agent, memory, open)),
              Effect.as(halting(stopping), memory)
            )
            return yield* begin({ settled: open, threadTurn }, [], { ...again, runId, memory: recalled })
          })
    const turn = Effect.map(run, prepared => {
      if (prepared === undefined) return Stream.empty
      conversation.began(prepared.runId)
      return toStream(prepared)
    })
    return Stream.unwrapScoped(
      Effect.catchAll(turn, error =>
        // Nobody waits for a turn that was stopped before it began.
        control.halted === undefined ? refusal(agent, error) : Effect.succeed(Stream.empty)
      )
    ).pipe(Stream.mapChunks(conversation.see))
  }
  const stream = UntilIdle.make({
    manager,
    scope,
    name: memory === undefined ? undefined : JSON.stringify([agent.id, threadIdOf(memory), memory.resource]),
    first: Stream.mapChunks(first.stream, conversation.see),
    heard: first.heard,
    isDispatching: task => task.runId === conversation.runId,
    continueWith,
    isAnswered: id => answered.has(id),
    onAnswered: listener =>
      memory === undefined
        ? () => undefined
        : manager.answerListeners.add({ id: threadIdOf(memory), resourceId: memory.resource }, taskIds => {
            for (const id of taskIds) answered.add(id)
            listener()
          }),
    maxIdleMs: idle.maxIdleMs,
    batch: idle.batch,
    isStopped: stoppedBy(control),
    isSuspended: () => conversation.isSuspended,
    report: (taskIds, elapsedMs) => progressChunk(conversation.runId, taskIds, elapsedMs)
  })
  return followed(stream, options.abortSignal, control)
}

/**
 * The stream of a call that was resumed: what happens to it, and the turns that answer to it; where nobody asked for these, what
 * happens to it until it has settled or suspends again.
 */
export const resumed = <
  R,
  const Tools extends ReadonlyArray<Tool.Any>,
  const Memory extends MemoryOptions | undefined
>(
  options: ResumeOptions<Tools, Memory>,
  { beginning, control, heard, manager, task }: Resumed<R>
): Stream.Stream<Chunk, AgentError, R | RunRequirements<Tools, Memory>> => {
  const { toolCallId: _, ...runOptions } = options
  if (beginning !== undefined) {
    const first = { runId: undefined, stream: Stream.empty, taskIds: [task.id], heard }
    return untilIdle(beginning, runOptions, first)
  }
  const stream = UntilIdle.follow({ manager, heard, taskId: task.id, isStopped: stoppedBy(control) })
  return followed(stream, options.abortSignal, control)
}

/** The same with everything that its turns need. */
export const resumedUntilIdle = <
  R,
  const Tools extends ReadonlyArray<Tool.Any>,
  const Memory extends MemoryOptions | undefined
>(
  options: ResumeOptions<Tools, Memory>,
  call: Resumed<R>,
  services: Context.Context<R | RunRequirements<Tools, Memory>>
): Stream.Stream<Chunk, AgentError> => Stream.provideContext(resumed(options, call), services)
