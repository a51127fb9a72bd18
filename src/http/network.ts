/** How files are fetched: over TLS, from addresses that somebody has checked. Node's, and loaded when there is a file. */
import type { RequestOptions } from "node:https"
import type { LookupFunction } from "node:net"

/** What was at a URL: a file, or where else to look. */
export type Got =
  | { readonly _tag: "File"; readonly mediaType: string; readonly bytes: Uint8Array }
  | { readonly _tag: "Moved"; readonly location: string }

/** What a download may do. */
interface Download {
  readonly signal: AbortSignal
  /** Tells how many bytes came. Whether there may be more. */
  readonly take: (bytes: number) => boolean
}

export interface Network {
  /** Finds the addresses of a host. */
  readonly lookup: (host: string) => Promise<ReadonlyArray<string>>
  /** Gets what is at a URL from one of these addresses, and from no other. */
  readonly get: (url: URL, addresses: ReadonlyArray<string>, download: Download) => Promise<Got>
}

const redirects: ReadonlyArray<number | undefined> = [301, 302, 303, 307, 308]

const mediaTypeOf = (header: string | undefined): string =>
  /^\s*([\w.+-]+\/[\w.+-]+)/.exec(header ?? "")?.[1]?.toLowerCase() ?? "application/octet-stream"

/** Knows the addresses already. */
const pinned =
  (addresses: ReadonlyArray<string>): LookupFunction =>
  (_, { all }, callback) => {
    const known = addresses.map(address => ({ address, family: address.includes(":") ? 6 : 4 }))
    if (all === true) callback(null, known)
    else callback(null, known[0]?.address ?? "", known[0]?.family)
  }

/** A network of Node; `tls` is for servers whose certificates are somebody's own. */
export const networkOf = (tls: Pick<RequestOptions, "ca" | "port"> = {}): Network => ({
  lookup: async host => {
    const { lookup } = await import("node:dns/promises")
    return (await lookup(host, { all: true })).map(({ address }) => address)
  },
  get: async (url, addresses, { signal, take }) => {
    const { request } = await import("node:https")
    return new Promise((resolve, reject) => {
      const headers = { accept: "*/*", "accept-encoding": "identity" }
      // A connection of its own: one that is kept might lead to where another name has led.
      const sent = request(url, { ...tls, agent: false, headers, lookup: pinned(addresses), signal })
      const fail = (why: string): void => {
        sent.destroy()
        reject(new Error(why))
      }
      sent.on("error", reject)
      // Nobody has asked for it, and neither an answer nor an error follows.
      sent.on("upgrade", (_, socket) => {
        socket.destroy()
        reject(new Error("It speaks another protocol"))
      })
      sent.on("response", response => {
        const { headers: said, statusCode } = response
        response.on("error", reject)
        if (redirects.includes(statusCode) && said.location !== undefined) {
          sent.destroy()
          return resolve({ _tag: "Moved", location: said.location })
        }
        if (statusCode !== 200) return fail(`Status ${statusCode}`)
        if ((said["content-encoding"] ?? "identity") !== "identity") return fail("It is encoded")
        const pieces: Array<Uint8Array> = []
        response.on("data", (piece: Uint8Array) => {
          if (take(piece.length)) pieces.push(piece)
          else fail("It is too large")
        })
        response.on("end", () => {
          // A response that was cut off has no end; it has an error.
          resolve({ _tag: "File", mediaType: mediaTypeOf(said["content-type"]), bytes: joined(pieces) })
        })
      })
      sent.end()
    })
  }
})

const joined = (pieces: ReadonlyArray<Uint8Array>): Uint8Array => {
  const whole = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0))
  let place = 0
  for (const piece of pieces) {
    whole.set(piece, place)
    place += piece.length
  }
  return whole
}

export const network: Network = networkOf()
