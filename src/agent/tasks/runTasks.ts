/** The calls of a run that run in the background: what its model is told of them, and what of their outcomes it has seen. */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type * as Tracer from "effect/Tracer"
import type { IdleThread } from "../../background/answerListeners.js"
import {
  overrideField,
  promptOf,
  type Resolution,
  readOverride,
  splitArguments,
  withOverride
} from "../../background/resolution.js"
import type { AgentSettings } from "../../background/settings.js"
import type { Dispatched } from "../../background/TaskManager.js"
import type { RunDispatcher } from "../../background/ToolDispatcher.js"
import type { TakeApart } from "../../model/answerCalls.js"
import type { ToolDefinition } from "../../model/ModelPort.js"
import type { Message, ToolResultPart } from "../../protocol/Message.js"
import { isRecord } from "../../protocol/safeJson.js"
import type * as Usage from "../../protocol/tokens.js"
import type { Tool } from "../../tool/Tool.js"
import { settledIn } from "./outcomes.js"

/** What runs of one stream share: which outcomes were answered, and what was used for them. */
export class Answered {
  /** The span that all of them belong below; `undefined` as long as none has begun. */
  outer: Option.Option<Tracer.AnySpan> | undefined
  private readonly seen = new Set<string>()
  private readonly used = new Map<string, () => Usage.Usage>()
  private readonly outcomes = new Map<string, ToolResultPart>()
  private readonly open = new Map<string, Dispatched>()

  /** A run of the stream has dispatched this task. */
  began(dispatched: Dispatched): void {
    this.open.set(dispatched.taskId, dispatched)
  }

  /** Tasks of the stream that no model has answered to. */
  get unanswered(): Iterable<Dispatched> {
    return this.open.values()
  }

  /** The model was told the outcome of this task, and has answered. */
  add(taskId: string): void {
    this.seen.add(taskId)
    this.open.delete(taskId)
  }

  has(taskId: string): boolean {
    return this.seen.has(taskId)
  }

  /** What the conversation is to hold of a task that has settled. */
  settled(taskId: string, part: ToolResultPart | undefined): void {
    if (part !== undefined) this.outcomes.set(taskId, part)
  }

  outcomeOf(taskId: string): ToolResultPart | undefined {
    return this.outcomes.get(taskId)
  }

  /** What a task has used that no run has counted yet. */
  owes(taskId: string, used: () => Usage.Usage): void {
    this.used.set(taskId, used)
  }

  /** What these tasks have used: whoever asks counts it. */
  take(taskIds: Iterable<string>): ReadonlyArray<() => Usage.Usage> {
    return Array.from(taskIds).flatMap(id => {
      const used = this.used.get(id)
      this.used.delete(id)
      return used ?? []
    })
  }
}

/** A call that runs in the background. */
export interface TaskCall {
  readonly dispatched: Dispatched
  /** When a run that would finish waits for it no longer: milliseconds from then; `undefined`: it does not wait. */
  readonly waitTimeoutMs: number | undefined
  /** When the run would have finished but for it, first, in milliseconds of the run's clock. */
  waitedSince: number | undefined
  /**
   * `open`: the conversation holds the acknowledgement; `told`: it holds the outcome; `seen`: a model has answered to it.
   */
  state: "open" | "told" | "seen"
  /** Whether the thread knows of it. */
  isStored: boolean
}

/** Whether the task waits for a slot or runs. */
const isGoing = ({ dispatched }: TaskCall): boolean =>
  dispatched.outcome() === undefined && dispatched.task().status !== "suspended"

/** Whether a tool has an argument of its own where others have what the model says about the call. */
const hasOwnArgument = ({ inputSchema }: ToolDefinition): boolean =>
  isRecord(inputSchema) &&
  isRecord(inputSchema["properties"]) &&
  Object.hasOwn(inputSchema["properties"], overrideField)

/** What a model has answered to. */
interface Spoken {
  readonly input: ReadonlyArray<Message>
  readonly added: ReadonlyArray<Message>
  readonly thread: IdleThread | undefined
}

export class RunTasks<R> {
  readonly calls = new Map<string, TaskCall>()
  /** When the first was dispatched, in milliseconds of the run's clock. */
  since: number | undefined
  /** Whether somebody tells what is going, at every interval. */
  isReported = false
  /** How many calls there were when that was told after a step. */
  reported = 0
  private offers = new WeakMap<ReadonlyMap<string, Tool<string, R>>, Offer>()

  constructor(
    readonly dispatcher: RunDispatcher,
    readonly settings: AgentSettings | undefined,
    readonly services: Context.Context<R>,
    /** Of a run that belongs to an until-idle stream. */
    readonly answered: Answered | undefined
  ) {}

