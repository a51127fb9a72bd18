/**
 * The runs of a server: each is produced by a fiber of the server into its log, and read by responses. The fiber belongs to the
 * server, not to the request that began it.
 */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as ExecutionStrategy from "effect/ExecutionStrategy"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Chunk } from "../protocol/Chunk.js"
import { squash } from "../protocol/foreignValue.js"
import { Detached, tooManyDetached } from "./detached.js"
import { encode, mask, runFailed } from "./masking.js"
import { notFound, Refusal } from "./refusal.js"
import { type LogReader, ReplayLog } from "./replayLog.js"
import { ended, stopped, turn } from "./runEnds.js"
import { RunProgress } from "./runProgress.js"
import type { OnDisconnect, ServerSettings } from "./settings.js"

/** What a run is a part of, for clients that come back to it by a name of their own. */
export interface Conversation {
  readonly id: string
  /** The message that the run goes on with. */
  readonly messageId?: string
}

/** A run that is to be served. */
interface NewRun {
  /** Its log's. */
  readonly id: string
  readonly agentId: string
  /** The resource that may read it; `undefined` where everybody may. */
  readonly owner: string | undefined
  /** Whom its limits are counted for. */
  readonly principalId: string | undefined
  readonly policy: OnDisconnect
  readonly conversation?: Conversation
  readonly stream: (abortSignal: AbortSignal) => Stream.Stream<Chunk, unknown>
}

/** A run that is served, or was. */
interface ServedRun {
  readonly id: string
  readonly agentId: string
  readonly owner: string | undefined
  readonly principalId: string | undefined
  readonly conversation: Conversation | undefined
  readonly log: ReplayLog
  readonly progress: RunProgress
  /** Done when it has told its first chunk; fails with what kept it from doing so. */
  readonly begun: Deferred.Deferred<void, unknown>
  /** Stops it: it tells its end. */
  readonly abort: (reason: string) => void
  policy: OnDisconnect
  /** The runs that it has told of. */
  readonly runIds: Set<string>
  /** Waits for somebody to come back. */
  leaving: Fiber.RuntimeFiber<void> | undefined
}

/** What is known of a run whose log is gone. */
type Gone = Pick<ServedRun, "owner" | "runIds">

export interface Runs {
  /** Begins a run, read from its first chunk in the scope. Fails with what kept it from beginning. */
  readonly start: (run: NewRun) => Effect.Effect<Reading, unknown, Scope.Scope>
  /** Reads a run from an index on. */
  readonly read: (
    runId: string,
    owner: string | undefined,
    from: number,
    policy?: OnDisconnect
  ) => Effect.Effect<Reading, Refusal, Scope.Scope>
  /** Reads the last run of a conversation from its first chunk. */
  readonly readLast: (
    agentId: string,
    conversationId: string,
    owner: string | undefined
  ) => Effect.Effect<Reading, Refusal, Scope.Scope>
  /** Ends the last run of a conversation, if it is still going: it has told its end, and stored what it said, or time is up. */
  readonly endLast: (
    agentId: string,
    conversationId: string,
    owner: string | undefined
  ) => Effect.Effect<void>
  /** Stops a run. Whether it was still going. */
  readonly stop: (runId: string, owner: string | undefined) => Effect.Effect<boolean, Refusal>
  /** Whether the run is known, and belongs to this resource. */
  readonly owns: (runId: string, owner: string | undefined) => boolean
  /** Whether there is, or was, a run of this id. */
  readonly isKnown: (runId: string) => boolean
  /** Done when the server is about to end. */
  readonly closing: Deferred.Deferred<void>
  /** Runs whose log is kept, and those that go on without a reader; for tests and gauges. */
  readonly size: () => number
  readonly detached: () => number
}

/** A run, and a place in it. */
export interface Reading {
  readonly run: ServedRun
  readonly reader: LogReader
  /** Leaves it, and does with the run what its policy says; nothing the second time. */
  readonly leave: Effect.Effect<void>
}

/** How long a run may take to begin before its response does: until then what fails is answered with a status. */
const beginsWithin = Duration.seconds(2)

/** How long the runs of a server that ends may take to tell so. */
const endsWithin = Duration.millis(400)

const shuttingDown = "The server is shutting down."

/** Runs whose log is gone, and that are told apart from those that never were. */
const maxGone = 10_000

/** Names of conversations are the clients': those of others are other ones. */
const conversationKey = (agentId: string, id: string, owner: string | undefined): string =>
  JSON.stringify([agentId, id, owner ?? null])

const conversationOf = ({ agentId, conversation, owner }: ServedRun): string | undefined =>
  conversation === undefined ? undefined : conversationKey(agentId, conversation.id, owner)

