/** Two servers on one database, as two processes are: each has a container, connections and a memory of its own. */
import type { ServeOptions } from "eddy/http"
import { createTool, LibSQLStore, PostgresStore } from "eddy/promise"
import { Effect, Exit, type Scope, Scope as Scopes } from "effect"
import { describe, expect, it, onTestFinished } from "vitest"
import { freshFile, freshSchema, postgresUrl } from "../support/databases.js"
import { agentWith, calling, chunksOf, post, saying, served, types } from "./kit.js"

const as = (name: string) => ({ authorization: `Bearer ${name}` })

const authenticate: ServeOptions["authenticate"] = ({ headers }) => {
  const name = /^Bearer (alice|bob)$/.exec(headers["authorization"] ?? "")?.[1]
  return name === undefined ? undefined : { id: name, resource: name }
}

/** Made for the test, and gone with it. */
const inTest = async <A>(made: Effect.Effect<A, never, Scope.Scope>): Promise<A> => {
  const scope = await Effect.runPromise(Scopes.make())
  onTestFinished(() => Effect.runPromise(Scopes.close(scope, Exit.void)))
  return Effect.runPromise(Effect.provideService(made, Scopes.Scope, scope))
}

const databases = [
  [
    "libSQL",
    async () =>
      (
        url => () =>
          new LibSQLStore({ url })
      )(await inTest(freshFile))
  ],
  [
    "PostgreSQL",
    async () =>
      (
        url => () =>
          new PostgresStore({ url })
      )(await inTest(freshSchema))
  ]
] as const

/** A server with an agent that pays when somebody approves, and looks things up in the background. */
const processOn = async (
  storage: InstanceType<typeof LibSQLStore | typeof PostgresStore>,
  turns = [calling("pay"), saying("Paid.")]
) => {
  const paid: Array<string | undefined> = []
  const pay = createTool({
    id: "pay",
    description: "Pays.",
    requireApproval: true,
    execute: (_, { agent: { resourceId } }) => {
      paid.push(resourceId)
      return Promise.resolve("paid")
    }
  })
  const ask = createTool({
    id: "ask",
    description: "Asks the user.",
    background: { enabled: true },
    execute: async (_, { agent: { resumeData, suspend } }) =>
      resumeData === undefined ? suspend?.({ awaiting: "answer" }) : { answer: resumeData }
  })
  const helper = agentWith(turns, { tools: { pay, ask } })
  const { api, eddy } = await served({ helper }, { authenticate, clientOptions: ["tools"] }, { storage })
  const send = (name: string, path: string, body: unknown) => post(`${api}${path}`, body, as(name))
  const read = async (name: string, path: string): Promise<Record<string, unknown>> =>
    JSON.parse(await (await fetch(`${api}${path}`, { headers: as(name) })).text())
  return { helper, eddy, paid, send, read }
}

const call = { runId: "X", toolCallId: "c1" }

const stream = "/agents/helper/stream"

const memory = (name: string) => ({ thread: `of-${name}`, resource: name })

