/** How a server behaves: options as they are given, read once. */
import * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import { InvalidConfiguration } from "../protocol/Errors.js"
import {
  callback,
  checkOptions,
  flag,
  isOptions,
  type Kind,
  type Known,
  read,
  shown,
  text,
  texts,
  wrongValue
} from "../protocol/options.js"
import type { Exposed } from "./masking.js"

/** Who sends a request. @since 0.1.0 @category models */
export interface Principal {
  /** Whom the limits are counted for, and the log names. */
  readonly id: string
  /** Whose threads, tasks and runs it sees, and no others. */
  readonly resource: string
}

/** What a request says of its sender. Nothing of the body is read before the sender is known. @since 0.1.0 @category models */
export interface Credentials {
  readonly method: string
  /** Path and query, as they came. */
  readonly url: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
}

/** What becomes of a run whose last reader has left. @since 0.1.0 @category models */
export type OnDisconnect = "abort" | "continue" | { readonly grace: Duration.DurationInput }

/** Options of a run that clients may be allowed to set. `tools`: those that they execute themselves. @since 0.1.0 @category models */
export type ClientOption =
  | "instructions"
  | "maxSteps"
  | "activeTools"
  | "toolChoice"
  | "modelSettings"
  | "providerOptions"
  | "structuredOutput"
  | "tools"

/** Every option that may be allowed. */
export const clientOptions: ReadonlyArray<ClientOption> = [
  "instructions",
  "maxSteps",
  "activeTools",
  "toolChoice",
  "modelSettings",
  "providerOptions",
  "structuredOutput",
  "tools"
]

/**
 * `refuse`: a message with a URL is answered with 400. With `hosts`, the server fetches files of these hosts over https, from
 * addresses that are public, and the run is told their bytes, never their URL: `["images.example"]`, and `["*"]` for every host.
 *
 * @since 0.1.0
 * @category models
 */
export type FilePolicy =
  | "refuse"
  | {
      readonly hosts: ReadonlyArray<string>
      /** Of all files of one request, there are at most 32. Default 5 MiB. */
      readonly maxBytes?: number
      /** For all files of one request. Default 20 seconds. */
      readonly timeout?: Duration.DurationInput
    }

/** The same, read. */
export type FileLimits =
  | "refuse"
  | {
      readonly hosts: ReadonlyArray<string>
      readonly maxBytes: number
      readonly timeout: Duration.Duration
    }

/** How many streams may be open and for how long, and how many runs may go on without one. @since 0.1.0 @category models */
export interface StreamLimits {
  /** Of one principal; of nobody when there is no `authenticate`. Default 100. */
  readonly perPrincipal?: number
  /** Of all. Default 10 000. */
  readonly total?: number
  /** After that a stream ends with an error that says where to go on reading. Default 1 hour. */
  readonly maxAge?: Duration.DurationInput
  /**
   * Runs of one principal that go on while nobody reads them; of nobody when there is no `authenticate`. Default 20. With so
   * many of them, a request for one more is answered with 429, and a run that is left is stopped.
   */
  readonly detachedPerPrincipal?: number
  /** The same of all, answered with 503. Default 1 000. */
  readonly detachedTotal?: number
}

/** What is kept of runs, so that readers come late and come back. @since 0.1.0 @category models */
export interface RunLogLimits {
  /** Of one run. Default 20 000. What is older is gone: 410. */
  readonly maxChunks?: number
  /** Of the JSON of one run. Default 16 MiB. A reader that stalls holds its run when a quarter of it is unread. */
  readonly maxBytes?: number
  /** How long a run can be read after its end. Default 5 minutes. */
  readonly maxAge?: Duration.DurationInput
  /** Runs that are over, and can be read: the oldest go first. Default 1 000. */
  readonly maxRuns?: number
  /** Of the JSON of all runs that are over: the oldest go first, but for the last one. Default 256 MiB. */
  readonly maxTotalBytes?: number
}

