/**
 * The threads of a container.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { InvalidConfiguration, ThreadNotFound } from "../protocol/Errors.js"
import { type Thread, type ThreadMessage, type ThreadPage, ThreadStore } from "../storage/ThreadStore.js"

/** Whose thread it has to be: one of another resource is as good as none. @since 0.1.0 @category models */
export interface ThreadScope {
  /** Default: anybody's. */
  readonly resource?: string
}

/** Which threads to list. @since 0.1.0 @category models */
export interface ListThreadsOptions extends ThreadScope {
  /** From 0, which is the default. */
  readonly page?: number
  /** Default 100. */
  readonly perPage?: number
}

/** Which messages of a thread. @since 0.1.0 @category models */
export interface ThreadMessagesOptions extends ThreadScope {
  /** So many of the newest, and what belongs before them to the turn in which they begin. Default: all. */
  readonly last?: number
}

const noStore = new InvalidConfiguration({
  field: "storage",
  message:
    "The container has no store. Give it one, for example new Eddy({ agents, storage: new InMemoryStore() })."
})

const store = Effect.flatMap(Effect.serviceOption(ThreadStore), found =>
  Option.isSome(found) ? Effect.succeed(found.value) : Effect.fail(noStore)
)

const find = (id: string, { resource }: ThreadScope) =>
  Effect.gen(function* () {
    const found = yield* (yield* store).get(id)
    return Option.filter(found, thread => resource === undefined || thread.resourceId === resource)
  })

/**
 * Conversations by their id. Made by a container; every promise rejects with `StorageError` when the store fails.
 *
 * @since 0.1.0
 * @category models
 */
export class Threads {
  readonly #run: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

  /** Made by `Eddy`. */
  constructor(run: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>) {
    this.#run = run
  }

  /** Newest change first, and how many there are on all pages. */
  readonly list = ({ page, perPage, resource }: ListThreadsOptions = {}): Promise<ThreadPage> =>
    this.#run(
      Effect.flatMap(store, ({ list }) =>
        list({
          ...(resource === undefined ? {} : { resourceId: resource }),
          ...(page === undefined ? {} : { page }),
          ...(perPage === undefined ? {} : { perPage })
        })
      )
    )

  /** `undefined` when there is none, or it is another resource's. */
  readonly get = (id: string, scope: ThreadScope = {}): Promise<Thread | undefined> =>
    this.#run(Effect.map(find(id, scope), Option.getOrUndefined))

  /** In the order in which they were said. Rejects with `ThreadNotFound`. */
  readonly messages = (
    id: string,
    { last, resource }: ThreadMessagesOptions = {}
  ): Promise<ReadonlyArray<ThreadMessage>> =>
    this.#run(
      Effect.gen(function* () {
        const found = yield* find(id, resource === undefined ? {} : { resource })
        if (Option.isNone(found))
          return yield* new ThreadNotFound({ threadId: id, message: `There is no thread "${id}".` })
        return yield* (yield* store).messages(id, last === undefined ? {} : { last })
      })
    )

  /** Deletes a thread with its messages. Whether there was one. */
  readonly delete = (id: string, scope: ThreadScope = {}): Promise<boolean> =>
    this.#run(
      Effect.gen(function* () {
        const found = yield* find(id, scope)
        return Option.isSome(found) && (yield* (yield* store).delete(id))
      })
    )
}
