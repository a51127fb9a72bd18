/** What the model reads of a tool that failed, on both faces, in the foreground and in the background. */
import { APICallError } from "@ai-sdk/provider"
import { describe, expect, it } from "@effect/vitest"
import { Agent, BackgroundTasks, Id, TaskStore, ThreadStore, Tool } from "eddy"
import * as Facade from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Data, Effect, FastCheck, Layer, Schema, Stream } from "effect"
import { failureText } from "../../src/tool/failureText.js"
import { collect, memoryLogger } from "../support/readers.js"

const { finish, reply, toolCall } = ScriptedModel

class NotFound extends Schema.TaggedError<NotFound>()("NotFound", { id: Schema.String }) {}
class SoldOut extends Data.TaggedError("SoldOut")<{ readonly message: string; readonly left: number }> {}
class Closed extends Data.TaggedError("Closed")<{ readonly until: Date }> {}

const api = new APICallError({
  message: "Bad request",
  url: "https://api.example/v1?key=k-1",
  requestBodyValues: { messages: ["private"] },
  statusCode: 400,
  responseHeaders: { "set-cookie": "session" },
  responseBody: "the whole body",
  data: { body: "parsed" },
  isRetryable: false
})

const withFields = Object.assign(new Error("The disk is full"), {
  code: "ENOSPC",
  usage: { free: 0, disks: ["a"] },
  token: "t-1",
  connection: { apiKey: "k-1", host: "db" },
  socket: new Map()
})

const cases: ReadonlyArray<readonly [string, unknown, string]> = [
  ["a tagged error of Schema", new NotFound({ id: "o-9" }), 'NotFound\n{"id":"o-9"}'],
  ["a tagged error of Data", new SoldOut({ message: "No tea", left: 0 }), 'SoldOut: No tea\n{"left":0}'],
  [
    "one without a message",
    new Closed({ until: new Date(0) }),
    'Closed\n{"until":"1970-01-01T00:00:00.000Z"}'
  ],
  ["an Error", new Error("no"), "no"],
  [
    "an Error with fields",
    withFields,
    'The disk is full\n{"code":"ENOSPC","usage":{"free":0,"disks":["a"]},"connection":{"host":"db"}}'
  ],
  [
    "a cause, one level down",
    new Error("Cannot ship", { cause: new NotFound({ id: "o-9" }) }),
    'Cannot ship\nCaused by: NotFound\n{"id":"o-9"}'
  ],
  ["a cause that is quoted", new Error("Cannot: no", { cause: new Error("no") }), "Cannot: no"],
  ["an error of a provider", api, 'Bad request\n{"statusCode":400}'],
  [
    "its wrapper",
    new Error("Ask again", { cause: api }),
    'Ask again\nCaused by: Bad request\n{"statusCode":400}'
  ],
  ["a record", { _tag: "Late", minutes: 3 }, 'Late\n{"minutes":3}']
]

/** The text that the model reads of the call, once it has an outcome. */
type Face = (error: unknown, enabled: boolean) => Promise<unknown>

const model = () =>
  ScriptedModel.make([[toolCall("c1", "work", {}), finish("tool-calls")], reply("a"), reply("b")])

const readIn = (scripted: ReturnType<typeof model>): unknown => {
  const parts = (scripted.requests.at(-1)?.messages ?? []).flatMap(message =>
    message.role === "tool" ? message.content : []
  )
  return parts[0]?.output
}

const effectFace: Face = async (error, enabled) => {
  const scripted = model()
  const work = Tool.make("work", { background: { enabled }, execute: () => Effect.fail(error) })
  const agent = Agent.make({ id: "a", model: scripted, tools: [work] })
  const stores = Layer.mergeAll(TaskStore.layerMemory, ThreadStore.layerMemory, Id.layerSequential)
  await Stream.runDrain(Agent.stream(agent, "go", { untilIdle: true })).pipe(
    Effect.provide(Layer.provideMerge(BackgroundTasks.layer(), stores)),
    Effect.runPromise
  )
  return readIn(scripted)
}

const promiseFace: Face = async (error, enabled) => {
  const scripted = model()
  const work = Facade.createTool({
    id: "work",
    background: { enabled },
    execute: () => Promise.reject(error)
  })
  const agent = new Facade.Agent({ id: "a", model: scripted, tools: { work } })
  await using _ = new Facade.Eddy({
    agents: { agent },
    storage: new Facade.InMemoryStore(),
    backgroundTasks: { enabled: true },
    logger: memoryLogger()
  })
  await collect((await agent.stream("go", { untilIdle: true })).fullStream)
  return readIn(scripted)
}

describe.each<readonly [string, Face, boolean]>([
  ["Effect, in the foreground", effectFace, false],
  ["Effect, in the background", effectFace, true],
  ["Promise, in the foreground", promiseFace, false],
  ["Promise, in the background", promiseFace, true]
])("%s", (_, face, enabled) => {
  it.each(cases)("%s", async (_, error, value) => {
    expect(await face(error, enabled)).toEqual({ type: "error-text", value })
  })
})

describe("what a client reads", () => {
  it("stays name and message", () => {
    const client: unknown = JSON.parse(
      JSON.stringify({ error: new Facade.ToolFailed({ toolName: "t", message: "m" }) })
    )
    expect(client).toEqual({ error: { name: "ToolFailed", message: "m" } })
  })
})

describe("the text of a failure", () => {
  it("is bounded: a field that does not fit is left out", () => {
    const error = Object.assign(new Error("no"), { body: "x".repeat(5_000), code: 7 })
    expect(failureText(error)).toBe('no\n{"code":7}')
  })

  it("of an error of the library is its message", () => {
    const error = new Facade.InvalidToolArguments({ toolName: "t", message: "Wrong." })
    expect(failureText(error)).toBe("Wrong.")
  })

  it("never throws, and holds nothing that a name calls secret", () => {
    const secrets = FastCheck.constantFrom("apiKey", "password", "Authorization", "set-cookie", "accessToken")
    FastCheck.assert(
      FastCheck.property(FastCheck.anything(), secrets, (value, name) => {
        const fields = { at: value, inner: { [name]: "hidden-value" }, [name]: "hidden-value" }
        expect(failureText(Object.assign(new Error("no"), fields))).not.toContain("hidden-value")
        expect(typeof failureText(value)).toBe("string")
      })
    )
    const revoked = Proxy.revocable({}, {})
    revoked.revoke()
    const trap = {
      get message(): string {
        throw new Error("no")
      }
    }
    for (const hostile of [
      revoked.proxy,
      trap,
      { _tag: "T", at: revoked.proxy },
      new Error("x", { cause: trap })
    ])
      expect(typeof failureText(hostile)).toBe("string")
  })
})
