/** Begins a model call: one fiber reads the answer, and its chunks arrive in the inbox of the run. */
import * as Effect from "effect/Effect"
import * as Answer from "../model/Answer.js"
import type { ModelRequest } from "../model/ModelPort.js"
import type { ModelError } from "../protocol/Errors.js"
import { readAnswer } from "./reading.js"
import { fork, type Run } from "./run.js"

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

/** Begins the next call; its fiber belongs to the run. */
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
  const reading = readAnswer({
    model: run.model,
    request,
    answer,
    inbox: run.inbox,
    controller,
    includeRequestBody
  })
  const settle = (failure: ModelError | undefined): void => {
    asked.outcome = { failure }
    run.inbox.notify()
  }
  fork(run, controller, Effect.match(reading, { onFailure: settle, onSuccess: () => settle(undefined) }))
  return asked
}
