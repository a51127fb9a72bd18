/** Where the facade's log goes. */
import * as Cause from "effect/Cause"
import * as FiberRef from "effect/FiberRef"
import * as HashMap from "effect/HashMap"
import * as HashSet from "effect/HashSet"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"
import { squash } from "../protocol/foreignValue.js"
import { isOptions, type Kind } from "../protocol/options.js"

/** Where the container's log goes. Each line has its message and what belongs to it. @since 0.1.0 @category models */
export interface EddyLogger {
  readonly debug: (message: string, ...details: ReadonlyArray<unknown>) => void
  readonly info: (message: string, ...details: ReadonlyArray<unknown>) => void
  readonly warn: (message: string, ...details: ReadonlyArray<unknown>) => void
  readonly error: (message: string, ...details: ReadonlyArray<unknown>) => void
}

const methods: ReadonlyArray<keyof EddyLogger> = ["debug", "info", "warn", "error"]

/** What the option `logger` takes. */
export const loggerKind: Kind = {
  accepts: value => isOptions(value) && methods.every(name => typeof value[name] === "function"),
  remedy: "Give { debug, info, warn, error }: four functions, for example `console`."
}

/** A run that cannot begin rejects: whoever asked for it knows, and Effect need not log it too. */
const quiet = Layer.setUnhandledErrorLogLevel(Option.none())

/** Warnings and errors to standard error, where they are in nobody's way: a program's output goes to standard output. */
const consoleLogger = Logger.withLeveledConsole(Logger.stringLogger)

/** Its layer, for containers. */
export const consoleLayer: Layer.Layer<never> = Layer.merge(
  Logger.replace(Logger.defaultLogger, consoleLogger),
  quiet
)

/**
 * The runtime of what belongs to no container, with the same logger. Holds nothing that would have to be disposed of, and
 * is no layer: one would be provided to every run anew.
 */
export const ownRuntime: Runtime.Runtime<never> = Runtime.setFiberRef(
  Runtime.setFiberRef(
    Runtime.defaultRuntime,
    FiberRef.currentLoggers,
    HashSet.make(consoleLogger, Logger.tracerLogger)
  ),
  FiberRef.unhandledErrorLogLevel,
  Option.none()
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
        const reasons = Cause.isEmpty(cause) ? [] : [squash(cause)]
        logger[methodOf(logLevel)](String(text), ...details, ...known, ...reasons)
      })
    ),
    Logger.minimumLogLevel(LogLevel.All),
    quiet
  )