/** The runs of a server. They end with the scope, and tell their readers: those that are slow, or too many, get an error frame. */
export const make = (settings: ServerSettings): Effect.Effect<Runs, never, Scope.Scope> =>
  Effect.gen(function* () {
    const closing = yield* Deferred.make<void>()
    const scope = yield* Scope.make(ExecutionStrategy.parallel)
    const served = new Map<string, ServedRun>()
    /** By every id that a chunk of theirs has; the one that came last has it. */
    const byRunId = new Map<string, ServedRun>()
    const gone = new Map<string, Gone>()
    /** The run of a conversation that came last. */
    const byConversation = new Map<string, ServedRun>()
    const over: Array<ServedRun> = []
    /** Of their logs. */
    let keptBytes = 0
    const detached = new Detached(settings)
    let isClosing = false

    const remember = (run: ServedRun, runId: string): void => {
      run.runIds.add(runId)
      byRunId.set(runId, run)
      gone.delete(runId)
    }

    const forget = (run: ServedRun, isExpired: boolean): void => {
      served.delete(run.id)
      const place = over.indexOf(run)
      if (place >= 0) {
        over.splice(place, 1)
        keptBytes -= run.log.bytes
      }
      const key = conversationOf(run)
      if (key !== undefined && byConversation.get(key) === run) byConversation.delete(key)
      for (const runId of run.runIds) {
        if (byRunId.get(runId) !== run) continue
        byRunId.delete(runId)
        if (!isExpired) continue
        gone.set(runId, { owner: run.owner, runIds: run.runIds })
        for (const oldest of gone.keys()) {
          if (gone.size <= maxGone) break
          gone.delete(oldest)
        }
      }
    }

    /** The run is over: it can be read for a while, unless too many others are. */
    const keep = (run: ServedRun): void => {
      over.push(run)
      keptBytes += run.log.bytes
      while (over.length > settings.maxRuns || (keptBytes > settings.maxTotalBytes && over.length > 1)) {
        const [oldest] = over
        if (oldest === undefined) return
        forget(oldest, true)
      }
    }

    const produce = Effect.fnUntraced(function* (run: ServedRun, stream: Stream.Stream<Chunk, unknown>) {
      const { log, progress } = run
      let hasBegun = false
      const room = Effect.async<void>(resume => {
        const forgetIt = log.onRoom(() => resume(Effect.void))
        return Effect.sync(forgetIt)
      })
      const waits = Effect.sync(() => progress.waits())
      const held = Effect.zipRight(room, waits)
      const exit = yield* Effect.exit(
        Stream.runForEachChunk(stream, chunks => {
          progress.took()
          for (const chunk of chunks) {
            progress.see(chunk)
            if (chunk.type === "start") remember(run, chunk.runId)
            const shown = mask(chunk, settings.expose)
            if (shown !== undefined) log.append({ chunk: shown, json: encode(shown) })
          }
          log.wake()
          if (!hasBegun && log.next > 0) {
            hasBegun = true
            Deferred.unsafeDone(run.begun, Effect.void)
          }
          // The server has ended it, and is about to interrupt this fiber: what else comes is for nobody.
          if (log.end !== undefined) return Effect.never
          return log.hasRoom() ? waits : held
        })
      )
      if (!hasBegun && Exit.isFailure(exit)) {
        forget(run, false)
        detached.delete(run)
        log.close({ _tag: "Broken", message: runFailed(squash(exit.cause)) })
        yield* Deferred.fail(run.begun, squash(exit.cause))
        return
      }
      detached.delete(run)
      log.close(progress.endOf(exit, shuttingDown))
      yield* Deferred.succeed(run.begun, undefined)
      keep(run)
      yield* Effect.sleep(settings.maxLogAge)
      forget(run, true)
    })

    const left = (run: ServedRun): Effect.Effect<void> =>
      Effect.suspend(() => {
        const { log, policy } = run
        if (log.readerCount > 0 || log.end !== undefined || isClosing) return Effect.void
        const leave = Effect.sync(() => {
          run.leaving = undefined
          if (log.readerCount === 0) run.abort("Its reader has left.")
        })
        if (policy === "abort") return leave
        if (!detached.add(run)) return Effect.sync(() => run.abort(tooManyDetached))
        if (policy === "continue") return Effect.void
        return Effect.map(
          Effect.forkIn(Effect.interruptible(Effect.delay(leave, policy.grace)), scope),
          fiber => {
            run.leaving = fiber
          }
        )
      })

    const attach = (run: ServedRun, from: number): Effect.Effect<Reading, never, Scope.Scope> =>
      Effect.acquireRelease(
        Effect.suspend(() => {
          const reader = run.log.read(from)
          detached.delete(run)
          const { leaving } = run
          run.leaving = undefined
          const leave = Effect.suspend(() => {
            if (reader.isClosed) return Effect.void
            reader.close()
            return left(run)
          })
          const reading: Reading = { run, reader, leave }
          return Effect.as(leaving === undefined ? Effect.void : Fiber.interruptFork(leaving), reading)
        }),
        ({ leave }) => leave
      )

    const start: Runs["start"] = Effect.fnUntraced(function* (asked) {
      if (isClosing) return yield* new Refusal({ status: 503, message: shuttingDown, retryAfter: 1 })
      if (served.has(asked.id))
        return yield* new Refusal({ status: 409, message: "This run exists already." })
      if (asked.policy !== "abort") yield* detached.admit(asked.principalId)
      const controller = new AbortController()
      const log = new ReplayLog(settings)
      const progress = new RunProgress()
      const run: ServedRun = {
        id: asked.id,
        agentId: asked.agentId,
        owner: asked.owner,
        principalId: asked.principalId,
        policy: asked.policy,
        conversation: asked.conversation,
        log,
        progress,
        begun: yield* Deferred.make<void, unknown>(),
        abort: reason => {
          progress.stopped(reason)
          controller.abort(reason)
          // A run that waits for a reader would not notice.
          log.release()
        },
        runIds: new Set(),
        leaving: undefined
      }
      served.set(run.id, run)
      remember(run, run.id)
      const key = conversationOf(run)
      if (key !== undefined) byConversation.set(key, run)
      const reading = yield* attach(run, 0)
      yield* Effect.forkIn(Effect.interruptible(produce(run, asked.stream(controller.signal))), scope)
      yield* Effect.timeoutOption(Deferred.await(run.begun), beginsWithin)
      return reading
    })

    const find = (runId: string, owner: string | undefined): Effect.Effect<ServedRun, Refusal> =>
      Effect.suspend(() => {
        const run = byRunId.get(runId)
        if (run !== undefined) return run.owner === owner ? Effect.succeed(run) : notFound("Run")
        const past = gone.get(runId)
        return past !== undefined && past.owner === owner
          ? new Refusal({ status: 410, message: "This run is not kept any more" })
          : notFound("Run")
      })

    const read: Runs["read"] = Effect.fnUntraced(function* (runId, owner, from, policy) {
      const run = yield* find(runId, owner)
      if (from < run.log.first) {
        return yield* new Refusal({ status: 410, message: "This part of the run is not kept any more" })
      }
      if (policy !== undefined) run.policy = policy
      return yield* attach(run, Math.min(from, run.log.next))
    })

    const readLast: Runs["readLast"] = (agentId, id, owner) =>
      Effect.suspend(() => {
        const run = byConversation.get(conversationKey(agentId, id, owner))
        return run === undefined ? notFound("Run") : read(run.id, owner, 0)
      })

    const endLast: Runs["endLast"] = (agentId, id, owner) =>
      Effect.suspend(() => {
        const run = byConversation.get(conversationKey(agentId, id, owner))
        if (run === undefined || run.log.end !== undefined) return Effect.void
        run.abort("It is answered again.")
        return Effect.asVoid(Effect.timeoutOption(ended(run.log), beginsWithin))
      })

    const stop: Runs["stop"] = (runId, owner) =>
      Effect.map(find(runId, owner), run => {
        if (run.log.end !== undefined) return false
        run.abort("It was stopped.")
        return true
      })

    yield* Effect.addFinalizer(() =>
      Effect.gen(function* () {
        isClosing = true
        const going = [...served.values()].filter(({ log }) => log.end === undefined)
        yield* Deferred.succeed(closing, undefined)
        // Whoever ends a scope is not to be interrupted, and would wait for the last run whatever the time.
        yield* Effect.timeoutOption(Effect.interruptible(stopped(going, shuttingDown)), endsWithin)
        for (const { log } of going) log.close({ _tag: "Broken", message: shuttingDown })
        // What readers are told goes first: what runs leave behind may take longer to put away.
        yield* turn
        yield* Scope.close(scope, Exit.void)
      })
    )

    return {
      start,
      read,
      readLast,
      endLast,
      stop,
      owns: (runId, owner) => {
        const known = byRunId.get(runId) ?? gone.get(runId)
        return known !== undefined && known.owner === owner
      },
      isKnown: runId => byRunId.has(runId) || gone.has(runId),
      closing,
      size: () => served.size,
      detached: () => detached.size
    }
  })
