/** Tools of a run that whoever asks for it executes, on both faces. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, type ClientTool, Tool } from "eddy"
import * as Promises from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Effect, Schema } from "effect"
import { guarded, stores, told, waitingIn } from "./approvalKit.js"
import { chunksOf, finishOf } from "./kit.js"

const { finish, reply, toolCall } = ScriptedModel

const inputSchema = { type: "object", properties: { of: { type: "string" } } }

const clientTools: Readonly<Record<string, ClientTool>> = {
  pick: { description: "Asks.", inputSchema },
  any: {}
}

const calls = (name: string): ScriptedModel.Turn => [toolCall("c1", name, { of: "a" }), finish("tool-calls")]

const named = (model: ReturnType<typeof ScriptedModel.make>, index: number) =>
  model.requests[index]?.tools.map(({ name }) => name)

const echo = Tool.make("echo", { input: Schema.Struct({}), execute: () => Effect.succeed("echo") })

describe("client tools of a run", () => {
  it.effect("are told to the model beside the agent's, and end the run", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([calls("pick")])
      const agent = Agent.make({ id: "a", model, tools: [echo] })
      const chunks = yield* chunksOf(Agent.stream(agent, "go", { clientTools }))
      expect(finishOf(chunks).stepResult).toMatchObject({ reason: "tool-calls", stoppedBy: "client-tool" })
      expect(model.requests[0]?.tools.slice(1)).toEqual([
        { name: "pick", description: "Asks.", inputSchema },
        { name: "any", inputSchema: { type: "object" } }
      ])
    })
  )

  it.effect("are not left out by the active tools of the agent", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([reply("ok")])
      const agent = Agent.make({ id: "a", model, tools: [echo], activeTools: [] })
      yield* Agent.generate(agent, "go", { clientTools })
      expect(named(model, 0)).toEqual(["pick", "any"])
    })
  )

  const wrong: ReadonlyArray<
    readonly [what: string, given: Readonly<Record<string, ClientTool>>, field: string]
  > = [
    ["the name of a tool of the agent", { echo: {} }, "clientTools.echo"],
    ["the name of a tool of the run", { own: {} }, "clientTools.own"],
    ["a name that providers refuse", { "a b": {} }, "clientTools.a b"],
    ["a schema that is none", { pick: { inputSchema: { type: "none" } } }, "clientTools.pick.inputSchema"],
    ["a schema of no object", { pick: { inputSchema: { type: "string" } } }, "clientTools.pick.inputSchema"]
  ]

  it.effect.each([...wrong])("are refused with %s", ([, given, field]) =>
    Effect.gen(function* () {
      const agent = Agent.make({ id: "a", model: ScriptedModel.make([]), tools: () => [echo] })
      const own = Tool.make("own", { execute: () => Effect.succeed(1) })
      const error = yield* Effect.flip(Agent.generate(agent, "go", { clientTools: given, tools: [own] }))
      expect(error).toMatchObject({ _tag: "InvalidConfiguration", field })
    })
  )

  it.effect("come back with a run that was suspended", () =>
    Effect.gen(function* () {
      const { executed, tool } = guarded()
      const model = ScriptedModel.make([
        [toolCall("c1", "remove", { n: 1 }), finish("tool-calls")],
        calls("pick")
      ])
      const agent = Agent.make({ id: "a", model, tools: [tool] })
      const first = yield* told(Agent.stream(agent, "go", { runId: "r", clientTools }), ["c1"])
      expect(waitingIn(first)).toEqual(["c1"])
      const second = yield* chunksOf(Agent.approveToolCall(agent, { runId: "r", toolCallId: "c1" }))
      expect(executed).toEqual([1])
      expect(named(model, 1)).toEqual(["remove", "pick", "any"])
      expect(finishOf(second).stepResult.stoppedBy).toBe("client-tool")
    }).pipe(Effect.provide(stores))
  )

  it("are those of promises too", async () => {
    const model = ScriptedModel.make([calls("pick")])
    const look = Promises.createTool({ id: "look", execute: async () => 1 })
    const agent = new Promises.Agent({ id: "a", model, tools: { look } })
    const full = await agent.generate("go", { clientTools })
    expect(full.finishReason).toBe("tool-calls")
    expect(named(model, 0)).toEqual(["look", "pick", "any"])
    await expect(agent.generate("go", { clientTools: { look: {} } })).rejects.toMatchObject({
      field: "clientTools.look"
    })
  })
})
