/** What may be told of a failure that came from a provider. */
import * as Predicate from "effect/Predicate"
import { property } from "../protocol/foreignValue.js"
import { wellFormed } from "../protocol/safeJson.js"
import { type FailureKind, kindOf } from "./failureKind.js"

export interface FailureInfo extends FailureKind {
  readonly message: string
  /** Milliseconds. */
  readonly retryAfter?: number
}

const header = (headers: unknown, name: string): string | undefined => {
  if (!Predicate.isRecord(headers)) return undefined
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  return typeof found === "string" && found.trim() !== "" ? found : undefined
}

/** A date counts from the provider's own clock, which its answer tells; ours may differ. */
const retryAfter = (headers: unknown): number | undefined => {
  const milliseconds = Number(header(headers, "retry-after-ms") ?? Number.NaN)
  if (milliseconds >= 0) return milliseconds
  const text = header(headers, "retry-after")
  if (text === undefined) return undefined
  const seconds = Number(text)
  const wait = Number.isNaN(seconds)
    ? Date.parse(text) - Date.parse(header(headers, "date") ?? "")
    : seconds * 1000
  return wait >= 0 ? wait : undefined
}

/** These quote what they could not read, that is the body, in their messages. */
const quotingErrors: Readonly<Record<string, string>> = {
  AI_JSONParseError: "The provider sent something that is no JSON.",
  AI_TypeValidationError: "The provider sent JSON of an unexpected shape."
}

/**
 * Message, status, whether to try again and after what time. A message is one that was meant as one: an object is never printed, as it may
 * hold headers or a body, and stacks that some transports append to a message are cut off.
 */
export const describe = (failure: unknown): FailureInfo => {
  const [name, message] = ["name", "message"].map(key => property(failure, key))
  const wait = retryAfter(property(failure, "responseHeaders"))
  const kind = kindOf(failure)
  const quoted = typeof name === "string" ? quotingErrors[name] : undefined
  const said = quoted ?? (typeof failure === "string" ? failure : typeof message === "string" ? message : "")
  const [sentence = ""] = said.split(/\n\s+at /, 1)
  const fallback =
    kind.statusCode === undefined
      ? "The model call failed."
      : `The model call failed with status ${kind.statusCode}.`
  return {
    message: sentence.trim() === "" ? fallback : wellFormed(sentence),
    ...kind,
    ...(wait === undefined ? {} : { retryAfter: wait })
  }
}
