/** Of several decisions about one call at once one is carried out, and the others are rejected with one and the same error. */
import { Agent, createTool, LibSQLStore, type Storage, ToolCallNotPending } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { freshFile } from "../support/databases.js"
import { collect, refuseUnhandledRejections } from "../support/readers.js"
import { containerOf, sharedStorage } from "./tasksKit.js"

refuseUnhandledRejections()

const { finish, reply, toolCall } = ScriptedModel

type Decide = (
  agent: Agent,
  call: { readonly runId: string; readonly toolCallId: string }
) => Promise<unknown>

const decisions: ReadonlyArray<readonly [string, Decide]> = [
  ["approved", (agent, call) => agent.approveToolCall(call)],
  ["declined", (agent, call) => agent.declineToolCall(call)],
  ["resumed", (agent, call) => agent.resumeStream({ approved: true }, call)]
]

const inFile = (use: (storage: Storage) => Promise<void>): Promise<void> =>
  Effect.runPromise(
    Effect.scoped(Effect.flatMap(freshFile, url => Effect.promise(() => use(new LibSQLStore({ url })))))
  )

const stores: ReadonlyArray<readonly [string, (use: (storage: Storage) => Promise<void>) => Promise<void>]> =
  [
    ["in memory", use => use(sharedStorage())],
    ["in a file", inFile]
  ]

describe.each(stores)("%s", (_, withStorage) => {
  describe.each([true, false])("in the background: %s", background => {
    it.each(decisions)("%s: the losers get ToolCallNotPending, at once and later", (_, decide) =>
      withStorage(async storage => {
        const executed: Array<unknown> = []
        const work = createTool({
          id: "work",
          background: { enabled: background },
          execute: (_, { resumeData, suspend }) => {
            if (resumeData === undefined) return suspend()
            executed.push(resumeData)
            return "done"
          }
        })
        // Another call waits meanwhile, so that the run is not over with the first decision.
        const wait = createTool({ id: "wait", requireApproval: true, execute: () => "waited" })
        const model = ScriptedModel.make([
          [toolCall("c1", "work", {}), toolCall("c2", "wait", {}), finish("tool-calls")],
          ...Array.from({ length: 8 }, () => reply("Done."))
        ])
        const agent = new Agent({ id: "a", model, tools: { work, wait } })
        const { eddy } = containerOf({ agents: { agent }, storage })
        await collect((await agent.stream("go", { runId: "r1", untilIdle: true })).fullStream)
        const call = { runId: "r1", toolCallId: "c1" }
        const settled = await Promise.allSettled([
          decide(agent, call),
          decide(agent, call),
          decide(agent, call)
        ])
        expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(1)
        const late = await Promise.allSettled([decide(agent, call)])
        for (const one of [...settled, ...late]) {
          if (one.status === "rejected") expect(one.reason).toBeInstanceOf(ToolCallNotPending)
        }
        expect(executed.length).toBeLessThanOrEqual(1)
        await eddy.shutdown()
      })
    )
  })

  it.each(decisions)("%s: the losers get it, or RunNotFound where the run is over by then", (_, decide) =>
    withStorage(async storage => {
      const work = createTool({ id: "work", requireApproval: true, execute: () => "done" })
      const model = ScriptedModel.make([[toolCall("c1", "work", {}), finish("tool-calls")], reply("Done.")])
      const agent = new Agent({ id: "a", model, tools: { work } })
      const { eddy } = containerOf({ agents: { agent }, storage })
      await collect((await agent.stream("go", { runId: "r1" })).fullStream)
      const call = { runId: "r1", toolCallId: "c1" }
      const settled = await Promise.allSettled([1, 2, 3, 4].map(() => decide(agent, call)))
      expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(1)
      for (const one of settled) {
        if (one.status === "rejected")
          expect(["ToolCallNotPending", "RunNotFound"]).toContain(one.reason._tag)
      }
      await eddy.shutdown()
    })
  )
})