describe.each(databases)("two servers on one %s", (name, open) => {
  const isHere = name === "libSQL" || postgresUrl !== undefined

  it.skipIf(!isHere)("give an id to one run, whichever of them it is asked of", async () => {
    const storage = await open()
    const [one, other] = [await processOn(storage()), await processOn(storage(), [saying("Mine.")])]
    const bobs = await other.send("bob", stream, { messages: "Hello", runId: "X" })
    expect([bobs.status, types(chunksOf(await bobs.text())).at(-1)]).toEqual([200, "finish"])
    for (const server of [one, other]) {
      for (const sender of ["alice", "bob"]) {
        const taken = await server.send(sender, stream, { messages: "Hello", runId: "X" })
        expect([taken.status, await taken.json()]).toEqual([409, { error: "This run exists already." }])
      }
    }
  })

  it.skipIf(!isHere)("let one of many that send an id at the same time have it", async () => {
    const storage = await open()
    const say = () => processOn(storage(), [saying("Mine."), saying("Mine.")])
    const servers = [await say(), await say()]
    const answers = await Promise.all(
      [0, 1, 0, 1, 0, 1].map(place => servers[place]?.send("alice", stream, { messages: "Hi", runId: "X" }))
    )
    const statuses = answers.map(answer => answer?.status)
    expect([...statuses].sort()).toEqual([200, 409, 409, 409, 409, 409])
    await Promise.all(answers.map(answer => answer?.text()))
  })

  it.skipIf(!isHere)("give an id back that no run has taken after all", async () => {
    const server = await processOn((await open())(), [saying("Mine.")])
    const wrong = await server.send("alice", stream, { messages: [{ role: "nobody" }], runId: "X" })
    expect(wrong.status).toBe(400)
    const right = await server.send("alice", stream, { messages: "Hello", runId: "X" })
    expect([right.status, types(chunksOf(await right.text())).at(-1)]).toEqual([200, "finish"])
  })

  it.skipIf(!isHere).each([
    ["in a thread", memory("alice")],
    ["without a thread", undefined]
  ])("let what is stored decide whose a run is, whatever a process remembers: %s", async (_, place) => {
    const storage = await open()
    const [one, other] = [await processOn(storage()), await processOn(storage(), [saying("Mine.")])]
    await (await other.send("bob", stream, { messages: "Hello", runId: "X" })).text()
    // The application itself starts a run of alice's under this id: it needs no reservation.
    const hers = await one.helper.stream("Hello", {
      runId: "X",
      resource: "alice",
      ...(place === undefined ? {} : { memory: place })
    })
    expect(await hers.finishReason).toBe("suspended")
    for (const server of [one, other]) {
      const approved = await server.send("bob", "/agents/helper/approve-tool-call", call)
      const declined = await server.send("bob", "/agents/helper/decline-tool-call", call)
      const chat = await server.send("bob", "/agents/helper/resume-stream", { ...call, resumeData: 1 })
      expect([approved.status, declined.status, chat.status]).toEqual([404, 404, 404])
      expect(await server.read("bob", "/agents/helper/suspended-runs")).toEqual({ runs: [], total: 0 })
    }
    expect([...one.paid, ...other.paid]).toEqual([])
  })

  it.skipIf(!isHere).each([
    ["in a thread", { memory: memory("alice") }],
    ["without a thread", {}]
  ])("find an approval by its owner, on the other one: %s", async (_, place) => {
    const storage = await open()
    const [one, other] = [await processOn(storage()), await processOn(storage(), [saying("Paid.")])]
    await (await one.send("alice", stream, { messages: "Hello", runId: "X", ...place })).text()
    const runs = await other.read("alice", "/agents/helper/suspended-runs")
    expect(runs).toMatchObject({ runs: [{ runId: "X", resourceId: "alice" }], total: 1 })
    expect(await other.read("bob", "/agents/helper/suspended-runs")).toEqual({ runs: [], total: 0 })
    const foreign = await other.send("bob", "/agents/helper/approve-tool-call", call)
    const own = await other.send("alice", "/agents/helper/approve-tool-call", call)
    expect([foreign.status, own.status]).toEqual([404, 200])
    expect(types(chunksOf(await own.text()))).toContain("tool-result")
    expect(other.paid).toEqual(["alice"])
  })

  it.skipIf(!isHere)("show a task outside of threads to its owner, and to no other", async () => {
    const storage = await open()
    const turns = [calling("ask"), saying("It waits.")]
    const [one, other] = [await processOn(storage(), turns), await processOn(storage(), [saying("Mine.")])]
    await (await other.send("bob", stream, { messages: "Hello", runId: "X" })).text()
    const hers = await one.helper.stream("Hello", { runId: "X", resource: "alice" })
    await hers.text
    for (const server of [one, other]) {
      for (const query of ["", "?runId=X", "?runId=X&resourceId=alice"]) {
        expect(await server.read("bob", `/background-tasks${query}`)).toEqual({ tasks: [], total: 0 })
        expect(await server.read("alice", `/background-tasks${query}`)).toMatchObject({ total: 1 })
      }
      const resumed = await server.send("bob", "/agents/helper/resume-stream", { ...call, resumeData: 1 })
      expect(resumed.status).toBe(404)
    }
  })

  it.skipIf(!isHere)("let a client go on with what its own tool came to, on the other one", async () => {
    const storage = await open()
    const [one, other] = [
      await processOn(storage(), [calling("pick")]),
      await processOn(storage(), [saying("Blue it is.")])
    ]
    const clientTools = { pick: { description: "Picks.", parameters: { type: "object" } } }
    const first = { messages: "Hello", runId: "X", clientTools, memory: memory("alice") }
    await (await one.send("alice", stream, first)).text()
    const result = { type: "tool-result", toolCallId: "c1", toolName: "pick", result: "blue" }
    const body = { ...first, messages: [{ role: "tool", content: [result] }] }
    const own = await other.send("alice", stream, body)
    expect([own.status, types(chunksOf(await own.text())).at(-1)]).toEqual([200, "finish"])
    const foreign = await other.send("bob", stream, { ...body, memory: memory("bob") })
    expect(foreign.status).toBe(409)
  })
})
