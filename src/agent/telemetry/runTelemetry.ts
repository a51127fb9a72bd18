/** One run, as traces have it: `invoke_agent {agent}`, with its model calls and tools below. */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Tracer from "effect/Tracer"
import type { AnsweredCall } from "../../model/Answer.js"
import type { LanguageModel, ToolDefinition } from "../../model/ModelPort.js"
import type { Message } from "../../protocol/Message.js"
import type { Usage } from "../../protocol/tokens.js"
import type { ToolOutcome } from "../../tool/ToolOutcome.js"
import { begin, type Call, type Chat, contentAttributes, usageAttributes } from "./chat.js"
import { messagesContent } from "./contents.js"
import { attributes, finishReason, providerName } from "./names.js"
import {
  done,
  type Ending,
  endingOf,
  parentOf,
  spansOf,
  stopped,
  type Traced,
  tell,
  within
} from "./spans.js"
import { beginTool, endTool, failedWith } from "./toolSpans.js"

/** What is known of a run when it begins. */
export interface RunFacts {
  readonly runId: string
  readonly threadId: string | undefined
  /** The model that is asked first. */
  readonly model: LanguageModel
  /** What was handed to it; asked for when contents are told. */
  readonly messages: () => ReadonlyArray<Message>
}

/** What is known of it when it ends. */
export interface RunResult {
  readonly reason: string
  readonly usage: Usage
  readonly ending: Ending
  /** What it has said; asked for when contents are told. */
  readonly text: () => string
}

const capture = (
  { settings }: Traced["spans"],
  name: string,
  messages: () => ReadonlyArray<Message>,
  finish?: string
) =>
  settings.captureContent
    ? contentAttributes({ [name]: messagesContent(messages(), settings.contentLimit, finish) })
    : {}

export class RunTelemetry {
  private tools: Map<AnsweredCall, Tracer.Span> | undefined

  /** `undefined`: nobody listens. */
  constructor(readonly traced: Traced | undefined) {}

  /** The run is ready. */
  begun({ messages, model, runId, threadId }: RunFacts): void {
    const { traced } = this
    if (traced === undefined) return
    tell(traced.span, {
      [attributes.runId]: runId,
      [attributes.conversationId]: threadId,
      [attributes.provider]: providerName(model.provider),
      [attributes.requestModel]: model.modelId,
      ...capture(traced.spans, attributes.inputMessages, messages)
    })
  }

  /** A model is asked. */
  chat(call: Call, clock: Clock.Clock): Chat {
    return begin(call, clock, this.traced)
  }

  /** The execution of a tool in its span, which ends when the call has its outcome, whatever the tool does. */
  tool<A, E, R>(
    tool: ToolDefinition,
    call: AnsweredCall,
    executing: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> {
    const { traced } = this
    if (traced === undefined) return executing
    const { toolCallId } = call.chunk.payload
    const span = beginTool(traced.spans, traced.span, { tool, toolCallId, args: call.input })
    this.tools ??= new Map()
    this.tools.set(call, span)
    return within(executing, span)
  }

  /** A call has its outcome. */
  settled(call: AnsweredCall, { chunk }: ToolOutcome): void {
    const span = this.tools?.get(call)
    if (this.traced === undefined || span === undefined) return
    this.tools?.delete(call)
    const { spans } = this.traced
    if (chunk.type === "tool-error") spans.end(span, failedWith(chunk.payload.error))
    else endTool(spans, span, chunk.type === "tool-result" ? chunk.payload.result : undefined)
  }

  /** The run is over, and so is whatever it has begun. */
  ended({ ending, reason, text, usage }: RunResult): void {
    const { traced } = this
    if (traced === undefined || traced.span.status._tag === "Ended") return
    const finish = finishReason(reason)
    tell(traced.span, {
      [attributes.finishReasons]: [finish],
      ...usageAttributes(usage),
      ...(traced.spans.settings.captureContent ? this.output(text(), finish) : {})
    })
    this.close(ending)
  }

  private output(text: string, finish: string) {
    const { traced } = this
    if (traced === undefined || text === "") return {}
    const message: Message = { role: "assistant", content: [{ type: "text", text }] }
    return capture(traced.spans, attributes.outputMessages, () => [message], finish)
  }

  /** Ends the span of a run that has not told its end. */
  close(ending: Ending = stopped): void {
    const { tools, traced } = this
    if (traced === undefined) return
    // A call without an outcome is waited for no more.
    for (const span of tools?.values() ?? []) traced.spans.end(span, ending._tag === "Done" ? done : stopped)
    this.tools = undefined
    traced.spans.end(traced.span, ending)
  }
}

const silent = new RunTelemetry(undefined)

/** Whose run it is. */
export interface Invoked {
  readonly id: string
  readonly name: string
  readonly description: string | undefined
}

/** A turn of a stream of several. */
export interface TurnOf {
  /** What its turns share: the span that the first of them has begun below; `undefined` as long as none has. */
  readonly answered: { outer: Option.Option<Tracer.AnySpan> | undefined }
  /** What it answers to: nothing, when somebody has just asked for it. */
  readonly settled: ReadonlyArray<unknown>
}

/**
 * Makes a run ready in its span, below the one that is current; it is handed to whoever makes it ready, who ends it. A run that
 * cannot begin ends it at once. Later turns stand beside the first.
 */
export const observed = <A, E, R>(
  agent: Invoked,
  turn: TurnOf | undefined,
  prepare: (telemetry: RunTelemetry) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.withFiberRuntime<A, E, R>(fiber => {
    const spans = spansOf(fiber)
    if (spans === undefined) return prepare(silent)
    const outer = turn?.answered.outer ?? Option.none()
    const parent = parentOf(fiber) ?? Option.getOrUndefined(outer)
    const span = spans.begin({
      name: `invoke_agent ${agent.name}`,
      kind: "internal",
      parent,
      mayHaveOuter: turn === undefined || turn.settled.length === 0,
      attributes: {
        [attributes.operation]: "invoke_agent",
        [attributes.agentId]: agent.id,
        [attributes.agentName]: agent.name,
        [attributes.agentDescription]: agent.description
      }
    })
    if (turn !== undefined) turn.answered.outer ??= span.parent
    const telemetry = new RunTelemetry({ spans, span })
    return within(prepare(telemetry), span).pipe(
      Effect.onError(cause => Effect.sync(() => telemetry.close(endingOf(cause))))
    )
  })
