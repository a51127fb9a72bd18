/** What telemetry may be told, checked. */
import { checkOptions, read, wrongValue } from "../../protocol/options.js"

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

/** What holds unless somebody says otherwise. @since 0.1.0 @category constants */
export const defaults: Settings = { captureContent: false, contentLimit: 32_768 }

/** Settings with their defaults. Throws `InvalidConfiguration`, which names the option, with what stands before it, and the remedy. */
export const settingsOf = (options: TelemetryOptions, prefix = ""): Settings => {
  checkOptions("Telemetry", options, { kinds: { captureContent: read, contentLimit: read } })
  const { captureContent = defaults.captureContent, contentLimit = defaults.contentLimit } = options
  if (typeof captureContent !== "boolean") {
    throw wrongValue(
      `${prefix}captureContent`,
      captureContent,
      "Give true or false, or leave it out for false."
    )
  }
  if (!Number.isInteger(contentLimit) || contentLimit < 256) {
    throw wrongValue(
      `${prefix}contentLimit`,
      contentLimit,
      `Give a whole number of at least 256, or leave it out for ${defaults.contentLimit}.`
    )
  }
  return { captureContent, contentLimit }
}
