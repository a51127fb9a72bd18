/**
 * The objective of a thread: set, read, changed and taken away by whoever uses the agent.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import {
  InvalidConfiguration,
  ObjectiveNotFound,
  type StorageError,
  type ThreadNotFound
} from "../../protocol/Errors.js"
import * as Objective from "../../protocol/Objective.js"
import { checkOptions, read, wrongValue } from "../../protocol/options.js"
import { type OwnedThread, ThreadStore } from "../../storage/ThreadStore.js"
import { checked } from "../checkOptions.js"
import type { Agent } from "../definition.js"
import { defaultMaxRuns, maxRunsOf } from "./goalSettings.js"

/** Which thread, and whose it has to be. @since 0.1.0 @category models */
export interface ObjectiveThread {
  readonly threadId: string
  readonly resourceId: string
}

/** Where an objective is set, and how far it may go. @since 0.1.0 @category models */
export interface SetObjectiveOptions extends ObjectiveThread {
  /** Evaluations after which it is paused when none has passed. Default: the agent's `goal.maxRuns`. */
  readonly maxRuns?: number
}

/** What is changed of the objective of a thread. @since 0.1.0 @category models */
export interface UpdateObjectiveOptions extends ObjectiveThread {
  /** Evaluations in all, those of before included. */
  readonly maxRuns?: number
  /** `paused`: answers are not judged. `active`: they are again, if budget is left, also by an objective that was done. */
  readonly status?: "active" | "paused"
}

const threadFields = ["threadId", "resourceId"] as const satisfies ReadonlyArray<keyof ObjectiveThread>

const refused = (field: string, message: string): InvalidConfiguration =>
  new InvalidConfiguration({ field, message })

/** The thread that options name. Throws `InvalidConfiguration`. */
const threadOf = (what: string, options: ObjectiveThread, more: ReadonlyArray<string> = []): OwnedThread => {
  const kinds = Object.fromEntries([...threadFields, ...more].map(name => [name, read]))
  checkOptions(what, options, { kinds })
  const idOf = (field: keyof ObjectiveThread): string => {
    const id: unknown = options[field]
    if (typeof id === "string" && id !== "") return id
    throw refused(field, `\`${field}\` is no id. Give the one that runs of the thread have in \`memory\`.`)
  }
  return { threadId: idOf("threadId"), resourceId: idOf("resourceId") }
}

const statusOf = (status: unknown): "active" | "paused" | undefined => {
  if (status === undefined || status === "active" || status === "paused") return status
  throw wrongValue("status", status, 'Give "active" or "paused", or leave it out.')
}

const now = Effect.map(Clock.currentTimeMillis, millis => new Date(millis))

/**
 * Sets what the agent works towards in a thread, which is made when there is none: each answer of its runs there is judged from
 * then on, as the agent's `goal` says. It takes the place of another objective, with a budget of its own.
 *
 * Fails with `ThreadNotFound` when the thread is another resource's, and with `InvalidConfiguration` when the text is empty.
 *
 * @since 0.1.0
 * @category goals
 */
export const setObjective: <R>(
  agent: Agent<R>,
  objective: string,
  options: SetObjectiveOptions
) => Effect.Effect<Objective.Objective, InvalidConfiguration | StorageError | ThreadNotFound, ThreadStore> =
  Effect.fnUntraced(function* <R>(agent: Agent<R>, objective: string, options: SetObjectiveOptions) {
    const { maxRuns, thread } = yield* checked(() => {
      const thread = threadOf("`setObjective`", options, ["maxRuns"])
      if (typeof objective !== "string" || objective.trim() === "") {
        throw refused("objective", "The objective is no text. Say what is to be reached.")
      }
      const maxRuns =
        options.maxRuns === undefined ? (agent.goal?.maxRuns ?? defaultMaxRuns) : options.maxRuns
      return { thread, maxRuns: maxRunsOf("maxRuns", maxRuns) }
    })
    const store = yield* ThreadStore
    yield* store.open({ id: thread.threadId, resourceId: thread.resourceId })
    const begun = Objective.make(objective, maxRuns, yield* now)
    const stored = yield* store.changeObjective<never>(thread, () => Either.right(Option.some(begun)))
    return Option.getOrElse(stored, () => begun)
  })

/**
 * The objective of a thread, however far it is; none when none is set. Fails with `ThreadNotFound` when there is no such thread,
 * or it is another resource's.
 *
 * @since 0.1.0
 * @category goals
 */
export const getObjective: <R>(
  agent: Agent<R>,
  options: ObjectiveThread
) => Effect.Effect<
  Option.Option<Objective.Objective>,
  InvalidConfiguration | StorageError | ThreadNotFound,
  ThreadStore
> = Effect.fnUntraced(function* <R>(_agent: Agent<R>, options: ObjectiveThread) {
  const thread = yield* checked(() => threadOf("`getObjective`", options))
  return yield* (yield* ThreadStore).objective(thread)
})

/**
 * Pauses an objective, resumes it, or gives it another budget; what runs judge meanwhile is not lost. A run that is going
 * notices with its next answer.
 *
 * Fails with `ObjectiveNotFound` when none is set, with `InvalidConfiguration` when one is to be active without a run left, or
 * paused that is done, and with `ThreadNotFound`.
 *
 * @since 0.1.0
 * @category goals
 */
export const updateObjectiveOptions: <R>(
  agent: Agent<R>,
  options: UpdateObjectiveOptions
) => Effect.Effect<
  Objective.Objective,
  InvalidConfiguration | ObjectiveNotFound | StorageError | ThreadNotFound,
  ThreadStore
> = Effect.fnUntraced(function* <R>(_agent: Agent<R>, options: UpdateObjectiveOptions) {
  const { change, thread } = yield* checked(() => {
    const thread = threadOf("`updateObjectiveOptions`", options, ["maxRuns", "status"])
    const status = statusOf(options.status)
    const change: Objective.ObjectiveOptions = {
      ...(options.maxRuns === undefined ? {} : { maxRuns: maxRunsOf("maxRuns", options.maxRuns) }),
      ...(status === undefined ? {} : { status })
    }
    return { thread, change }
  })
  const { threadId } = thread
  const message = `Thread "${threadId}" has no objective. Set one with setObjective first.`
  const missing = new ObjectiveNotFound({ threadId, message })
  const at = yield* now
  const stored = yield* (yield* ThreadStore).changeObjective<InvalidConfiguration | ObjectiveNotFound>(
    thread,
    Option.match({
      onNone: () => Either.left(missing),
      onSome: present => Either.map(Objective.changed(present, change, at), Option.some)
    })
  )
  return yield* Option.match(stored, { onNone: () => Effect.fail(missing), onSome: Effect.succeed })
})

/**
 * Takes the objective of a thread away: its answers are not judged any more. Whether there was one. Fails with `ThreadNotFound`.
 *
 * @since 0.1.0
 * @category goals
 */
export const clearObjective: <R>(
  agent: Agent<R>,
  options: ObjectiveThread
) => Effect.Effect<boolean, InvalidConfiguration | StorageError | ThreadNotFound, ThreadStore> =
  Effect.fnUntraced(function* <R>(_agent: Agent<R>, options: ObjectiveThread) {
    const thread = yield* checked(() => threadOf("`clearObjective`", options))
    let isCleared = false
    yield* (yield* ThreadStore).changeObjective<never>(thread, present => {
      isCleared = Option.isSome(present)
      return Either.right(Option.none())
    })
    return isCleared
  })
