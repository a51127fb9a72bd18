/**
 * Files and images that messages name by a URL. Where the host allows it they are fetched here, and the run is told their bytes:
 * whoever came later would look the address up again, and may be told another one, inside of some network.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { toBase64 } from "../protocol/safeJson.js"
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

/** A value inside the messages. */
interface Place {
  readonly value: unknown
  readonly holder: object
  readonly key: string | number
  /** Where the holder stands. */
  readonly inside: Place | undefined
  readonly isFile: boolean
}

const isHolder = (value: unknown): value is object => typeof value === "object" && value !== null

/** The values of a holder that a file can stand in: texts of the keys of a file, and holders. */
const placesIn = (holder: object, inside: Place | undefined, isFile: boolean): ReadonlyArray<Place> => {
  const places: Array<Place> = []
  if (Array.isArray(holder)) {
    for (let key = 0; key < holder.length; key++) {
      const value: unknown = holder[key]
      if (isFile || isHolder(value)) places.push({ value, holder, key, inside, isFile })
    }
    return places
  }
  const type: unknown = Reflect.get(holder, "type")
  const holdsFile = isFile || (typeof type === "string" && fileType.test(type))
  for (const key of Object.keys(holder)) {
    const value: unknown = Reflect.get(holder, key)
    const isItsFile = holdsFile && fileKeys.includes(key)
    if (isItsFile || isHolder(value)) places.push({ value, holder, key, inside, isFile: isItsFile })
  }
  return places
}

const fieldOf = (place: Place, root: string): string => {
  const keys: Array<string> = []
  for (let at: Place | undefined = place; at !== undefined; at = at.inside) {
    keys.push(typeof at.key === "number" ? `[${at.key}]` : `.${at.key}`)
  }
  return `${root}${keys.reverse().join("")}`
}

/** Every URL of a file that the messages hold, however deep; inline data is none. */
export const urlsIn = (messages: unknown, field = "messages"): ReadonlyArray<NamedUrl> => {
  if (!isHolder(messages)) return []
  const found: Array<NamedUrl> = []
  const open = [...placesIn(messages, undefined, false)]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const place = next
    const { holder, isFile, key, value } = place
    if (isFile && typeof value === "string" && !isInline(value)) {
      const replace = (text: string): void => {
        Reflect.set(holder, key, text)
      }
      found.push({ field: fieldOf(place, field), url: value, replace })
    }
    if (isHolder(value)) for (const inner of placesIn(value, place, isFile)) open.push(inner)
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
