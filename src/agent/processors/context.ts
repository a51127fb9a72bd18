/** What hooks know of their run, and how they stop it. */
import * as Effect from "effect/Effect"
import type { Tripwire } from "../../output/FullOutput.js"
import { refuseUnknown } from "../../protocol/options.js"
import { messageOf, wellFormed } from "../../protocol/safeJson.js"
import type { DataPart } from "../../tool/ToolContext.js"
import type { AbortOptions, Processor, ProcessorContext, ProcessorFacts } from "./definition.js"

/** A processor of a run, and its state. */
export interface Bound {
  readonly processor: Processor
  readonly state: ProcessorFacts["state"]
}

/** What hooks of all processors know, and whom they tell. */
export interface Scene extends Omit<ProcessorFacts, "state"> {
  /** Somebody stops it. */
  readonly trip: (tripwire: Tripwire) => void
  readonly writeData: (part: DataPart) => void
}

/** Nobody comes back from here. Interruptible, also where its caller is not. */
const stopped = Effect.interruptible(Effect.async<never>(() => undefined))

const isData = (part: DataPart): boolean => typeof part?.type === "string" && part.type.startsWith("data-")

/** The context of one processor: one object for as many calls of its hooks as there are. */
export class HookContext implements ProcessorContext {
  readonly runId: string
  readonly agentId: string
  readonly stepNumber: number
  readonly retryCount: number
  readonly requestContext: ProcessorFacts["requestContext"]
  readonly messages: ProcessorFacts["messages"]
  readonly state: ProcessorFacts["state"]
  private readonly processorId: string

  constructor(
    private readonly scene: Scene,
    { processor, state }: Bound
  ) {
    this.runId = scene.runId
    this.agentId = scene.agentId
    this.stepNumber = scene.stepNumber
    this.retryCount = scene.retryCount
    this.requestContext = scene.requestContext
    this.messages = scene.messages
    this.state = state
    this.processorId = processor.id
  }

  /** Stops it at once: recorded here, whatever the caller does then. */
  readonly trip = (reason: string, options: AbortOptions = {}): void => {
    refuseUnknown("`abort`", options, ["retry", "metadata"])
    this.scene.trip({
      reason: wellFormed(typeof reason === "string" ? reason : messageOf(reason)),
      ...(options.retry === undefined ? {} : { retry: options.retry === true }),
      ...(options.metadata === undefined ? {} : { metadata: options.metadata }),
      processorId: this.processorId
    })
  }

  /** Puts a `data-*` chunk on the stream. Throws a `TypeError` when it is none. */
  readonly write = (part: DataPart): void => {
    if (!isData(part)) throw new TypeError('`writeData` takes parts whose `type` begins with "data-".')
    this.scene.writeData(part)
  }

  readonly abort = (reason: string, options?: AbortOptions): Effect.Effect<never> =>
    Effect.suspend(() => {
      this.trip(reason, options)
      return stopped
    })

  readonly writeData = (part: DataPart): Effect.Effect<void> => Effect.sync(() => this.write(part))
}

/** Whoever writes for plain code needs a context that does without effects. Every context is one. */
export const plainContext = (context: ProcessorContext): HookContext => {
  if (context instanceof HookContext) return context
  throw new TypeError("A processor was called with a context that is not of a run.")
}
