/** Runs that go on while nobody reads them: how many there may be. */
import type { ServeOptions } from "eddy/http"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { modelOf } from "../agent/kit.js"
import { agentWith, chunksOf, post, readerOf, served, types } from "./kit.js"

const users: ServeOptions = {
  authenticate: ({ headers }) => {
    const name = /^Bearer (ada|eve)$/.exec(headers["authorization"] ?? "")?.[1]
    return name === undefined ? undefined : { id: name, resource: name }
  }
}

/** A server whose runs go on until they are told to end, or are stopped. */
const withRuns = async (options: ServeOptions) => {
  let release = (): void => undefined
  const gate = new Promise<void>(resolve => {
    release = resolve
  })
  const source = () =>
    (async function* () {
      yield { type: "text-start", id: "t" }
      await gate
      yield { type: "text-end", id: "t" }
      yield { type: "finish", reason: "stop", usage: {} }
    })()
  const { model, signals } = modelOf(Array.from({ length: 30 }, () => source))
  const { api } = await served({ helper: agentWith([], { model }) }, options)
  onTestFinished(release)
  const begin = (runId: string, policy: string, user = "ada") =>
    post(
      `${api}/agents/helper/stream`,
      { messages: "Hello", runId },
      { authorization: `Bearer ${user}`, "x-on-disconnect": policy }
    )
  const read = (runId: string, user = "ada") =>
    fetch(`${api}/runs/${runId}/events`, { headers: { authorization: `Bearer ${user}` } })
  return { api, begin, read, release, stopped: () => signals.filter(({ aborted }) => aborted).length }
}

const leave = async (response: Response): Promise<void> => {
  expect(response.status).toBe(200)
  await readerOf(response).cancel()
}

/** Waits until a request is answered with this status: that somebody has left is known a little later. */
const becomes = (status: number, ask: () => Promise<Response>): Promise<void> =>
  vi.waitFor(async () => {
    const response = await ask()
    if (response.status !== status) await response.body?.cancel()
    expect(response.status).toBe(status)
    await response.body?.cancel()
  })

describe("runs without a reader", () => {
  it.each(["continue", "60000"])("are so many of one principal, and no more (%s)", async policy => {
    const { begin, read, release, stopped } = await withRuns({
      ...users,
      streams: { detachedPerPrincipal: 2 }
    })
    // All of them are let in while they are read: what is bounded is what is left.
    const [first, second, third] = await Promise.all(["1", "2", "3"].map(runId => begin(runId, policy)))
    if (first === undefined || second === undefined || third === undefined) return expect.fail()
    await leave(first)
    await leave(second)
    await becomes(429, () => begin("4", policy))
    const refused = await begin("5", policy)
    expect([refused.headers.get("retry-after"), await refused.json()]).toEqual([
      "5",
      {
        error:
          'Too many of your runs go on without a reader. Read or stop some, or send "x-on-disconnect: abort".'
      }
    ])
    expect(stopped()).toBe(0)

    // Others have places of their own, and nobody needs one for a run that ends with its reader.
    const others = await begin("others", policy, "eve")
    await leave(others)
    const short = await begin("short", "abort")
    await leave(short)
    await vi.waitFor(() => expect(stopped()).toBe(1))

    // The third was let in, and finds no place when it is left.
    await leave(third)
    await vi.waitFor(() => expect(stopped()).toBe(2))
    expect(types(chunksOf(await (await read("3")).text())).slice(-2)).toEqual(["abort", "finish"])

    // A run that is read again gives its place back until it is left, and one that ends for good.
    const again = readerOf(await read("1"))
    await becomes(200, () => begin("6", policy))
    await again.cancel()
    release()
    await vi.waitFor(async () => {
      const told = await (await read("2")).text()
      expect(types(chunksOf(told)).at(-1)).toBe("finish")
    })
    await becomes(200, () => begin("7", policy))
  })

  it("are so many of all, whoever they are", async () => {
    const { begin } = await withRuns({ streams: { detachedTotal: 1 } })
    await leave(await begin("1", "continue"))
    await becomes(503, () => begin("2", "continue"))
  })
})
