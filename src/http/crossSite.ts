/** Whether a request that changes something may come from a page of another site, with the session of its visitor. Pure. */
import { Refusal } from "./refusal.js"
import type { ServerSettings } from "./settings.js"

/** What a request says of where it comes from. */
export interface Sender {
  readonly method: string
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The host that the request was sent to. */
  readonly host: string | undefined
}

/** Requests that change nothing. */
const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"])

/** Headers that no form and no script sets for another origin without a preflight, and that no proxy adds. */
const customHeaders: ReadonlyArray<string> = ["x-requested-with", "x-on-disconnect"]

/** Schemes of credentials that browsers add by themselves, whichever site sends the request. */
const ambientSchemes = /^(?:basic|digest|negotiate|ntlm)\b/i

export const isJson = (contentType: string | undefined): boolean =>
  /^application\/(.+\+)?json\b/i.test(contentType ?? "")

/** Whether no page of another origin can have sent this without a preflight, which `cors` answers. */
const isPreflighted = ({ headers, method }: Sender): boolean => {
  const { authorization } = headers
  return (
    method !== "POST" ||
    isJson(headers["content-type"]) ||
    customHeaders.some(name => headers[name] !== undefined) ||
    (authorization !== undefined && !ambientSchemes.test(authorization))
  )
}

/** Whether it has credentials that a browser may have added by itself. */
const isAmbient = ({ headers }: Sender): boolean =>
  headers["cookie"] !== undefined || ambientSchemes.test(headers["authorization"] ?? "")

const isOwnSite = ({ headers, host }: Sender): boolean => {
  const { origin } = headers
  if (headers["sec-fetch-site"] === "same-origin") return true
  return origin !== undefined && URL.canParse(origin) && new URL(origin).host === host
}

const crossSite = new Refusal({
  status: 403,
  message: "Requests from pages of other sites are refused, unless `cors` names their origin."
})

const noProof = new Refusal({
  status: 415,
  message: `The request must be application/json, or have one of the headers ${["authorization", ...customHeaders].join(", ")}.`
})

/** Why a request is refused; `undefined`: it changes nothing, or comes from a page that may send it, or from no page. */
export const refuseCrossSite = (sender: Sender, cors: ServerSettings["cors"]): Refusal | undefined => {
  const { headers, method } = sender
  const { origin } = headers
  if (safeMethods.has(method) || (origin !== undefined && cors?.origins.has(origin) === true))
    return undefined
  if (headers["sec-fetch-site"] === "cross-site") return crossSite
  if (isPreflighted(sender) || isOwnSite(sender)) return undefined
  if (origin !== undefined) return crossSite
  // Browsers say where a post comes from. Who does not is no browser, unless it is very old: then it has its visitor's session.
  return isAmbient(sender) ? noProof : undefined
}
