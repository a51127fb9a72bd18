/** `suspend` of plain TypeScript does not return, wherever it is called: nothing behind it runs before somebody has decided. */
import { Agent, createStep, createTool, createWorkflow, type Storage } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it } from "vitest"
import { flush, refuseUnhandledRejections } from "../support/readers.js"
import { containerOf, sharedStorage } from "./tasksKit.js"

refuseUnhandledRejections()

const { finish, reply, toolCall } = ScriptedModel

/** What a tool and a step have in common. */
interface Suspendable {
  readonly suspend: (data?: unknown) => Promise<never>
  readonly resumeData: unknown
}

type Execute = (context: Suspendable) => unknown

interface Options {
  readonly suspendSchema?: NonNullable<Parameters<typeof createTool>[0]["suspendSchema"]>
}

/** What came of a first run, and of the one that was resumed with `"yes"`. */
interface Outcome {
  readonly suspended: unknown
  readonly result: unknown
}

type Place = (execute: Execute, options?: Options) => Promise<Outcome>

const toolOf = (execute: Execute, options: Options = {}, background = false) =>
  createTool({
    id: "work",
    background: { enabled: background },
    ...options,
    execute: async (_, context) => execute(context)
  })

const model = () => ScriptedModel.make([[toolCall("c1", "work", {}), finish("tool-calls")], reply("Done.")])

const resultOf = (prompt: unknown): unknown => {
  const found = /"type":"tool-result".*?"output":\{"type":"text","value":"([^"]*)"/.exec(
    JSON.stringify(prompt)
  )
  return found?.[1]
}

const foreground: Place = async (execute, options) => {
  const scripted = model()
  const agent = new Agent({ id: "a", model: scripted, tools: { work: toolOf(execute, options) } })
  const first = await (await agent.stream("go", { runId: "r1" })).getFullOutput()
  expect(first.status).toBe("suspended")
  const suspended = first.suspendData
  await flush()
  await (await agent.resumeStream("yes", { runId: "r1", toolCallId: "c1" })).getFullOutput()
  return { suspended, result: resultOf(scripted.requests.at(-1)?.messages) }
}

const background: Place = async (execute, options) => {
  const agent = new Agent({ id: "a", model: model(), tools: { work: toolOf(execute, options, true) } })
  const { eddy, manager } = containerOf({ agents: { agent }, storage: sharedStorage() })
  const stream = await agent.stream("go", { untilIdle: true, runId: "r1" })
  await stream.getFullOutput()
  await flush()
  const [task] = (await manager.listTasks()).tasks
  expect(task?.status).toBe("suspended")
  const id = task?.id ?? ""
  await manager.resume(id, "yes")
  const { result } = await manager.waitFor(id)
  await eddy.shutdown()
  return { suspended: task?.suspendData, result }
}

const below: Place = async (execute, options) => {
  const inner = model()
  const worker = new Agent({ id: "worker", model: inner, tools: { work: toolOf(execute, options) } })
  const scripted = ScriptedModel.make([
    [toolCall("d1", "agent-worker", { prompt: "go" }), finish("tool-calls")],
    reply("Done.")
  ])
  const storage: Storage = sharedStorage()
  const boss = new Agent({ id: "boss", model: scripted, agents: { worker } })
  const { eddy } = containerOf({ agents: { boss, worker }, storage })
  const first = await (await boss.stream("go", { runId: "r1" })).getFullOutput()
  expect(first.status).toBe("suspended")
  const [run] = await boss.listSuspendedRuns()
  const [call] = run?.calls ?? []
  const leg = await boss.resumeStream("yes", { runId: "r1", toolCallId: call?.toolCallId ?? "" })
  await leg.getFullOutput()
  await eddy.shutdown()
  return { suspended: call?.suspendData, result: resultOf(inner.requests.at(-1)?.messages) }
}

const step: Place = async (execute, options = {}) => {
  const work = createStep({
    id: "work",
    ...options,
    execute: async (context: Suspendable): Promise<unknown> => execute(context)
  })
  const workflow = createWorkflow({ id: "w" }).then(work).commit()
  const first = await (await workflow.stream({ inputData: null, runId: "r1" })).getFullOutput()
  if (first.status !== "suspended") return expect.fail(`the run is ${first.status}`)
  const [waiting] = first.suspended
  const second = await workflow.resume({ runId: "r1", resumeData: "yes" })
  return { suspended: waiting?.suspendData, result: second.status === "success" ? second.result : second }
}

