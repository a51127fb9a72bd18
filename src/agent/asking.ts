/** Begins a model call: its chunks arrive in the inbox of the run. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Answer from "../model/Answer.js"
import type { ModelRequest } from "../model/ModelPort.js"
import type { ModelError } from "../protocol/Errors.js"
import { startReading } from "./reading.js"
import { fork, own, type Run } from "./run.js"

/** A model call in progress. */
export interface Asked {
  readonly answer: Answer.Answer
  readonly request: ModelRequest
  /** How it ended; set when everything of the answer is in the inbox. */
  outcome: { readonly failure: ModelError | undefined } | undefined
}

const requestOf = <R>(run: Run<R>): ModelRequest => {
  const { includeRawChunks, modelSettings, providerOptions, toolChoice } = run.settings
  return {
    messages: [...run.instructions, ...run.input, ...run.added],
    tools: run.definitions,
    includeRawChunks: includeRawChunks === true,
    ...(toolChoice === undefined ? {} : { toolChoice }),
    ...(modelSettings === undefined ? {} : { settings: modelSettings }),
    ...(providerOptions === undefined ? {} : { providerOptions })
  }
}

/** Begins the next call; the run owns what it starts. */
export const ask = <R>(run: Run<R>): Asked => {
  const request = requestOf(run)
  const answer = Answer.make({
    runId: run.runId,
    messageId: run.messageId,
    ids: run.ids,
    makeCallId: () => run.makeId("call"),
    includeRawChunks: request.includeRawChunks,
    emit: run.emit
  })
  answer.request = { provider: run.model.provider, modelId: run.model.modelId }
  const asked: Asked = { answer, request, outcome: undefined }
  run.inbox.awaitText()
  const controller = new AbortController()
  const { includeRequestBody = false } = run.settings
  const stop = startReading({
    model: run.model,
    request,
    answer,
    inbox: run.inbox,
    includeRequestBody,
    signal: controller.signal,
    runPromise: effect =>
      new Promise((resolve, reject) => {
        const told = Effect.matchCause(effect, {
          onFailure: cause => reject(Cause.squash(cause)),
          onSuccess: resolve
        })
        fork(run, told)
      }),
    onEnd: failure => {
      release()
      asked.outcome = { failure }
      run.inbox.notify()
    }
  })
  const release = own(run, {
    stop: reason => {
      controller.abort(reason)
      stop()
    }
  })
  return asked
}
