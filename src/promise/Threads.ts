/**
 * The threads of a container.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { InvalidConfiguration, ThreadNotFound } from "../protocol/Errors.js"
import {
  checkOptions,
  id,
  type Kind,
  type Known,
  text,
  wholeNumber,
  wrongValue
} from "../protocol/options.js"
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

const scopeKinds = { resource: text } satisfies Record<keyof ThreadScope, Kind>

const listKinds = {
  ...scopeKinds,
  page: wholeNumber(0),
  perPage: wholeNumber(0)
} satisfies Record<keyof ListThreadsOptions, Kind>

const messageKinds = { ...scopeKinds, last: wholeNumber(0) } satisfies Record<
  keyof ThreadMessagesOptions,
  Kind
>

/** Throws `InvalidConfiguration`. */
const checkThread = (threadId: unknown, options: unknown, kinds: Known["kinds"]): void => {
  if (!id.accepts(threadId)) throw wrongValue("id", threadId, "Give the id of a thread.")
  checkOptions("A call for a thread", options, { kinds })
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
  readonly list = async (options: ListThreadsOptions = {}): Promise<ThreadPage> => {
    checkOptions("The list of threads", options, { kinds: listKinds })
    const { page, perPage, resource } = options
    return this.#run(
      Effect.flatMap(store, ({ list }) =>
        list({
          ...(resource === undefined ? {} : { resourceId: resource }),
          ...(page === undefined ? {} : { page }),
          ...(perPage === undefined ? {} : { perPage })
        })
      )
    )
  }

  /** `undefined` when there is none, or it is another resource's. */
  readonly get = async (threadId: string, scope: ThreadScope = {}): Promise<Thread | undefined> => {
    checkThread(threadId, scope, scopeKinds)
    return this.#run(Effect.map(find(threadId, scope), Option.getOrUndefined))
  }

  /** In the order in which they were said. Rejects with `ThreadNotFound`. */
  readonly messages = async (
    threadId: string,
    options: ThreadMessagesOptions = {}
  ): Promise<ReadonlyArray<ThreadMessage>> => {
    checkThread(threadId, options, messageKinds)
    const { last, resource } = options
    return this.#run(
      Effect.gen(function* () {
        const found = yield* find(threadId, resource === undefined ? {} : { resource })
        if (Option.isNone(found))
          return yield* new ThreadNotFound({ threadId, message: `There is no thread "${threadId}".` })
        return yield* (yield* store).messages(threadId, last === undefined ? {} : { last })
      })
    )
  }

  /** Deletes a thread with its messages. Whether there was one. */
  readonly delete = async (threadId: string, scope: ThreadScope = {}): Promise<boolean> => {
    checkThread(threadId, scope, scopeKinds)
    return this.#run(
      Effect.gen(function* () {
        const found = yield* find(threadId, scope)
        return Option.isSome(found) && (yield* (yield* store).delete(threadId))
      })
    )
  }
}
