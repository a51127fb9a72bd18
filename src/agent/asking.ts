/** Begins a model call: one fiber reads the answer, and its chunks arrive in the inbox of the run. */
import { Effect, type Exit } from "effect"
import * as Answer from "../model/Answer.js"
import type { ModelRequest } from "../model/LanguageModel.js"
import type { ModelError } from "../protocol/Errors.js"
import { fork, type Run } from "./Run.js"
import { readAnswer } from "./reading.js"

/** A model call in progress. */
export interface Asked {
  readonly answer: Answer.Answer
  readonly request: ModelRequest
  /** Set when everything of the answer is in the inbox. */
  exit: Exit.Exit<void, ModelError> | undefined
}

const requestOf = (run: Run<unknown>): ModelRequest => {
  const { includeRawChunks, modelSettings, providerOptions, toolChoice } = run.settings
  return {
    messages: [...run.instructions, ...run.input, ...run.added],
    tools: Array.from(run.tools.values(), tool => tool.definition),
    includeRawChunks: includeRawChunks === true,
    ...(toolChoice === undefined ? {} : { toolChoice }),
    ...(modelSettings === undefined ? {} : { settings: modelSettings }),
    ...(providerOptions === undefined ? {} : { providerOptions })
  }
}

/** The call; its fiber belongs to the run. */
export const ask = (run: Run<unknown>): Effect.Effect<Asked> =>
  Effect.suspend(() => {
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
    const asked: Asked = { answer, request, exit: undefined }
    const reading = readAnswer(
      run.model,
      request,
      answer,
      run.inbox,
      run.settings.includeRequestBody === true
    )
    const settled = Effect.map(Effect.exit(reading), exit => {
      asked.exit = exit
      run.inbox.notify()
    })
    return Effect.as(fork(run, settled), asked)
  })
