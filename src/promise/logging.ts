/** Where the facade's log goes. */
import * as Cause from "effect/Cause"
import * as HashMap from "effect/HashMap"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"

/** Where the container's log goes. Each line has its message and what belongs to it. @since 0.1.0 @category models */
export interface EddyLogger {
  readonly debug: (message: string, ...details: ReadonlyArray<unknown>) => void
  readonly info: (message: string, ...details: ReadonlyArray<unknown>) => void
  readonly warn: (message: string, ...details: ReadonlyArray<unknown>) => void
  readonly error: (message: string, ...details: ReadonlyArray<unknown>) => void
}

/** A run that cannot begin rejects: whoever asked for it knows, and Effect need not log it too. */
const quiet = Layer.setUnhandledErrorLogLevel(Option.none())

/** Warnings and errors to standard error, where they are in nobody's way: a program's output goes to standard output. */
export const consoleLayer: Layer.Layer<never> = Layer.merge(
  Logger.replace(Logger.defaultLogger, Logger.withLeveledConsole(Logger.stringLogger)),
  quiet
)

const methodOf = (level: LogLevel.LogLevel): keyof EddyLogger => {
  switch (level._tag) {
    case "Fatal":
    case "Error":
      return "error"
    case "Warning":
      return "warn"
    case "Info":
      return "info"
    default:
      return "debug"
  }
}

/** Every line of the log, of any level: which ones to show is the logger's own affair. */
export const loggerLayer = (logger: EddyLogger): Layer.Layer<never> =>
  Layer.mergeAll(
    Logger.replace(
      Logger.defaultLogger,
      Logger.make(({ annotations, cause, logLevel, message }) => {
        const [text, ...details] = Array.isArray(message) ? message : [message]
        const known = HashMap.size(annotations) === 0 ? [] : [Object.fromEntries(annotations)]
        const reasons = Cause.isEmpty(cause) ? [] : [Cause.squash(cause)]
        logger[methodOf(logLevel)](String(text), ...details, ...known, ...reasons)
      })
    ),
    Logger.minimumLogLevel(LogLevel.All),
    quiet
  )
