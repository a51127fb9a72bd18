/**
 * What traces of agents tell. Spans and metrics need no setting: they are made wherever somebody listens, which is where a
 * tracer is provided, for example by `NodeSdk.layer` of `@effect/opentelemetry`. Contents are told when this asks for them.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { InvalidConfiguration } from "../../protocol/Errors.js"
import { refuseUnknown } from "../../protocol/options.js"

/** What traces tell beside what happened. @since 0.1.0 @category models */
export interface TelemetryOptions {
  /**
   * Whether spans carry contents: instructions, messages, arguments and results of tools, and what errors of tools quote of
   * them. Default false: they may hold what a backend of traces must not know. Headers and provider options are never told.
   */
  readonly captureContent?: boolean
  /**
   * Characters of one attribute of contents, at least 256. Of a longer conversation the newest messages are told, of a longer
   * text the beginning. Default 32 768.
   */
  readonly contentLimit?: number
}

/** The same, with every default filled in. @since 0.1.0 @category models */
export type Settings = Required<TelemetryOptions>

/** @since 0.1.0 @category constants */
export const defaults: Settings = { captureContent: false, contentLimit: 32_768 }

/** The settings; without being provided, {@link defaults}. @since 0.1.0 @category references */
export class Telemetry extends Context.Reference<Telemetry>()("eddy/Telemetry", {
  defaultValue: (): Settings => defaults
}) {}

/** Settings with their defaults. Throws `InvalidConfiguration`, which names the option and the remedy. */
export const settingsOf = (options: TelemetryOptions, prefix = ""): Settings => {
  refuseUnknown("Telemetry", options, ["captureContent", "contentLimit"])
  const { captureContent = defaults.captureContent, contentLimit = defaults.contentLimit } = options
  const refuse = (option: string, given: unknown, remedy: string): never => {
    const field = `${prefix}${option}`
    throw new InvalidConfiguration({ field, message: `\`${field}\` is ${String(given)}. ${remedy}` })
  }
  if (typeof captureContent !== "boolean")
    refuse("captureContent", captureContent, "Give true or false, or leave it out for false.")
  if (!Number.isInteger(contentLimit) || contentLimit < 256)
    refuse(
      "contentLimit",
      contentLimit,
      `Give a whole number of at least 256, or leave it out for ${defaults.contentLimit}.`
    )
  return { captureContent, contentLimit }
}

/**
 * Telemetry with these options. Fails with `InvalidConfiguration`, which names the option, when one cannot work.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: TelemetryOptions = {}): Layer.Layer<never, InvalidConfiguration> =>
  Layer.effect(
    Telemetry,
    Effect.try({
      try: () => settingsOf(options),
      catch: cause =>
        cause instanceof InvalidConfiguration
          ? cause
          : new InvalidConfiguration({ field: "options", message: String(cause) })
    })
  )