/** How a server behaves. @since 0.1.0 @category models */
export interface Settings {
  /** What every path begins with. Default `/api`. */
  readonly prefix?: `/${string}`
  /**
   * Says who sends a request; `undefined` or a failure: nobody we know, and the answer is 401. Without it everybody is the same
   * principal, and sees everything.
   */
  readonly authenticate?: (credentials: Credentials) => Effect.Effect<Principal | undefined, unknown>
  /** Request context of every run of this principal. Clients can set none of its keys. */
  readonly requestContext?: (principal: Principal | undefined) => Readonly<Record<string, unknown>>
  /** Keys of the request context that clients may set. Default: none. */
  readonly clientContext?: ReadonlyArray<string>
  /** Options of runs that clients may set. Default: none. */
  readonly clientOptions?: ReadonlyArray<ClientOption>
  /** Files and images that messages name by a URL. Default `refuse`. */
  readonly files?: FilePolicy
  /** Origins that browsers may call from, as `https://app.example`. Default: none. */
  readonly cors?: { readonly origins: ReadonlyArray<string>; readonly credentials?: boolean }
  /** Bytes of a request body. Default 1 MiB; more is answered with 413. */
  readonly maxBodyBytes?: number
  /** A stream that is silent for so long says a comment. Default 15 seconds. */
  readonly keepAlive?: Duration.DurationInput
  /** How many streams may be open and for how long, and how many runs may go on without one. */
  readonly streams?: StreamLimits
  /** What is kept of runs, so that readers come late and come back. */
  readonly runLog?: RunLogLimits
  /** What becomes of a run whose last reader has left, unless its request says otherwise. Default `abort`. */
  readonly onDisconnect?: OnDisconnect
  /** The longest grace that a request may ask for. Default 5 minutes. */
  readonly maxGrace?: Duration.DurationInput
  /** What clients are told that is hidden otherwise. Default: nothing. */
  readonly expose?: Exposed
}

/** What each of {@link Settings} takes. */
export const settingKinds = {
  prefix: text,
  authenticate: callback,
  requestContext: callback,
  clientContext: texts,
  clientOptions: texts,
  files: read,
  cors: read,
  maxBodyBytes: read,
  keepAlive: read,
  streams: read,
  runLog: read,
  onDisconnect: read,
  maxGrace: read,
  expose: read
} satisfies Record<keyof Settings, Kind>

/** The same, read. */
export interface ServerSettings {
  readonly prefix: `/${string}`
  readonly authenticate: Settings["authenticate"]
  readonly requestContext: Settings["requestContext"]
  readonly clientContext: ReadonlySet<string>
  readonly clientOptions: ReadonlySet<ClientOption>
  readonly files: FileLimits
  readonly cors: { readonly origins: ReadonlySet<string>; readonly credentials: boolean } | undefined
  readonly maxBodyBytes: number
  readonly keepAlive: Duration.Duration
  readonly perPrincipal: number
  readonly totalStreams: number
  readonly maxStreamAge: Duration.Duration
  readonly detachedPerPrincipal: number
  readonly detachedTotal: number
  readonly maxChunks: number
  readonly maxBytes: number
  readonly maxLogAge: Duration.Duration
  readonly maxRuns: number
  readonly maxTotalBytes: number
  readonly onDisconnect: OnDisconnect
  readonly maxGrace: Duration.Duration
  readonly expose: Exposed
}

const wrong = (field: string, message: string): InvalidConfiguration =>
  new InvalidConfiguration({ field, message: `\`${field}\` ${message}` })

const count = (field: string, value: number | undefined, otherwise: number, least = 1): number => {
  const given = value === undefined ? otherwise : value
  if (Number.isSafeInteger(given) && given >= least) return given
  throw wrongValue(field, given, `Give a whole number of at least ${least}.`)
}

const time = (
  field: string,
  value: Duration.DurationInput | undefined,
  otherwise: string
): Duration.Duration => {
  const decoded = Duration.decodeUnknown(value === undefined ? otherwise : value)
  const milliseconds = decoded._tag === "Some" ? Duration.toMillis(decoded.value) : Number.NaN
  // A timer of more than 2^31 milliseconds fires at once.
  if (milliseconds >= 1 && milliseconds < 2 ** 31) return Duration.millis(milliseconds)
  throw wrong(field, "is no time. Give at least 1 millisecond, and at most 24 days.")
}

/** Reads a policy. Throws `InvalidConfiguration`. */
const policy = (value: OnDisconnect): OnDisconnect => {
  if (value === "abort" || value === "continue") return value
  if (isOptions(value)) {
    checkOptions("`onDisconnect`", value, { kinds: named(["grace"]) }, "onDisconnect")
    return { grace: time("onDisconnect.grace", value.grace, "0") }
  }
  throw wrong("onDisconnect", 'is no policy. Give "abort", "continue" or { grace }.')
}

const runLogFields = ["maxChunks", "maxBytes", "maxAge", "maxRuns", "maxTotalBytes"]
const streamFields = ["perPrincipal", "total", "maxAge", "detachedPerPrincipal", "detachedTotal"]

