/** URLs in messages: found wherever they stand, and fetched only from where anybody may go. */
import { createServer, type ServerOptions } from "node:https"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { describe, expect, it, onTestFinished } from "vitest"
import { isPrivate } from "../../src/http/addresses.js"
import { loadFiles, urlsIn } from "../../src/http/files.js"
import { type Got, type Network, networkOf } from "../../src/http/network.js"
import { certificate, key } from "./certificate.js"
import { agentWith, post, saying, served } from "./kit.js"

const message = (part: object) => [{ role: "user", content: [part] }]

const publicAddress = "93.184.216.34"

const bytes = new TextEncoder().encode("rain")

const file: Got = { _tag: "File", mediaType: "image/png", bytes }

/** What a network was asked. */
interface Asked {
  readonly url: string
  readonly addresses: ReadonlyArray<string>
}

/** A network that answers with what these give, and what it was asked. */
const networkWith = (
  lookup: (host: string, count: number) => ReadonlyArray<string>,
  get: (url: string, download: Parameters<Network["get"]>[2]) => Got | Promise<Got> = () => file
) => {
  const asked: Array<Asked> = []
  let lookups = 0
  const network: Network = {
    lookup: async host => lookup(host, lookups++),
    get: async ({ href }, addresses, download) => {
      asked.push({ url: href, addresses })
      return get(href, download)
    }
  }
  return { network, asked }
}

const everywhere = () => [publicAddress]

/** What became of messages: `passes`, or what their client is told. */
const load = (
  messages: unknown,
  network: Network,
  limits: {
    readonly hosts?: ReadonlyArray<string>
    readonly maxBytes?: number
    readonly timeout?: number
  } = {}
): Promise<string | undefined> => {
  const { hosts = ["*"], maxBytes = 1000, timeout = 5000 } = limits
  const loading = loadFiles(messages, { hosts, maxBytes, timeout: Duration.millis(timeout) }, network)
  return Effect.runPromise(Effect.either(loading)).then(
    Either.match({ onLeft: ({ issues }) => issues?.[0]?.message, onRight: () => "passes" })
  )
}

const url = (image: string) => message({ type: "image", image })

