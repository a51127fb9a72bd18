/** A call of a model beside the conversation: of a judge, or of who writes a value. */
import * as Effect from "effect/Effect"
import * as Answer from "../../model/Answer.js"
import type { LanguageModel, ModelRequest } from "../../model/ModelPort.js"
import * as RunIds from "../../model/runIds.js"
import type { Chunk } from "../../protocol/Chunk.js"
import { squash } from "../../protocol/foreignValue.js"
import type { Inbox } from "./inbox.js"
import { startReading } from "./reading.js"
import type { CallFailure } from "./retrying.js"
import { fork, type Run } from "./run.js"
import type { SilenceWatch } from "./silence.js"

/** Runs the Effect of a model that answers with one, in a fiber of the run, until it is stopped. */
export class Beginning<R> {
  private stopFiber = (_: unknown): void => undefined

  constructor(private readonly run: Run<R>) {}

  readonly runPromise = <A, E>(effect: Effect.Effect<A, E>): Promise<A> =>
    new Promise((resolve, reject) => {
      const told = Effect.matchCause(effect, {
        onFailure: cause => reject(squash(cause)),
        onSuccess: resolve
      })
      this.stopFiber = fork(this.run, told)
    })

  stop(reason: unknown): void {
    this.stopFiber(reason)
  }
}

/** What is asked beside the conversation. */
export interface Aside {
  readonly model: LanguageModel
  readonly request: ModelRequest
  /** How often this model was asked the same before. */
  readonly retry: number
  /** Hears every chunk of the answer, none of which is told. */
  readonly hear: (chunk: Chunk) => void
  /** Holds the model back. */
  readonly inbox: Inbox
  readonly silence: SilenceWatch | undefined
}

const unwanted = new DOMException("Nobody waits for the answer any more.", "AbortError")

/** The whole answer of one call. What it uses counts into the step. Interrupted, it stops the model. */
export const askAside = <R>(
  run: Run<R>,
  { hear, inbox, model, request, retry, silence }: Aside
): Effect.Effect<Answer.Answer, CallFailure> =>
  Effect.async(resume => {
    const chat = run.telemetry.chat({ model, request, retry }, run.clock)
    const answer = Answer.make({
      runId: run.runId,
      messageId: run.messageId,
      ids: RunIds.make(),
      makeCallId: () => run.makeId("call"),
      includeRawChunks: false,
      emit: chunk => {
        chat.heard()
        hear(chunk)
      }
    })
    run.nested.push(() => answer.usage)
    const controller = new AbortController()
    const beginning = new Beginning(run)
    const stopReading = startReading({
      model: chat.model(run.runFork),
      request,
      answer,
      inbox,
      silence,
      processing: undefined,
      includeRequestBody: false,
      signal: controller.signal,
      runPromise: beginning.runPromise,
      onEnd: failure => {
        answer.close(failure === undefined)
        chat.ended(answer, failure)
        resume(failure === undefined ? Effect.succeed(answer) : Effect.fail(failure))
      },
      onDefect: thrown => resume(Effect.die(thrown))
    })
    return Effect.sync(() => {
      controller.abort(unwanted)
      beginning.stop(unwanted)
      stopReading()
      chat.halted(answer, unwanted)
    })
  })
