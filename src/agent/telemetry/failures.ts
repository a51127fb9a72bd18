/** What a span tells of a failure. */
import {
  InvalidStepInput,
  InvalidStepOutput,
  InvalidToolArguments,
  InvalidToolOutput,
  ModelError,
  StorageError,
  ToolFailed
} from "../../protocol/Errors.js"
import { isRecord, messageOf } from "../../protocol/safeJson.js"

/** A result that says of itself that it is an error, in the word of the conventions. */
export class ErrorResult {
  readonly _tag = "tool_error"
  readonly message = "The result says that it is an error."
}

/** What kind of failure it was, in one word of few: a status, a tag, the name of a class. */
export const errorType = (error: unknown): string => {
  if (error instanceof ModelError) {
    if (error.statusCode !== undefined) return String(error.statusCode)
    return error.reason === "timeout" || error.reason === "incomplete" ? error.reason : "ModelError"
  }
  if (isRecord(error) && typeof error["_tag"] === "string") return error["_tag"]
  return error instanceof Error ? error.name : "_OTHER"
}

/** Without what it quotes of arguments and results. */
const unquoted = (error: unknown): string => {
  if (error instanceof InvalidToolArguments) return `Invalid arguments for tool "${error.toolName}".`
  if (error instanceof InvalidToolOutput) return `Tool "${error.toolName}" returned a wrong output.`
  if (error instanceof InvalidStepInput) return `Step "${error.stepId}" was given a wrong input.`
  if (error instanceof InvalidStepOutput) return `Step "${error.stepId}" gave a wrong output.`
  // What is thrown and is no error may be anything.
  if (error instanceof ToolFailed) return `Tool "${error.toolName}" failed with something that is no error.`
  return messageOf(error)
}

/** Where it happened, without the message, which stands before. */
const framesOf = (error: unknown): string => {
  if (!(error instanceof Error) || typeof error.stack !== "string") return ""
  return error.stack
    .split("\n")
    .filter(line => /^\s+at /.test(line))
    .map(line => `\n${line}`)
    .join("")
}

const isOwn = (error: unknown): boolean => error instanceof ModelError || error instanceof StorageError

/**
 * The failure as a span shows it: name, message, and where. Its cause is not told: of a failed request it holds headers and
 * body.
 */
export const shown = (error: unknown, mayQuote: boolean): Error => {
  const told = new Error(mayQuote ? messageOf(error) : unquoted(error))
  told.name = error instanceof Error ? error.name : errorType(error)
  told.stack = `${told.name}: ${told.message}${isOwn(error) ? "" : framesOf(error)}`
  return told
}
