/** Why a request gets no answer: a status, a sentence that a client may read, and the fields that it is about. */
import * as Data from "effect/Data"
import * as Predicate from "effect/Predicate"
import * as Errors from "../protocol/Errors.js"
import { clientOptions } from "./settings.js"

/** A field of a request that is wrong. */
export interface Issue {
  readonly field: string
  readonly message: string
}

/** A request that is answered with an error. Its message is for the client. */
export class Refusal extends Data.TaggedError("Refusal")<{
  readonly status: number
  readonly message: string
  readonly issues?: ReadonlyArray<Issue>
  /** Seconds. */
  readonly retryAfter?: number
}> {}

/** Unknown and foreign look the same. */
export const notFound = (what: string): Refusal => new Refusal({ status: 404, message: `${what} not found` })

/** Characters of a text in a refusal. Names of fields and values are the client's, and as long as it likes. */
const longestText = 1000

const shortened = (text: string): string =>
  text.length > longestText ? `${text.slice(0, longestText).toWellFormed()}…` : text

/** A request whose field is wrong. `summary` is for clients that read no issues. */
export const invalidField = (field: string, message: string, summary: string): Refusal => {
  const issue = { field: shortened(field), message: shortened(message) }
  return new Refusal({ status: 400, message: shortened(summary), issues: [issue] })
}

export const invalidBody = (field: string, message: string): Refusal =>
  invalidField(field, message, "Invalid request body")

export const invalidQuery = (field: string, message: string): Refusal =>
  invalidField(field, message, "Invalid query parameters")

/** A wrong option that a client may set is the client's mistake: the agent itself was checked when it was made. */
const isClientOption = (field: string): boolean =>
  [...clientOptions, "clientTools"].some(option => field === option || field.startsWith(`${option}.`))

/**
 * What a run, a task or a store failed with before anything was answered. A model that fails is no 5xx: clients repeat those,
 * and a run that is repeated does again what its tools have done.
 */
export const fromError = (error: unknown, exposed: boolean): Refusal => {
  if (error instanceof Refusal) return error
  const message = (hidden: string): string => (exposed && error instanceof Error ? error.message : hidden)
  if (error instanceof Errors.InvalidMessage) {
    // Of a list it begins with an index.
    const place = error.path === "" || error.path.startsWith("[") ? error.path : `.${error.path}`
    return invalidBody(`messages${place}`, error.message)
  }
  if (error instanceof Errors.InvalidConfiguration && isClientOption(error.field)) {
    return invalidBody(error.field, error.message)
  }
  if (Predicate.isTagged(error, "RunNotFound")) return notFound("Run")
  if (Predicate.isTagged(error, "ToolCallNotPending")) {
    return new Refusal({ status: 409, message: "This call waits for nobody." })
  }
  if (error instanceof Errors.ThreadNotFound) return notFound("Thread")
  if (error instanceof Errors.ThreadBusy) return new Refusal({ status: 409, message: error.message })
  if (error instanceof Errors.TaskNotFound) return notFound("Task")
  if (error instanceof Errors.InvalidTaskState) {
    return new Refusal({ status: 409, message: `The task is ${error.status}.` })
  }
  if (error instanceof Errors.InvalidResumeData) return invalidBody("resumeData", error.message)
  if (error instanceof Errors.TaskExecutorNotFound) {
    return new Refusal({ status: 409, message: "Nobody here can run this task." })
  }
  if (error instanceof Errors.ModelError) {
    return new Refusal({ status: 424, message: message("The model could not answer.") })
  }
  if (error instanceof Errors.RunTimedOut)
    return new Refusal({ status: 424, message: "The run took too long." })
  if (error instanceof Errors.RunAborted) return new Refusal({ status: 409, message: "The run was stopped." })
  if (error instanceof Errors.StorageError) {
    return new Refusal({ status: 503, message: message("The store could not be asked.") })
  }
  return new Refusal({ status: 500, message: message("The server could not do this.") })
}
