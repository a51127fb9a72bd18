/**
 * Errors as clients of OpenAI read them: an object, never a bare text.
 *
 * @since 0.1.0
 */

/** What stands under `error`. @since 0.1.0 @category models */
interface OpenAiError {
  readonly message: string
  readonly type: "invalid_request_error" | "server_error"
  readonly code: string | null
  readonly param: string | null
}

/** The body of an answer that is an error, and a frame of a stream that breaks off. @since 0.1.0 @category models */
export interface ErrorBody {
  readonly error: OpenAiError
}

/** How a response ended that has no answer: the status says it, where no byte was sent. @since 0.1.0 @category models */
export interface Failure {
  readonly status: 400 | 404 | 409 | 500
  readonly error: OpenAiError
  /** Send them: the client repeats what ended with 409 or 5xx, and a run that is repeated does again what its tools have done. */
  readonly headers: { readonly "x-should-retry": "false" }
}

const headers = { "x-should-retry": "false" } as const

/** The body has not the shape that it should have. @since 0.1.0 @category constructors */
export const invalidRequest = (field: string, message: string): Failure => ({
  status: 400,
  error: { message, type: "invalid_request_error", code: null, param: field === "" ? null : field },
  headers
})

/** There is no agent of this name. @since 0.1.0 @category constructors */
export const modelNotFound = (model: string): Failure => ({
  status: 404,
  error: {
    message: `The model "${model}" does not exist. GET /models lists those that do.`,
    type: "invalid_request_error",
    code: "model_not_found",
    param: "model"
  },
  headers
})

/** The run failed. @since 0.1.0 @category constructors */
export const runFailed = (message: string): Failure => ({
  status: 500,
  error: { message, type: "server_error", code: null, param: null },
  headers
})

/** Somebody has stopped the run. @since 0.1.0 @category constructors */
export const runAborted: Failure = {
  status: 500,
  error: { message: "The run was aborted.", type: "server_error", code: "aborted", param: null },
  headers
}

/** The run waits for a decision, which this protocol has no word for. @since 0.1.0 @category constructors */
export const runSuspended = (
  runId: string,
  calls: ReadonlyArray<{ readonly toolCallId: string; readonly toolName: string }>
): Failure => {
  const named = calls.map(({ toolCallId, toolName }) => `"${toolName}" (${toolCallId})`).join(", ")
  return {
    status: 409,
    error: {
      message: `Run "${runId}" waits for a decision about ${named}, which this protocol cannot carry. Decide through the routes of the agent, or give it to clients that can.`,
      type: "invalid_request_error",
      code: "run_suspended",
      param: null
    },
    headers
  }
}
