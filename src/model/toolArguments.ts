/** Arguments of a call, parsed once, when they are complete. */
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import { messageOf } from "../protocol/safeJson.js"

/** Empty text and `null` mean no arguments, which is `{}`. A provider may also send the parsed value. Left: what is wrong. */
export const parseArguments = (input: unknown): Either.Either<unknown, string> => {
  if (input === undefined || input === null) return Either.right({})
  if (typeof input !== "string") return Either.right(input)
  if (input.trim() === "") return Either.right({})
  return Either.try({ try: (): unknown => JSON.parse(input) ?? {}, catch: messageOf })
}

/** `args` of a chunk: only a record is one. */
export const argsOf = (input: unknown): { readonly args?: Record<string, unknown> } =>
  Predicate.isRecord(input) ? { args: input } : {}
