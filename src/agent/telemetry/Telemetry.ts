/**
 * What traces of agents tell. Spans and metrics need no setting: they are made wherever somebody listens, which is where a
 * tracer is provided, for example by `NodeSdk.layer` of `@effect/opentelemetry`. Contents are told when this asks for them.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { InvalidConfiguration } from "../../protocol/Errors.js"
import { checked } from "../checkOptions.js"
import { defaults, type Settings, settingsOf, type TelemetryOptions } from "./telemetryOptions.js"

export { defaults, type Settings, type TelemetryOptions } from "./telemetryOptions.js"

/** The settings; without being provided, {@link defaults}. @since 0.1.0 @category references */
export class Telemetry extends Context.Reference<Telemetry>()("eddy/Telemetry", {
  defaultValue: (): Settings => defaults
}) {}

/**
 * Telemetry with these options. Fails with `InvalidConfiguration`, which names the option, when one cannot work.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: TelemetryOptions = {}): Layer.Layer<never, InvalidConfiguration> =>
  Layer.effect(
    Telemetry,
    checked(() => settingsOf(options))
  )
