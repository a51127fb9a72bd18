/** The option `structuredOutput`: what it is, checked, and what a run makes of it. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { LanguageModel, ResponseFormat } from "../model/ModelPort.js"
import { schemaPrompt } from "../model/schemaPrompt.js"
import type { ErrorStrategy, Structured } from "../output/structured.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { at, checkOptions, flag, type Kind, type Known, oneOf, read, text } from "../protocol/options.js"
import { answerFormat } from "../tool/answerFormat.js"
import * as ToolSchema from "../tool/ToolSchema.js"

/**
 * Asks a run for a value beside its text: `object` of its output, and partial values as the text comes.
 *
 * @since 0.1.0
 * @category models
 */
export interface StructuredOutput<S extends ToolSchema.Source = ToolSchema.Source> {
  /**
   * What the value is: an Effect Schema, a Standard Schema that describes itself (zod 4, arktype), `{ schema, jsonSchema }`, or a
   * JSON Schema. The provider is bound to it, where it can be; roots that are no objects are put into one for it.
   */
  readonly schema: S
  /**
   * Writes the value from the final answer of the run, which then may be any text. It is retried as the other is. Default: the
   * answer itself is the value.
   */
  readonly model?: LanguageModel
  /** For whoever writes the value, beside the schema. */
  readonly instructions?: string
  /**
   * What becomes of a run that gives no valid value; the run itself succeeds all the same. `strict`: `object` and `generate` fail
   * with `StructuredOutputError`, which is logged as an error where nobody waits for them. `warn`: there is no value, which is
   * logged as a warning. `fallback`: the value is `fallbackValue`. Default `strict`.
   */
  readonly errorStrategy?: ErrorStrategy
  /** The value of `fallback`, as it is; only with that strategy. */
  readonly fallbackValue?: NoInfer<ToolSchema.Decoded<S>>
  /** Tells the model of the schema in its prompt, and binds the provider to none: for models that cannot be. Default false. */
  readonly jsonPromptInjection?: boolean
}

/** What a value that a run is asked for makes of the types of its output. @since 0.1.0 @category models */
export type OutputOf<S extends ToolSchema.Source> = [S] extends [never] ? unknown : ToolSchema.Decoded<S>

/** Options with a schema whose type is known. @since 0.1.0 @category models */
export interface WithStructuredOutput<S extends ToolSchema.Source> {
  readonly structuredOutput?: StructuredOutput<S>
}

/** The option, as a run needs it. */
export interface Structure extends Structured {
  readonly decode: (value: unknown) => Effect.Effect<unknown, ToolSchema.InvalidValue>
  /** What the provider of whoever writes the value is bound to. */
  readonly responseFormat: ResponseFormat | undefined
  /** What whoever writes it is told. */
  readonly prompt: string | undefined
  readonly model: LanguageModel | undefined
  readonly fallbackValue: unknown
}

type Read = Pick<Structure, "root" | "decode" | "decodeElement"> & {
  readonly responseFormat: ResponseFormat
  readonly told: string
}

const firstOf = (values: unknown): unknown => (Array.isArray(values) ? values[0] : undefined)

const elementDecoder = (source: ToolSchema.Source, decode: Read["decode"]): Structured["decodeElement"] => {
  const alone = (value: unknown) => Effect.map(decode([value]), firstOf)
  const element = ToolSchema.elementOf(source)
  if (element === undefined) return alone
  try {
    return ToolSchema.output(element, "structuredOutput.schema").decode
  } catch {
    // It does not stand alone, for example because it refers to the array.
    return alone
  }
}

/** Read once: a schema is made once, and asked for in every run. */
const known = new WeakMap<object, Read>()

const readSchema = (source: ToolSchema.Source): Read => {
  const before = known.get(source)
  if (before !== undefined) return before
  const { decode, jsonSchema } = ToolSchema.answer(source, "structuredOutput.schema")
  const isOurs =
    Predicate.hasProperty(source, "~standard") || Predicate.hasProperty(source, Symbol.for("effect/Schema"))
  const { key = "object", schema } = answerFormat(jsonSchema, isOurs)
  const made: Read = {
    root: key,
    decode,
    decodeElement: key === "elements" ? elementDecoder(source, decode) : () => Effect.fail("It is no array."),
    responseFormat: { type: "json", schema },
    told: schemaPrompt(key === "object" ? schema : jsonSchema)
  }
  known.set(source, made)
  return made
}

const refused = (field: string, message: string): InvalidConfiguration =>
  new InvalidConfiguration({ field: `structuredOutput.${field}`, message })

const knownOptions: Known = {
  kinds: {
    schema: read,
    model: read,
    instructions: text,
    errorStrategy: oneOf("strict", "warn", "fallback"),
    fallbackValue: read,
    jsonPromptInjection: flag
  } satisfies Record<keyof StructuredOutput, Kind>,
  places: { output: at("structuredOutput.schema"), fallback: at("structuredOutput.fallbackValue") }
}

/** Refuses a schema in the place of the option, and options of no known name or kind. Throws `InvalidConfiguration`. */
export const checkNames = (given: unknown): void => {
  if (ToolSchema.isSchema(given)) {
    throw new InvalidConfiguration({
      field: "structuredOutput",
      message: "`structuredOutput` is a schema. Write it as `structuredOutput: { schema }`."
    })
  }
  checkOptions("`structuredOutput`", given, knownOptions, "structuredOutput")
}

const check = (options: StructuredOutput): void => {
  checkNames(options)
  const { errorStrategy = "strict", model, schema } = options
  if ((typeof schema !== "object" && typeof schema !== "function") || schema === null) {
    throw refused(
      "schema",
      "`structuredOutput.schema` is missing. Give an Effect Schema, a zod schema, or a JSON Schema."
    )
  }
  const hasFallback = options.fallbackValue !== undefined
  if (errorStrategy === "fallback" && !hasFallback) {
    throw refused(
      "fallbackValue",
      '`errorStrategy: "fallback"` needs a `fallbackValue`. Give the value to fall back on.'
    )
  }
  if (errorStrategy !== "fallback" && hasFallback) {
    const message =
      '`fallbackValue` is used with `errorStrategy: "fallback"` only. Give that too, or leave it out.'
    throw refused("fallbackValue", message)
  }
  if (
    model !== undefined &&
    (!Predicate.hasProperty(model, "answer") || typeof model.answer !== "function")
  ) {
    throw refused("model", "`structuredOutput.model` is no language model. Give one, or leave it out.")
  }
}

/** Throws `InvalidConfiguration`. */
export const structureOf = (options: StructuredOutput | undefined): Structure | undefined => {
  if (options === undefined) return undefined
  check(options)
  const {
    errorStrategy = "strict",
    fallbackValue,
    instructions,
    jsonPromptInjection,
    model,
    schema
  } = options
  const { decode, decodeElement, responseFormat, root, told } = readSchema(schema)
  const prompt = [instructions ?? "", jsonPromptInjection === true ? told : ""].filter(text => text !== "")
  return {
    root,
    isApart: model !== undefined,
    errorStrategy,
    decode,
    decodeElement,
    responseFormat: jsonPromptInjection === true ? undefined : responseFormat,
    prompt: prompt.length === 0 ? undefined : prompt.join("\n\n"),
    model,
    fallbackValue
  }
}
