/** What may be told of a failure of `@effect/ai`: its own messages quote addresses, bodies and what could not be read. */

import * as AiError from "@effect/ai/AiError"
import { ModelError } from "../../protocol/Errors.js"
import { describe, type FailureInfo } from "../failureInfo.js"
import { isPassingStatus } from "../failureKind.js"

/** Where it failed. */
export interface Place {
  readonly reason: "request" | "stream"
  readonly provider: string
  readonly modelId: string
}

const requestFailures = {
  Transport: "The provider could not be reached, or the connection broke off.",
  Encode: "The request could not be encoded.",
  InvalidUrl: "The address of the provider is no valid URL."
} as const

const responseFailures = {
  StatusCode: undefined,
  Decode: "The provider sent something that could not be read.",
  EmptyBody: "The provider sent no body."
} as const

/** Descriptions quote from their second line on. */
const firstLine = (description: string | undefined): string | undefined =>
  description?.split("\n", 1)[0]?.replace(/:\s*$/, ".")

const infoOf = (error: AiError.AiError): FailureInfo => {
  switch (error._tag) {
    case "HttpRequestError":
      return describe({
        message: requestFailures[error.reason],
        isRetryable: error.reason === "Transport"
      })
    case "HttpResponseError": {
      const { headers: responseHeaders, status: statusCode } = error.response
      const told = { message: responseFailures[error.reason], statusCode, responseHeaders }
      return describe(
        error.reason === "StatusCode" ? { ...told, isRetryable: isPassingStatus(statusCode) } : told
      )
    }
    case "MalformedOutput":
      return describe(firstLine(error.description) ?? responseFailures.Decode)
    case "MalformedInput":
    case "UnknownError":
      return describe(firstLine(error.description))
  }
}

/** A failure of any kind as the one error of the port. */
export const toModelError = (cause: unknown, place: Place): ModelError =>
  new ModelError({ ...place, ...(AiError.isAiError(cause) ? infoOf(cause) : describe(cause)), cause })