describe("files that messages name", () => {
  it("are found in every shape that messages have", () => {
    const at = "https://a.example/x.png"
    const shapes: ReadonlyArray<object> = [
      { type: "image", image: at },
      { type: "file", data: at, mediaType: "image/png" },
      { type: "file", data: { type: "url", url: at }, mediaType: "image/png" },
      { type: "file", url: at, mediaType: "image/png" },
      { type: "tool-result", output: { type: "content", value: [{ type: "image-url", url: at }] } }
    ]
    for (const shape of shapes) expect(urlsIn(message(shape)).map(found => found.url)).toEqual([at])
    expect(urlsIn(message({ type: "text", text: at }))).toEqual([])
    expect(urlsIn(url("data:image/png;base64,AAAA"))).toEqual([])
    expect(urlsIn(url("iVBORw0KGgo="))).toEqual([])
  })

  it("may lie only where addresses are public", () => {
    const secret = [
      "127.0.0.1",
      "10.1.2.3",
      "172.16.0.1",
      "172.31.255.255",
      "192.168.1.1",
      "169.254.169.254",
      "100.64.0.1",
      "0.0.0.0",
      "224.0.0.1",
      "255.255.255.255",
      "::1",
      "::",
      "fe80::1",
      "fe80::1%eth0",
      "fc00::1",
      "fd12::1",
      "ff02::1",
      "::ffff:127.0.0.1",
      "::ffff:7f00:1",
      "64:ff9b::7f00:1",
      "2002:7f00:1::",
      "2001:db8::1",
      "2001::1",
      "nonsense",
      "1:2",
      "::ffff:10.0.0.1"
    ]
    expect(secret.filter(address => !isPrivate(address))).toEqual([])
    const open = [
      "93.184.216.34",
      "172.32.0.1",
      "8.8.8.8",
      "2606:2800:220:1:248:1893:25c8:1946",
      "::ffff:8.8.8.8"
    ]
    expect(open.filter(isPrivate)).toEqual([])
  })

  it("pass when their host is allowed, over https, and none of its addresses is private", async () => {
    const hosts = ["a.example"]
    const passing = async (at: string, allowed: ReadonlyArray<string>, addresses: ReadonlyArray<string>) => {
      const { asked, network } = networkWith(() => addresses)
      const outcome = await load(url(at), network, { hosts: allowed })
      return [outcome, asked.length]
    }
    const open = [publicAddress]
    expect(await passing("https://a.example/x", hosts, open)).toEqual(["passes", 1])
    expect(await passing("https://b.example/x", ["*"], open)).toEqual(["passes", 1])
    const refused: ReadonlyArray<readonly [string, ReadonlyArray<string>, ReadonlyArray<string>]> = [
      ["https://b.example/x", hosts, open],
      ["http://a.example/x", hosts, open],
      ["https://user:word@a.example/x", hosts, open],
      ["https://:word@a.example/x", hosts, open],
      ["https://a.example:8443/x", hosts, open],
      ["ftp://a.example/x", hosts, open],
      ["file:///etc/passwd", ["*"], open],
      ["https://a.example/x", hosts, [publicAddress, "127.0.0.1"]],
      ["https://a.example/x", hosts, []],
      ["https://[::1]/x", ["*"], ["::1"]],
      // What a parser of URLs takes away in front of one, and inside of it.
      [" http://169.254.169.254/x", ["*"], open],
      ["\thttp://169.254.169.254/x", ["*"], open],
      ["ht\ntp://169.254.169.254/x", ["*"], open]
    ]
    for (const [at, allowed, addresses] of refused) {
      const [outcome, count] = await passing(at, allowed, addresses)
      expect([at, outcome, count]).not.toEqual([at, "passes", count])
      expect(count).toBe(0)
    }
  })

  it("are fetched from the addresses that were checked, once, and told as bytes", async () => {
    // The name means something else as soon as somebody has looked.
    const { asked, network } = networkWith((_, count) => [count === 0 ? publicAddress : "169.254.169.254"])
    const messages = message({ type: "file", data: { type: "url", url: "https://a.example/x" } })
    expect(await load(messages, network)).toBe("passes")
    expect(asked).toEqual([{ url: "https://a.example/x", addresses: [publicAddress] }])
    expect(messages).toEqual(
      message({ type: "file", data: { type: "url", url: "data:image/png;base64,cmFpbg==" } })
    )
    expect(urlsIn(messages)).toEqual([])
    // Who looks again finds the other address, and asks nobody.
    expect(await load(url("https://a.example/x"), network)).toBe("Files of this host are not allowed.")
    expect(asked).toHaveLength(1)
  })

  it("are followed to other places within the same limits", async () => {
    const to = (location: string): Got => ({ _tag: "Moved", location })
    const follow = async (...places: ReadonlyArray<string>) => {
      const rest = [...places]
      const { asked, network } = networkWith(
        host => [host === "inside.example" ? "10.0.0.1" : publicAddress],
        () => {
          const place = rest.shift()
          return place === undefined ? file : to(place)
        }
      )
      const outcome = await load(url("https://a.example/x"), network, {
        hosts: ["a.example", "b.example", "inside.example"]
      })
      return [outcome === "passes", asked.map(({ url: at }) => at)]
    }
    const first = "https://a.example/x"
    expect(await follow("https://b.example/y", "/z")).toEqual([
      true,
      [first, "https://b.example/y", "https://b.example/z"]
    ])
    for (const place of [
      "https://inside.example/",
      "http://b.example/",
      "https://c.example/",
      "https://127.0.0.1/"
    ]) {
      expect(await follow(place)).toEqual([false, [first]])
    }
    expect(await follow("/1", "/2", "/3", "/4")).toMatchObject([false, { length: 4 }])
  })

  it("have a size, a number and a time", async () => {
    const half = networkWith(everywhere, (_, { take }) => {
      if (!take(600)) throw new Error("too large")
      return file
    })
    expect(await load(url("https://a.example/x"), half.network)).toBe("passes")
    const two = [...url("https://a.example/x"), ...url("https://a.example/y")]
    expect(await load(two, half.network)).toBe("The files of this request are too large.")
    const many = Array.from({ length: 33 }, () => url("https://a.example/x")).flat()
    const none = networkWith(everywhere)
    expect(await load(many, none.network)).toBe("There may be at most 32 files.")
    expect(none.asked).toEqual([])
    let isStopped = false
    const never = networkWith(
      everywhere,
      (_, { signal }) =>
        new Promise<Got>(() => {
          signal.addEventListener("abort", () => {
            isStopped = true
          })
        })
    )
    expect(await load(url("https://a.example/x"), never.network, { timeout: 20 })).toContain(
      "took longer than"
    )
    expect(isStopped).toBe(true)
  })

  it("say nothing of why they could not be fetched", async () => {
    const broken = networkWith(everywhere, () => {
      throw new Error("connect ECONNREFUSED 10.0.0.7:443")
    })
    expect(await load(url("https://a.example/x"), broken.network)).toBe("This file could not be fetched.")
    const unknown = networkWith(() => {
      throw new Error("ENOTFOUND secret.internal")
    })
    const inside = networkWith(() => ["10.0.0.7"])
    const said = await load(url("https://a.example/x"), unknown.network)
    expect(said).toBe(await load(url("https://a.example/x"), inside.network))
  })

  it("are not fetched from inside of a network, by whichever route they come", async () => {
    const { api } = await served({ helper: agentWith([saying("Yes.")]) }, { files: { hosts: ["*"] } })
    const at = "https://localhost/x.png"
    const data = { type: "file", url: at, mediaType: "image/png" }
    const asked: ReadonlyArray<readonly [path: string, body: object]> = [
      ["agents/helper/stream", { messages: url(at) }],
      ["agents/helper/generate", { messages: url(at) }],
      ["agents/helper/chat", { id: "c", messages: [{ id: "m", role: "user", parts: [data] }] }],
      [
        "v1/chat/completions",
        { model: "helper", messages: message({ type: "image_url", image_url: { url: at } }) }
      ]
    ]
    for (const [path, body] of asked) {
      const response = await post(`${api}/${path}`, body)
      expect([path, response.status]).toEqual([path, 400])
      expect(await response.text()).toContain("Files of this host are not allowed.")
    }
  })
})

