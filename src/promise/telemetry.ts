/** Where the traces and metrics of a container go. */
import * as Layer from "effect/Layer"
import { Telemetry } from "../agent/telemetry/Telemetry.js"
import { type TelemetryOptions as Options, settingsOf } from "../agent/telemetry/telemetryOptions.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { checkOptions, read } from "../protocol/options.js"

/**
 * Where the traces and metrics of a container go, and what they tell.
 *
 * @since 0.1.0
 * @category models
 */
export interface TelemetryOptions extends Options {
  /**
   * What exports them: what `NodeSdk.layer(() => ({ resource, spanProcessor, metricReader }))` of `@effect/opentelemetry` gives.
   * It is built with the container, which flushes and ends it when it is shut down; when it cannot be built, every run
   * rejects with its error.
   */
  readonly layer: Layer.Layer<never, unknown>
}

/** Says nothing of what the layer needs: the type of the option does. */
const isLayer = (value: unknown): boolean => Layer.isLayer(value)

/** The layer of these options. Throws `InvalidConfiguration`, which names the option and the remedy. */
export const telemetryLayer = (options: TelemetryOptions): TelemetryOptions["layer"] => {
  const kinds = { layer: read, captureContent: read, contentLimit: read }
  checkOptions("`telemetry`", options, { kinds }, "telemetry")
  const { layer, ...told } = options
  if (!isLayer(layer)) {
    throw new InvalidConfiguration({
      field: "telemetry.layer",
      message: "`telemetry.layer` is no layer. Give what NodeSdk.layer of @effect/opentelemetry makes."
    })
  }
  return Layer.merge(layer, Layer.succeed(Telemetry, settingsOf(told, "telemetry.")))
}
