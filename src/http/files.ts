/**
 * Files and images that messages name by a URL. Where the host allows it they are fetched here, and the run is told their bytes:
 * whoever came later would look the address up again, and may be told another one, inside of some network.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { isRecord, toBase64 } from "../protocol/safeJson.js"
import { isPrivate } from "./addresses.js"
import { type Got, type Network, network as nodeNetwork } from "./network.js"
import { invalidBody, type Refusal } from "./refusal.js"
import type { FileLimits } from "./settings.js"

/** A URL in a message, and where it stands. */
export interface NamedUrl {
  readonly field: string
  readonly url: string
  /** Puts something else into its place. */
  readonly replace: (text: string) => void
}

/** Keys of parts that hold a file: its bytes, or where it lies. */
const fileKeys = ["data", "image", "url", "file"]

/** Also `image-url` and `file-url`, in the outcome of a call. */
const fileType = /^(file|image|media)/

/** As messages are read: whatever has a colon and is no data URL is a URL, were there blanks in front of it. */
const isInline = (text: string): boolean => /^data:/i.test(text) || !text.includes(":")

interface Place {
  readonly value: unknown
  readonly field: string
  readonly isFile: boolean
  readonly replace: (text: string) => void
}

const itemsOf = ({ field, isFile, value }: Place): ReadonlyArray<Place> => {
  if (Array.isArray(value)) {
    return value.map((item: unknown, index) => ({
      value: item,
      field: `${field}[${index}]`,
      isFile,
      replace: text => {
        value[index] = text
      }
    }))
  }
  if (!isRecord(value)) return []
  const holdsFile = isFile || (typeof value["type"] === "string" && fileType.test(value["type"]))
  return Object.entries(value).map(([key, item]) => ({
    value: item,
    field: `${field}.${key}`,
    isFile: holdsFile && fileKeys.includes(key),
    replace: text => {
      value[key] = text
    }
  }))
}

/** Every URL of a file that the messages hold, however deep; inline data is none. */
export const urlsIn = (messages: unknown, field = "messages"): ReadonlyArray<NamedUrl> => {
  const found: Array<NamedUrl> = []
  const open: Array<Place> = [{ value: messages, field, isFile: false, replace: () => undefined }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { field: at, isFile, replace, value } = next
    if (isFile && typeof value === "string" && !isInline(value))
      found.push({ field: at, url: value, replace })
    for (const item of itemsOf(next)) open.push(item)
  }
  return found.reverse()
}

/** Files of one request. */
const mostFiles = 32

/** Redirects on the way to one file. */
const mostRedirects = 3

/** Files of one request that are fetched at the same time. */
const concurrency = 4

const notAllowed = (field: string): Refusal => invalidBody(field, "Files of this host are not allowed.")

/** Says nothing of why: what a server can reach is not for its clients to know. */
const notFetched = (field: string): Refusal => invalidBody(field, "This file could not be fetched.")

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "")

/** The URL, when the policy lets it through. */
const allowed = (field: string, url: string, policy: FileLimits): Effect.Effect<URL, Refusal> => {
  if (policy === "refuse") return invalidBody(field, "Files are not fetched here. Send the data itself.")
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (
    parsed?.protocol !== "https:" ||
    parsed.username !== "" ||
    parsed.password !== "" ||
    parsed.port !== ""
  ) {
    return invalidBody(field, "Only https URLs without credentials and without a port are allowed.")
  }
  return policy.hosts.includes("*") || policy.hosts.includes(hostOf(parsed))
    ? Effect.succeed(parsed)
    : notAllowed(field)
}

/** Refuses messages that name files which the policy does not let through. Nothing is asked of anybody. */
export const checkFiles = (messages: unknown, policy: FileLimits): Effect.Effect<void, Refusal> =>
  Effect.forEach(urlsIn(messages), ({ field, url }) => allowed(field, url, policy), { discard: true })

/** What the files of one request may take together. */
interface Budget {
  left: number
}

const fetched = Effect.fnUntraced(function* (
  { field, url }: NamedUrl,
  policy: FileLimits,
  budget: Budget,
  { get, lookup }: Network
) {
  let next = url
  for (let hops = 0; hops <= mostRedirects; hops++) {
    const to = yield* allowed(field, next, policy)
    const addresses = yield* Effect.tryPromise({
      try: () => lookup(hostOf(to)),
      catch: () => notAllowed(field)
    })
    if (addresses.length === 0 || addresses.some(isPrivate)) return yield* notAllowed(field)
    const got: Got = yield* Effect.tryPromise({
      // These addresses, and not what the name may mean a moment later.
      try: signal =>
        get(to, addresses, {
          signal,
          take: bytes => {
            budget.left -= bytes
            return budget.left >= 0
          }
        }),
      catch: () =>
        budget.left < 0 ? invalidBody(field, "The files of this request are too large.") : notFetched(field)
    })
    if (got._tag === "File") return `data:${got.mediaType};base64,${toBase64(got.bytes)}`
    if (!URL.canParse(got.location, to)) return yield* notFetched(field)
    next = new URL(got.location, to).href
  }
  return yield* notFetched(field)
})

/**
 * Fetches the files that messages name, and puts their bytes into the place of their URLs. The messages are those of one request,
 * and nobody else's: they are changed as they are.
 */
export const loadFiles = Effect.fnUntraced(function* (
  messages: unknown,
  policy: FileLimits,
  network: Network = nodeNetwork
) {
  const named = urlsIn(messages)
  for (const { field, url } of named) yield* allowed(field, url, policy)
  const [first] = named
  if (first === undefined || policy === "refuse") return
  if (named.length > mostFiles)
    return yield* invalidBody(first.field, `There may be at most ${mostFiles} files.`)
  const budget: Budget = { left: policy.maxBytes }
  yield* Effect.forEach(
    named,
    file => Effect.map(fetched(file, policy, budget, network), data => file.replace(data)),
    { concurrency, discard: true }
  ).pipe(
    Effect.timeoutFail({
      duration: policy.timeout,
      onTimeout: () => invalidBody(first.field, `Files took longer than ${Duration.format(policy.timeout)}.`)
    })
  )
})