  /** The tools of a step, as its model is told of them, and what it is told about them. */
  offer(tools: ReadonlyMap<string, Tool<string, R>>, definitions: ReadonlyArray<ToolDefinition>): Offer {
    const known = this.offers.get(tools)
    if (known !== undefined) return known
    const eligible = new Set<string>()
    for (const [name, tool] of tools) {
      if (tool.call !== undefined && this.dispatcher.isEligible(tool)) eligible.add(name)
    }
    const offer: Offer =
      eligible.size === 0
        ? { definitions, prompt: undefined }
        : {
            definitions: definitions.map(definition =>
              eligible.has(definition.name) ? withOverride(definition) : definition
            ),
            prompt: promptOf([...eligible])
          }
    this.offers.set(tools, offer)
    return offer
  }

  /** Takes out of arguments what the model says about the call itself. */
  takeApart(tools: ReadonlyMap<string, Tool<string, R>>): TakeApart {
    return (toolName, written) => {
      const tool = tools.get(toolName)
      if (tool !== undefined && hasOwnArgument(tool.definition)) return { input: written, aside: undefined }
      return splitArguments(written)
    }
  }

  /** Where a call runs. */
  resolve(tool: Tool<string, R>, aside: unknown): Resolution {
    return this.dispatcher.resolve(tool, readOverride(aside))
  }

  /** Ids of the tasks that wait for a slot or run. */
  get active(): ReadonlyArray<string> {
    return Array.from(this.calls.values()).flatMap(call => (isGoing(call) ? call.dispatched.taskId : []))
  }

  /** Puts outcomes that have come into the conversation, in the place of the acknowledgements. */
  tell(added: Array<Message>): void {
    for (const [toolCallId, call] of this.calls) {
      // What was told may have been written anew since.
      const part = call.state === "seen" ? undefined : call.dispatched.outcome()
      if (part !== undefined && replace(added, toolCallId, part)) call.state = "told"
    }
  }

  /** A model has answered to the conversation as it is: also to outcomes of other runs' tasks. */
  see({ added, input, thread }: Spoken): void {
    for (const call of this.calls.values()) if (call.state === "told") call.state = "seen"
    const listeners = thread === undefined ? [] : this.dispatcher.answerListeners(thread)
    if (this.answered === undefined && listeners.length === 0) return
    const open = new Set(
      [...this.calls.values()].flatMap(({ dispatched, state }) => (state === "seen" ? [] : dispatched.taskId))
    )
    const ids = [...settledIn(input), ...settledIn(added)].filter(id => !open.has(id))
    for (const id of ids) this.answered?.add(id)
    for (const listener of listeners) listener(ids)
  }

  /** Settled calls that no model has answered to. */
  get unseen(): ReadonlyArray<TaskCall> {
    return [...this.calls.values()].filter(
      ({ dispatched, state }) => state !== "seen" && dispatched.outcome() !== undefined
    )
  }

  /** The calls in these messages are in the thread: their outcomes may take the place of what is there. */
  stored(messages: ReadonlyArray<Message>): Effect.Effect<void> {
    if (this.calls.size === 0) return Effect.void
    const ids = messages.flatMap(message =>
      message.role === "tool" ? message.content.map(({ toolCallId }) => toolCallId) : []
    )
    const calls = ids.flatMap(id => {
      const call = this.calls.get(id)
      return call === undefined || call.isStored ? [] : call
    })
    for (const call of calls) call.isStored = true
    // Also when the run is stopped meanwhile: nobody says it again.
    return Effect.uninterruptible(
      Effect.forEach(calls, ({ dispatched }) => dispatched.stored, {
        concurrency: "unbounded",
        discard: true
      })
    )
  }

  /** The run is over: what it did not store, nobody will. */
  get lost(): Effect.Effect<void> {
    const calls = [...this.calls.values()].filter(({ isStored }) => !isStored)
    return Effect.forEach(calls, call => call.dispatched.lost, { discard: true })
  }

  /** Tasks that a run waits for: one that is suspended waits itself, for somebody's decision. */
  get awaited(): ReadonlyArray<TaskCall> {
    return [...this.calls.values()].filter(call => call.waitTimeoutMs !== undefined && isGoing(call))
  }
}

/** What a model is told of tools that may run in the background. */
export interface Offer {
  readonly definitions: ReadonlyArray<ToolDefinition>
  readonly prompt: string | undefined
}

/** Puts an outcome where another one of the same call is; whether there was one. */
export const replace = (messages: Array<Message>, toolCallId: string, part: ToolResultPart): boolean => {
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index]
    if (message?.role !== "tool") continue
    const place = message.content.findIndex(other => other.toolCallId === toolCallId)
    if (place < 0) continue
    // It is there already.
    if (message.content[place]?.output === part.output) return true
    const content = [...message.content]
    content[place] = { ...part, toolName: content[place]?.toolName ?? part.toolName }
    messages[index] = { ...message, content }
    return true
  }
  return false
}
