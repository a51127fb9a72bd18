/**
 * What a failure of a model call is, wherever its provider or its transport puts that: a status, and whether the same call may
 * succeed later. Pure, and total over any value.
 */
import { property } from "../protocol/foreignValue.js"

/** What is known of a failure. */
export interface FailureKind {
  readonly statusCode?: number
  /** The provider's own word, or what the kind of the failure implies; absent: unknown. */
  readonly isRetryable?: boolean
}

/** A provider that can answer later: an overload, a rate limit, an outage. */
const passingTypes =
  /^(overloaded(_error)?|rate_limit(_error|_exceeded|ed)?|too_many_requests|server_error|internal_server_error|api_error|service_unavailable(_error)?|server_overloaded|engine_overloaded|slow_down|timeout(_error)?|resource_exhausted|unavailable|throttl\w*|bad_gateway|gateway_timeout)$/i

/** A request that stays wrong. */
const lastingTypes =
  /^(invalid_request(_error)?|authentication_error|permission_error|not_found(_error)?|insufficient_quota|billing_error|model_not_found|context_length_exceeded|content_filter\w*|invalid_api_key)$/i

/** Codes of connections that broke, or were not made: of Node, of undici, and of resolvers. */
const transportCodes =
  /^(ECONNRESET|ECONNREFUSED|ECONNABORTED|EPIPE|ETIMEDOUT|ENETDOWN|ENETRESET|ENETUNREACH|EHOSTDOWN|EHOSTUNREACH|EAI_AGAIN|ERR_STREAM_PREMATURE_CLOSE|ERR_HTTP2_STREAM_ERROR|UND_ERR_(SOCKET|BODY_TIMEOUT|HEADERS_TIMEOUT|CONNECT_TIMEOUT|CLOSED|DESTROYED))$/

/** Runtimes that give no code say one of these. */
const transportTexts =
  /^(TypeError: )?(terminated|fetch failed|failed to fetch|network error|socket hang up|other side closed|premature close|load failed|network connection lost|the socket connection was closed unexpectedly)\b/i

/** Bounds how much of a failure is looked at: causes may be cyclic, or endless. */
const mostLooks = 64

const statusOf = (value: unknown): number | undefined => {
  const number = typeof value === "string" && /^\d{3}$/.test(value.trim()) ? Number(value) : value
  return typeof number === "number" && Number.isInteger(number) && number >= 400 && number <= 599
    ? number
    : undefined
}

/** A status that a text names as one: `Status 503`, `429 Too Many Requests`, `HTTP 502`. */
const statusInText = (text: unknown): number | undefined => {
  if (typeof text !== "string") return undefined
  const found =
    /^\W*([45]\d\d)\b/.exec(text) ?? /\b(?:status|http|code|error)(?: code)?\W{1,3}([45]\d\d)\b/i.exec(text)
  return statusOf(found?.[1])
}

/** Whether a call that was answered with this status may succeed later. */
export const isPassingStatus = (status: number): boolean =>
  status === 408 || status === 409 || status === 429 || status >= 500

/** The failure, and what it holds: its `error`, its body, its causes; the outermost first. */
const layersOf = (failure: unknown): ReadonlyArray<unknown> => {
  const layers: Array<unknown> = [failure]
  for (let at = 0; at < layers.length && layers.length < mostLooks; at++) {
    const layer = layers[at]
    const errors = property(layer, "errors")
    const below = [
      ...["error", "data", "value", "cause"].map(key => property(layer, key)),
      ...(Array.isArray(errors) ? errors.slice(0, mostLooks) : [])
    ]
    for (const one of below) {
      if ((typeof one === "string" || typeof one === "object") && one !== null && !layers.includes(one)) {
        layers.push(one)
      }
    }
  }
  return layers
}

const firstOf = <A>(
  layers: ReadonlyArray<unknown>,
  look: (layer: unknown) => A | undefined
): A | undefined => {
  for (const layer of layers) {
    const found = look(layer)
    if (found !== undefined) return found
  }
  return undefined
}

const namesOf = (layer: unknown): ReadonlyArray<string> =>
  ["type", "code", "status", "name"].flatMap(key => {
    const name = property(layer, key)
    return typeof name === "string" ? [name] : []
  })

const textOf = (layer: unknown): unknown => (typeof layer === "string" ? layer : property(layer, "message"))

const isTransport = (layer: unknown): boolean => {
  const text = textOf(layer)
  const codes = [property(layer, "code"), property(layer, "errno"), property(layer, "name")]
  return (
    codes.some(code => typeof code === "string" && transportCodes.test(code)) ||
    (typeof text === "string" &&
      (transportTexts.test(text) || text.split(/[\s:,()]+/).some(word => transportCodes.test(word))))
  )
}

/**
 * Looks for a status in `statusCode`, `status` and `code` of the failure and of all that it holds, then in its texts; and for
 * whether it passes: the provider's own `isRetryable` first, then the status, the named type, the transport.
 */
export const kindOf = (failure: unknown): FailureKind => {
  const layers = layersOf(failure)
  const own = property(failure, "statusCode")
  const statusCode =
    (typeof own === "number" ? own : undefined) ??
    firstOf(layers, layer => {
      const fields = ["statusCode", "status", "code"].map(key => statusOf(property(layer, key)))
      return fields.find(status => status !== undefined)
    }) ??
    firstOf(layers, layer => statusInText(textOf(layer)))
  const said = firstOf(layers, layer => {
    const word = property(layer, "isRetryable")
    return typeof word === "boolean" ? word : undefined
  })
  const isNamed = firstOf(layers, layer => {
    const names = namesOf(layer)
    if (names.some(name => lastingTypes.test(name))) return false
    return names.some(name => passingTypes.test(name)) ? true : undefined
  })
  const implied = isNamed ?? (statusCode === undefined && layers.some(isTransport) ? true : undefined)
  const isRetryable = said ?? implied
  return {
    ...(statusCode === undefined ? {} : { statusCode }),
    ...(isRetryable === undefined ? {} : { isRetryable })
  }
}
