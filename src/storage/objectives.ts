/** What a store of threads does with their objectives, over a driver that may keep none. */
import * as Effect from "effect/Effect"
import type * as Either from "effect/Either"
import * as Option from "effect/Option"
import { StorageError, type ThreadNotFound } from "../protocol/Errors.js"
import { lazily } from "../protocol/lazily.js"
import type { Objective } from "../protocol/Objective.js"
import { wellFormed } from "../protocol/safeJson.js"
import { ask, mostTries, notFound } from "./asking.js"
import type { Encoded, Objectives } from "./threadRows.js"

/** Loaded when the first objective is read or written: it needs schemas, which take long to load. */
const rows = lazily(() => import("./storedObjectives.js"))

interface OwnedThread {
  readonly threadId: string
  readonly resourceId: string
}

type Change<E> = (present: Option.Option<Objective>) => Either.Either<Option.Option<Objective>, E>

/** The threads of a driver that keeps no objectives have none. */
const getNone =
  (driver: Encoded): Objectives["get"] =>
  (threadId, resourceId) =>
    Effect.map(driver.get(threadId), thread =>
      Option.as(
        Option.filter(thread, found => found.resourceId === resourceId),
        null
      )
    )

/** The operations over a driver. */
export const make = (driver: Encoded) => {
  const { get, replace } = driver.objectives ?? { get: getNone(driver), replace: undefined }
  const find = Effect.fnUntraced(function* (operation: string, { resourceId, threadId }: OwnedThread) {
    const found = yield* ask(operation, get(wellFormed(threadId), wellFormed(resourceId)))
    return Option.isNone(found) ? yield* notFound(threadId) : found.value
  })
  const read = Effect.fnUntraced(function* (operation: string, threadId: string, content: string | null) {
    if (content === null) return Option.none()
    const { readObjective } = yield* rows
    return Option.some(yield* readObjective(operation, threadId, content))
  })
  const write = Effect.fnUntraced(function* (operation: string, objective: Option.Option<Objective>) {
    if (Option.isNone(objective)) return { content: null, objective }
    const { writeObjective } = yield* rows
    const written = yield* writeObjective(operation, objective.value)
    return { content: written.content, objective: Option.some(written.objective) }
  })
  const changeObjective: <E>(
    thread: OwnedThread,
    change: Change<E>
  ) => Effect.Effect<Option.Option<Objective>, E | StorageError | ThreadNotFound> = Effect.fnUntraced(
    function* <E>(thread: OwnedThread, change: Change<E>) {
      const operation = "ThreadStore.changeObjective"
      const { resourceId, threadId } = thread
      for (let tries = 0; tries < mostTries; tries++) {
        const before = yield* find(operation, thread)
        const present = yield* read(operation, threadId, before)
        const next = yield* change(present)
        if (next === present || (Option.isNone(next) && Option.isNone(present))) return present
        if (replace === undefined) {
          return yield* new StorageError({
            operation,
            message:
              "The driver of this store keeps no objectives. Give it `objectives`, as ThreadStore.Encoded says, or use another store."
          })
        }
        const { content, objective } = yield* write(operation, next)
        const asked = replace(wellFormed(threadId), wellFormed(resourceId), before, content)
        if (yield* ask(operation, asked)) return objective
      }
      return yield* new StorageError({
        operation,
        message: `The objective of thread "${threadId}" could not be changed: it changed each time, or the database does not keep what it is given.`
      })
    }
  )
  return {
    objective: Effect.fnUntraced(function* (thread: OwnedThread) {
      const operation = "ThreadStore.objective"
      return yield* read(operation, thread.threadId, yield* find(operation, thread))
    }),
    changeObjective
  }
}