describe("the network", () => {
  /** A server of `files.example` that answers each path in its own way. */
  const serverOf = async () => {
    const options: ServerOptions = { cert: certificate, key }
    const server = createServer(options, ({ url: path }, response) => {
      switch (path) {
        case "/moved":
          return response.writeHead(302, { location: "/rain" }).end("elsewhere")
        case "/other":
          return response.writeHead(101, { connection: "upgrade", upgrade: "other" }).end()
        case "/encoded":
          return response.writeHead(200, { "content-encoding": "gzip" }).end("rain")
        case "/cut":
          response.writeHead(200, { "content-length": "1000" }).write("rain")
          return setImmediate(() => response.destroy())
        case "/large":
          return response.end("x".repeat(100_000))
        case "/rain":
          return response.writeHead(200, { "content-type": "Image/PNG; charset=x" }).end("rain")
        default:
          return response.writeHead(404).end()
      }
    })
    await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
    onTestFinished(() => void server.close())
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    const get = (path: string, addresses = ["127.0.0.1"], most = 1000) => {
      let came = 0
      const take = (count: number): boolean => {
        came += count
        return came <= most
      }
      const { signal } = new AbortController()
      return networkOf({ ca: certificate, port }).get(new URL(`https://files.example${path}`), addresses, {
        signal,
        take
      })
    }
    return { get, port }
  }

  it("connects to the addresses that it is given, and believes the name all the same", async () => {
    const { get, port } = await serverOf()
    // Nobody else knows a host of this name.
    expect(await get("/rain")).toEqual({ _tag: "File", mediaType: "image/png", bytes })
    expect(await get("/moved")).toEqual({ _tag: "Moved", location: "/rain" })
    const stranger = networkOf({ port }).get(new URL("https://files.example/rain"), ["127.0.0.1"], {
      signal: AbortSignal.timeout(5000),
      take: () => true
    })
    await expect(stranger).rejects.toThrow(/self.signed/i)
  })

  it("gives whole files only, and not more than may be", async () => {
    const { get } = await serverOf()
    await expect(get("/cut")).rejects.toThrow()
    await expect(get("/other")).rejects.toThrow("another protocol")
    await expect(get("/encoded")).rejects.toThrow("encoded")
    await expect(get("/nothing")).rejects.toThrow("404")
    await expect(get("/large")).rejects.toThrow("too large")
  })
})
