/**
 * What a server serves, seen through the little that it needs: agents by name, threads and background tasks. Both faces make
 * one; so can a test, or whoever serves something else that tells chunks.
 *
 * @since 0.1.0
 */
import type * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type * as Stream from "effect/Stream"
import type { RunOptions } from "../agent/RunOptions.js"
import type { TaskChunk, TaskFilter } from "../background/hub.js"
import type { Chunk } from "../protocol/Chunk.js"
import type { Input } from "../protocol/Conversation.js"
import type { Task } from "../protocol/Task.js"
import type { Reservation } from "../storage/RunStore.js"
import type { ListOptions, TaskPage } from "../storage/TaskStore.js"
import type { ThreadStore } from "../storage/ThreadStore.js"
import type { ClientOption } from "./settings.js"

/** What a request may say of a run, and what the server says of every run. @since 0.1.0 @category models */
export interface HostRunOptions extends Pick<RunOptions, Exclude<ClientOption, "tools"> | "clientTools"> {
  /** The id of the run. Default: a fresh one. */
  readonly runId?: string
  /** Whose the run is: stored with what of it is stored; a call that is decided is found among those of this resource only. */
  readonly resource?: string
  /** The thread that the run belongs to. `after`: the message that the run goes on behind. */
  readonly memory?: { readonly thread: string; readonly resource: string; readonly after?: string }
  /** Values of this request: what the client may set, and what the server says. */
  readonly requestContext?: Readonly<Record<string, unknown>>
  /** Milliseconds of `maxIdle`, when it is no boolean. */
  readonly untilIdle?: boolean | { readonly maxIdle: number }
  /** Stops the run: it tells its end. */
  readonly abortSignal: AbortSignal
}

/** A call that waits for somebody. @since 0.1.0 @category models */
export interface HostCall {
  readonly runId: string
  /** Absent where the run has one call that waits. */
  readonly toolCallId?: string
}

/** A run that waits for a decision about its calls. @since 0.1.0 @category models */
export interface HostSuspendedRun {
  readonly runId: string
  readonly threadId?: string
  readonly resourceId?: string
  readonly suspendedAt: Date
  readonly toolCalls: ReadonlyArray<{
    readonly toolCallId: string
    readonly toolName: string
    readonly args: unknown
    readonly requiresApproval: boolean
    readonly suspendPayload?: unknown
    /** What it must be resumed with, as JSON Schema. */
    readonly resumeSchema?: unknown
  }>
}

/** Which suspended runs. @since 0.1.0 @category models */
export interface HostSuspendedFilter {
  readonly runId?: string
  readonly threadId?: string
  readonly resourceId?: string
}

/**
 * An agent. Its streams are cold, and tell chunks as `Agent.stream` does: what is wrong with a request fails them before any
 * chunk.
 *
 * @since 0.1.0
 * @category models
 */
export interface HostAgent {
  readonly id: string
  readonly name: string
  readonly description: string | undefined
  readonly stream: (input: Input, options: HostRunOptions) => Stream.Stream<Chunk, unknown>
  /** Goes on with a call that was suspended. */
  readonly resume: (data: unknown, call: HostCall, options: HostRunOptions) => Stream.Stream<Chunk, unknown>
  /** Goes on with a call that waits for an approval. Without it nothing here can. */
  readonly decide?: (
    decision: { readonly approved: true } | { readonly approved: false; readonly reason?: string },
    call: HostCall,
    options: HostRunOptions
  ) => Stream.Stream<Chunk, unknown>
  /** Runs that wait, the oldest first. */
  readonly suspendedRuns?: (
    filter: HostSuspendedFilter
  ) => Effect.Effect<ReadonlyArray<HostSuspendedRun>, unknown>
}

/** Background tasks. @since 0.1.0 @category models */
export interface HostTasks {
  readonly get: (id: string) => Effect.Effect<Option.Option<Task>, unknown>
  readonly list: (options: ListOptions) => Effect.Effect<TaskPage, unknown>
  readonly stream: (filter: TaskFilter) => Stream.Stream<TaskChunk, unknown>
  readonly resume: (id: string, data: unknown) => Effect.Effect<Task, unknown>
  readonly cancel: (id: string) => Effect.Effect<Task, unknown>
}

/** Ids of runs, in the store that processes share. @since 0.1.0 @category models */
export interface HostRunIds {
  /** Takes the id for a run that starts, for so long. `false`: a run has it, or has had it lately. */
  readonly reserve: (
    reservation: Reservation,
    duration: Duration.DurationInput
  ) => Effect.Effect<boolean, unknown>
  /** Who has taken the id. */
  readonly reservation: (runId: string) => Effect.Effect<Option.Option<Reservation>, unknown>
  /** Gives the id back. */
  readonly release: (runId: string) => Effect.Effect<void, unknown>
}

/** What a server serves. @since 0.1.0 @category models */
export interface Host {
  /** By the name that paths have. */
  readonly agents: ReadonlyMap<string, HostAgent>
  readonly threads: Context.Tag.Service<ThreadStore> | undefined
  readonly tasks: HostTasks | undefined
  /** Without them an id is known to the process that runs it only. */
  readonly runIds?: HostRunIds | undefined
}

/** The agent of this name, or of this id. @since 0.1.0 @category lookups */
export const findAgent = (host: Host, name: string): HostAgent | undefined =>
  host.agents.get(name) ?? [...host.agents.values()].find(({ id }) => id === name)
