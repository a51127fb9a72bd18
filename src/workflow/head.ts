/** What a workflow says of itself. */
import type * as Duration from "effect/Duration"
import { at, checkOptions, type Kind, type Known, read, text } from "../protocol/options.js"
import { maybeRetries } from "../tool/background.js"
import type * as ToolSchema from "../tool/ToolSchema.js"
import { checked } from "./checking.js"
import type { Head } from "./Draft.js"
import { checkId, delayOf } from "./ofBody.js"

interface Options {
  readonly description?: string
  readonly input?: ToolSchema.Source
  readonly success?: ToolSchema.Source
  readonly retries?: number
  readonly retryDelay?: Duration.DurationInput
}

const known: Known = {
  kinds: { description: text, input: read, success: read, retries: read, retryDelay: read } satisfies Record<
    keyof Options,
    Kind
  >,
  places: { inputSchema: at("input"), outputSchema: at("success"), retryDelayMs: at("retryDelay") }
}

/** Throws `InvalidConfiguration`. */
export const headOf = (id: string, options: Options): Head => {
  checkId("A workflow", id)
  checkOptions(`Workflow "${id}"`, options, known)
  const { description, input, retries, retryDelay, success } = options
  return {
    id,
    description,
    input: checked(input, `${id}.input`),
    inputSource: input,
    output: checked(success, `${id}.success`),
    pace: { retries: maybeRetries("retries", retries) ?? 0, delayMs: delayOf(retryDelay) ?? 1000 }
  }
}
