/** What stands behind a thread store: rows of strings and numbers, and the few things that a database does with them. */
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"

/** A thread as a database keeps it. Times are milliseconds since 1970. @since 0.1.0 @category drivers */
export interface ThreadRow {
  /** Primary key. */
  readonly id: string
  readonly resourceId: string
  readonly title: string | null
  /** The text of a JSON object. */
  readonly metadata: string | null
  readonly createdAt: number
  readonly updatedAt: number
}

/** A message that is to be stored. @since 0.1.0 @category drivers */
export interface NewMessageRow {
  readonly id: string
  readonly runId: string | null
  /** The role that `content` tells too: here a database can look for it. */
  readonly role: "system" | "user" | "assistant" | "tool"
  /** The text of a JSON object. It is given back as it is, byte for byte. */
  readonly content: string
}

/** What a message was given when it was stored first. @since 0.1.0 @category drivers */
export interface Place {
  /** The block of its run, see {@link Encoded.startRun}; messages that no run sent, and that follow each other in one call, have a block of their own. */
  readonly block: number
  /** One more than the highest in the thread, from 1: the order of storing. */
  readonly sequence: number
  readonly createdAt: number
}

/** A stored message. Primary key: `threadId` and `id`; unique: `threadId` and `sequence`. @since 0.1.0 @category drivers */
export interface MessageRow extends NewMessageRow, Place {
  readonly threadId: string
}

/**
 * What a database does with the objectives of threads: each thread has one, or none. Both operations know only threads of this
 * id that belong to this resource; an objective goes with its thread.
 *
 * @since 0.1.0
 * @category drivers
 */
export interface Objectives {
  /** The objective: the text of a JSON object, byte for byte as it was given, or `null`. None when there is no such thread. */
  readonly get: (threadId: string, resourceId: string) => Effect.Effect<Option.Option<string | null>, unknown>
  /**
   * Compare and set: gives the thread this objective, or none, if it has the expected one, or none when that is `null`, and
   * changes nothing else, no `updatedAt` and no place in a list. Whether it had it.
   */
  readonly replace: (
    threadId: string,
    resourceId: string,
    expected: string | null,
    content: string | null
  ) => Effect.Effect<boolean, unknown>
}

/**
 * What a database does for a {@link ThreadStore}. It may fail with anything, which becomes the cause of a `StorageError`.
 *
 * Each operation is atomic: it is done whole or not at all, also when it is interrupted, and no other sees half of it.
 * Strings are compared and kept exactly: case, spaces and normal forms count. They are well-formed. The ids of a list of
 * messages differ, and the list is never empty. Numbers are safe integers, not negative.
 *
 * @since 0.1.0
 * @category drivers
 */
export interface Encoded {
  /** Stores the thread unless there is one of this id. The one that is there afterwards. */
  readonly open: (thread: ThreadRow) => Effect.Effect<ThreadRow, unknown>
  readonly get: (id: string) => Effect.Effect<Option.Option<ThreadRow>, unknown>
  /**
   * A page of the threads of a resource, or of all, and how many there are in all. The one that was opened, updated,
   * appended to, cut or whose message was replaced last comes first: in the order of these operations, whatever their times say.
   */
  readonly list: (page: {
    readonly resourceId: string | undefined
    readonly offset: number
    readonly limit: number
  }) => Effect.Effect<{ readonly rows: ReadonlyArray<ThreadRow>; readonly total: number }, unknown>
  /** Sets what is not `undefined`, and nothing else. The thread as it is then; none when there is no such thread. */
  readonly update: (
    id: string,
    change: {
      readonly title: string | undefined
      readonly metadata: string | undefined
      readonly updatedAt: number
    }
  ) => Effect.Effect<Option.Option<ThreadRow>, unknown>
  /** Removes the thread, its messages and the blocks of its runs. Whether there was one. */
  readonly delete: (id: string) => Effect.Effect<boolean, unknown>
  /**
   * Gives a run its block in a thread: one more than the highest block of the thread, from 1; a run that has a block keeps it. The
   * thread does not count as changed. The block; none when there is no such thread.
   */
  readonly startRun: (threadId: string, runId: string) => Effect.Effect<Option.Option<number>, unknown>
  /**
   * Stores messages at the end of the blocks of their runs, in this order, with `now` as the time at which they were created. A
   * run without a block gets one, as in `startRun`; messages with `runId: null` that follow each other get a new block behind all others. A message
   * whose id the thread has already takes over everything but the place of that one. `now` becomes the thread's
   * `updatedAt`. The places, in the order given; none, and nothing is stored, when there is no such thread.
   */
  readonly append: (
    threadId: string,
    messages: ReadonlyArray<NewMessageRow>,
    now: number
  ) => Effect.Effect<Option.Option<ReadonlyArray<Place>>, unknown>
  /**
   * Messages in order of `block`, in a block of `sequence`; none when there is no such thread. With `last` (at least 1) those from the nearest
   * message of role `user` at or before the first of the `last` newest; when there is none, all.
   */
  readonly messages: (
    threadId: string,
    last: number | undefined
  ) => Effect.Effect<ReadonlyArray<MessageRow>, unknown>
  /**
   * The message of role `tool` with the highest `sequence` whose `content` holds this text somewhere, exactly, and whose `sequence` is below
   * `before`, when that is given; none when there is no such message.
   */
  readonly findTool: (
    threadId: string,
    text: string,
    before: number | undefined
  ) => Effect.Effect<Option.Option<MessageRow>, unknown>
  /**
   * Compare and set: gives a message this `content` if it has that of `expected`, and nothing else. `now` becomes the thread's
   * `updatedAt` then. Whether it had it.
   */
  readonly replace: (
    threadId: string,
    id: string,
    expected: string,
    content: string,
    now: number
  ) => Effect.Effect<boolean, unknown>
  /**
   * Removes the messages of a thread that stand behind the message of this id: in a later block, or in its block with a higher
   * `sequence`; `now` becomes the thread's `updatedAt` then. Whether there is such a message; when there is none nothing changes.
   */
  readonly deleteAfter: (threadId: string, id: string, now: number) => Effect.Effect<boolean, unknown>
  /**
   * The objectives of threads. A driver without them does everything else; a thread has no objective then, and whoever sets one
   * fails. `ThreadStoreConformance.objectiveCases` say whether they do what is told here.
   */
  readonly objectives?: Objectives
}