describe.each<readonly [string, Place]>([
  ["a tool", foreground],
  ["a tool in the background", background],
  ["a tool of an agent below", below],
  ["a step", step]
])("%s", (_, place) => {
  it("does not run what stands behind `suspend`", async () => {
    const charged: Array<unknown> = []
    const outcome = await place(async ({ resumeData, suspend }) => {
      if (resumeData === undefined) await suspend({ question: 1 })
      charged.push(resumeData)
      return "resumed"
    })
    expect(charged).toEqual(["yes"])
    expect(outcome).toEqual({ suspended: { question: 1 }, result: "resumed" })
  })

  it("may return it", async () => {
    const outcome = await place(async ({ resumeData, suspend }) =>
      resumeData === undefined ? suspend("why?") : "resumed"
    )
    expect(outcome).toEqual({ suspended: "why?", result: "resumed" })
  })

  it("stays suspended when its code catches what `suspend` throws, and returns or throws", async () => {
    for (const end of ["return", "throw"] as const) {
      const seen: Array<unknown> = []
      const outcome = await place(async ({ resumeData, suspend }) => {
        if (resumeData !== undefined) return "resumed"
        try {
          return await suspend("why?")
        } catch (error) {
          seen.push(error)
          if (end === "throw") throw new Error("cannot go on")
          return "went on"
        }
      })
      expect(outcome).toEqual({ suspended: "why?", result: "resumed" })
      expect(seen).toMatchObject([{ name: "AbortError" }])
    }
  })

  it("stays suspended when nobody awaits `suspend`", async () => {
    for (const end of ["return", "later", "throw"] as const) {
      const outcome = await place(({ resumeData, suspend }) => {
        if (resumeData !== undefined) return "resumed"
        void suspend("why?")
        if (end === "throw") throw new Error("cannot go on")
        return end === "later" ? flush().then(() => "went on") : "went on"
      })
      expect(outcome).toEqual({ suspended: "why?", result: "resumed" })
    }
  })

  it("lets go of what it holds", async () => {
    const closed: Array<string> = []
    await place(async ({ resumeData, suspend }) => {
      try {
        if (resumeData === undefined) await suspend()
        return "resumed"
      } finally {
        closed.push(resumeData === undefined ? "first" : "second")
      }
    })
    expect(closed).toEqual(["first", "second"])
  })

  it("waits for a schema that takes its time, whether `suspend` is awaited or not", async () => {
    const suspendSchema = {
      "~standard": {
        version: 1 as const,
        vendor: "slow",
        validate: async (value: unknown) => {
          await flush()
          return { value }
        }
      }
    }
    for (const isAwaited of [true, false]) {
      const outcome = await place(
        async ({ resumeData, suspend }) => {
          if (resumeData !== undefined) return "resumed"
          const suspending = suspend("why?")
          if (isAwaited) await suspending
          return "went on"
        },
        { suspendSchema }
      )
      expect(outcome).toEqual({ suspended: "why?", result: "resumed" })
    }
  })
})

describe("the context of a tool", () => {
  it("has `suspend` and `resumeData` at its top too", async () => {
    const seen: Array<unknown> = []
    const work = createTool({
      id: "work",
      execute: async (_, context) => {
        seen.push(context.resumeData, context.agent.resumeData)
        return context.resumeData === undefined ? context.suspend({ at: "the top" }) : "resumed"
      }
    })
    const agent = new Agent({ id: "a", model: model(), tools: { work } })
    const first = await (await agent.stream("go", { runId: "r1" })).getFullOutput()
    expect(first).toMatchObject({ status: "suspended", suspendData: { at: "the top" } })
    await (await agent.resumeStream("yes", { runId: "r1", toolCallId: "c1" })).getFullOutput()
    expect(seen).toEqual([undefined, undefined, "yes", "yes"])
  })

  it("fails a call that does not await `suspend` with data that its schema refuses later", async () => {
    const suspendSchema = {
      "~standard": {
        version: 1 as const,
        vendor: "slow",
        validate: async () => {
          await flush()
          return { issues: [{ message: "never" }] }
        }
      }
    }
    const work = toolOf(({ suspend }) => void suspend("why?"), { suspendSchema })
    const agent = new Agent({ id: "a", model: model(), tools: { work } })
    const { toolResults } = await (await agent.stream("go")).getFullOutput()
    expect(JSON.stringify(toolResults)).not.toContain("tool-result")
  })

  it("rejects `suspend` of a call that is over", async () => {
    let late: (() => Promise<never>) | undefined
    const work = toolOf(({ suspend }) => {
      late = () => suspend("late")
      return "over"
    })
    const agent = new Agent({ id: "a", model: model(), tools: { work } })
    expect((await (await agent.stream("go")).getFullOutput()).status).toBe("success")
    await expect(late?.()).rejects.toMatchObject({ name: "AbortError" })
  })
})
