/** Which thread a run belongs to. */
import type { Entry } from "../protocol/Conversation.js"
import type { ThreadStore, ThreadTurn, WhenBusy } from "../storage/ThreadStore.js"
import { lastMessagesOf, whenBusyOf } from "./checkOptions.js"
import type { MemoryOptions, MemorySettings } from "./RunOptions.js"

/** The thread of one run. */
export interface RunThread {
  readonly store: ThreadStore["Type"]
  readonly id: string
  readonly resourceId: string
  readonly title: string | undefined
  readonly metadata: Exclude<MemoryOptions["thread"], string>["metadata"]
  readonly lastMessages: number
  /** The message that the run goes on behind. */
  readonly after: string | undefined
  readonly whenBusy: WhenBusy
  /** Its turn, from when it has it. */
  turn: ThreadTurn | undefined
  /** What was handed to the run, before it is brought together with what the thread holds. */
  entries: ReadonlyArray<Entry>
  /** How many of the messages that the run added are stored. */
  stored: number
}

export const makeThread = (
  store: ThreadStore["Type"],
  { after, resource, thread, ...settings }: MemoryOptions,
  agent: MemorySettings | undefined,
  entries: ReadonlyArray<Entry>,
  isFirst: boolean
): RunThread => {
  const { id, metadata, title } = typeof thread === "string" ? { id: thread } : { ...thread }
  return {
    store,
    id,
    resourceId: resource,
    title,
    metadata,
    lastMessages: lastMessagesOf(agent, settings),
    // What the turn before has said is not to go.
    after: isFirst ? after : undefined,
    // A turn that answers tasks was requested by no caller who could come again.
    whenBusy: isFirst ? whenBusyOf(agent, settings) : "queue",
    turn: undefined,
    entries,
    stored: 0
  }
}
