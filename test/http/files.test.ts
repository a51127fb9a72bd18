/** URLs in messages: found wherever they stand, and let through only to where anybody may go. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { describe, expect, it } from "vitest"
import { checkFiles, isPrivate, urlsIn } from "../../src/http/files.js"

const message = (part: object) => [{ role: "user", content: [part] }]

const fieldOf = (messages: unknown, hosts: ReadonlyArray<string>, addresses: ReadonlyArray<string>) => {
  const checking = checkFiles(messages, { hosts }, () => Promise.resolve(addresses))
  return Effect.runPromise(Effect.either(checking)).then(
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
    const open = ["93.184.216.34"]
    expect(await fieldOf(url("https://a.example/x"), hosts, open)).toBe("passes")
    expect(await fieldOf(url("https://b.example/x"), ["*"], open)).toBe("passes")
    const refused: ReadonlyArray<readonly [string, ReadonlyArray<string>, ReadonlyArray<string>]> = [
      ["https://b.example/x", hosts, open],
      ["http://a.example/x", hosts, open],
      ["https://user:word@a.example/x", hosts, open],
      ["ftp://a.example/x", hosts, open],
      ["file:///etc/passwd", ["*"], open],
      ["https://a.example/x", hosts, ["93.184.216.34", "127.0.0.1"]],
      ["https://a.example/x", hosts, []],
      ["https://[::1]/x", ["*"], ["::1"]]
    ]
    for (const [at, allowed, addresses] of refused) {
      expect([at, await fieldOf(url(at), allowed, addresses)]).not.toEqual([at, "passes"])
    }
  })
})