/** Options that their readers check. */
const named = (names: ReadonlyArray<string>): Known["kinds"] =>
  Object.fromEntries(names.map(name => [name, read]))

const isOrigin = (text: string): boolean => URL.canParse(text) && new URL(text).origin === text

const isHost = (text: string): boolean =>
  text === "*" || (URL.canParse(`https://${text}`) && new URL(`https://${text}`).host === text)

const filesOf = (files: FilePolicy): FileLimits => {
  if (files === "refuse") return files
  checkOptions("`files`", files, { kinds: named(["hosts", "maxBytes", "timeout"]) }, "files")
  const { hosts, maxBytes, timeout } = files
  if (!Array.isArray(hosts)) throw wrong("files.hosts", 'is no list. Give for example ["images.example"].')
  for (const host of hosts) {
    if (typeof host === "string" && isHost(host)) continue
    throw wrong(
      "files.hosts",
      `has ${shown(host)}, which is no host. Give for example "images.example", or "*".`
    )
  }
  return {
    hosts,
    maxBytes: count("files.maxBytes", maxBytes, 5 * 2 ** 20),
    timeout: time("files.timeout", timeout, "20 seconds")
  }
}

const corsOf = (cors: Settings["cors"]): ServerSettings["cors"] => {
  if (cors === undefined) return undefined
  checkOptions("`cors`", cors, { kinds: { origins: texts, credentials: flag } }, "cors")
  if (cors.origins === undefined)
    throw wrong("cors.origins", 'is missing. Give for example ["https://app.example"].')
  for (const origin of cors.origins) {
    if (isOrigin(origin)) continue
    throw wrong(
      "cors.origins",
      `has "${origin}", which is no origin. Give for example "https://app.example".`
    )
  }
  return { origins: new Set(cors.origins), credentials: cors.credentials === true }
}

const allowed = (options: ReadonlyArray<ClientOption>): ReadonlySet<ClientOption> => {
  for (const option of options) {
    if (clientOptions.includes(option)) continue
    throw wrong("clientOptions", `has "${option}". Give some of: ${clientOptions.join(", ")}.`)
  }
  return new Set(options)
}

/** Reads the options of a server. Throws `InvalidConfiguration`, which names the field and the remedy. */
export const settingsOf = (options: Settings): ServerSettings => {
  checkOptions("The server", options, { kinds: settingKinds })
  const { expose = {}, files = "refuse", prefix = "/api", runLog = {}, streams = {} } = options
  if (!/^(\/[\w.~-]+)+$/.test(prefix)) throw wrong("prefix", 'is no path. Give for example "/api".')
  checkOptions("`streams`", streams, { kinds: named(streamFields) }, "streams")
  checkOptions("`runLog`", runLog, { kinds: named(runLogFields) }, "runLog")
  checkOptions("`expose`", expose, { kinds: { errors: flag, provider: flag } }, "expose")
  return {
    prefix,
    authenticate: options.authenticate,
    requestContext: options.requestContext,
    clientContext: new Set(options.clientContext ?? []),
    clientOptions: allowed(options.clientOptions ?? []),
    files: filesOf(files),
    cors: corsOf(options.cors),
    maxBodyBytes: count("maxBodyBytes", options.maxBodyBytes, 2 ** 20),
    keepAlive: time("keepAlive", options.keepAlive, "15 seconds"),
    perPrincipal: count("streams.perPrincipal", streams.perPrincipal, 100),
    totalStreams: count("streams.total", streams.total, 10_000),
    maxStreamAge: time("streams.maxAge", streams.maxAge, "1 hour"),
    detachedPerPrincipal: count("streams.detachedPerPrincipal", streams.detachedPerPrincipal, 20),
    detachedTotal: count("streams.detachedTotal", streams.detachedTotal, 1000),
    maxChunks: count("runLog.maxChunks", runLog.maxChunks, 20_000, 64),
    maxBytes: count("runLog.maxBytes", runLog.maxBytes, 2 ** 24, 1024),
    maxLogAge: time("runLog.maxAge", runLog.maxAge, "5 minutes"),
    maxRuns: count("runLog.maxRuns", runLog.maxRuns, 1000),
    maxTotalBytes: count("runLog.maxTotalBytes", runLog.maxTotalBytes, 2 ** 28, 1024),
    onDisconnect: policy(options.onDisconnect === undefined ? "abort" : options.onDisconnect),
    maxGrace: time("maxGrace", options.maxGrace, "5 minutes"),
    expose
  }
}
