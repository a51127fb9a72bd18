/** The container and what is refused before any model is asked: each refusal names the field and the remedy. */
import {
  Agent,
  type AgentOptions,
  createStep,
  createTool,
  createWorkflow,
  Eddy,
  InvalidConfiguration,
  Mastra,
  type StreamOptions
} from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expect, it } from "vitest"
import { z } from "zod"
import { delta, flush, memoryLogger, modelOf, refuseUnhandledRejections, until } from "../support/readers.js"

refuseUnhandledRejections()

const saying = (text: string) =>
  ScriptedModel.make([[...ScriptedModel.text(text), ScriptedModel.finish("stop")]])

const hanging = () =>
  ScriptedModel.make([[ScriptedModel.hang], [ScriptedModel.hang], [ScriptedModel.hang], [ScriptedModel.hang]])

/** What it is refused with: the field, and words that the message has. */
const expectRefusal = (error: unknown, field: string, ...words: ReadonlyArray<string>): void => {
  expect(error).toBeInstanceOf(InvalidConfiguration)
  expect(error).toMatchObject({ field })
  for (const word of words) expect((error as Error).message).toContain(word)
}

const caught = (act: () => unknown): unknown => {
  try {
    act()
  } catch (error) {
    return error
  }
  return expect.fail("nothing was thrown")
}

const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => expect.fail("nothing was rejected"),
    (error: unknown) => error
  )

describe("agents by name", () => {
  const weather = new Agent({ id: "weather-agent", name: "The weather", model: saying("sunny") })
  const news = new Agent({ id: "news-agent", model: saying("none") })
  const eddy = new Eddy({ agents: { weather, news } })

  it("are found by the name in the container and by their id", () => {
    expect(eddy.getAgent("weather")).toBe(weather)
    // The types know names only.
    expect((eddy as Eddy).getAgent("news-agent")).toBe(news)
    expect(eddy.agents.news).toBe(news)
    expect(weather).toMatchObject({ id: "weather-agent", name: "The weather", description: undefined })
    expect(Mastra).toBe(Eddy)
  })

  it.each(["wether", "", "toString", "constructor", "__proto__"])("an unknown one is refused: %j", name => {
    expectRefusal(
      caught(() => (eddy as Eddy).getAgent(name)),
      "agents",
      `"${name}"`,
      "weather, news"
    )
    expectRefusal(
      caught(() => new Eddy().getAgent(name)),
      "agents",
      "none"
    )
  })

  it("what is no agent is refused", () => {
    const agents = { weather, broken: { id: "x" } as never }
    expectRefusal(
      caught(() => new Eddy({ agents })),
      "agents.broken",
      "new Agent("
    )
  })

  it("two of one id are refused by both names, wherever they are listed", () => {
    const twin = (below: Partial<AgentOptions> = {}) =>
      new Agent({ id: "twin", model: saying("x"), ...below })
    const first = twin()
    const words = ['"twin"', "Give each its own `id`."]
    expectRefusal(
      caught(() => new Eddy({ agents: { weather, first, second: twin() } })),
      "agents.second",
      "`agents.first`",
      "`agents.second`",
      ...words
    )
    const boss = new Agent({ id: "boss", model: saying("x"), agents: { helper: twin() } })
    expectRefusal(
      caught(() => new Eddy({ agents: { first, boss } })),
      "agents.boss.agents.helper",
      "`agents.first`",
      ...words
    )
    expectRefusal(
      caught(() => new Eddy({ agents: { own: twin({ agents: { helper: twin() } }) } })),
      "agents.own.agents.helper",
      "`agents.own`",
      ...words
    )
  })

  it("one agent may be listed and reached several times", () => {
    const helper = new Agent({ id: "helper", model: saying("x") })
    const bosses = ["a", "b"].map(id => new Agent({ id, model: saying("x"), agents: { helper } }))
    const agents = { helper, again: helper, ...Object.fromEntries(bosses.map(boss => [boss.id, boss])) }
    expect(new Eddy({ agents }).getAgent("again")).toBe(helper)
  })

  it("two workflows of one id are refused by both names, those of agents too", () => {
    const input = z.object({ n: z.number() })
    const twin = () =>
      createWorkflow({ id: "twin", inputSchema: input, outputSchema: input })
        .then(
          createStep({
            id: "s",
            inputSchema: input,
            outputSchema: input,
            execute: async ({ inputData }) => inputData
          })
        )
        .commit()
    const first = twin()
    expect(new Eddy({ workflows: { first, again: first } }).getWorkflow("again")).toBe(first)
    expectRefusal(
      caught(() => new Eddy({ workflows: { first, second: twin() } })),
      "workflows.second",
      "`workflows.first`",
      '"twin"'
    )
    const boss = new Agent({ id: "boss", model: saying("x"), workflows: { flow: twin() } })
    expectRefusal(
      caught(() => new Eddy({ agents: { boss }, workflows: { first } })),
      "agents.boss.workflows.flow",
      "`workflows.first`",
      '"twin"'
    )
  })

  it("an unknown option is refused by name", () => {
    expectRefusal(
      caught(() => new Eddy({ agent: {} } as never)),
      "agent",
      "`agents`"
    )
  })
})

describe("the end of a container", () => {
  it("shutdown aborts every run and waits for them", async () => {
    const agent = new Agent({ id: "hand", model: hanging() })
    const eddy = new Eddy({ agents: { agent } })
    const running = [await agent.stream("One"), await agent.stream("Two"), await agent.stream("Three")]
    const texts = running.map(({ text }) => text)
    await eddy.shutdown()
    expect(running.map(({ status }) => status)).toEqual(["aborted", "aborted", "aborted"])
    for (const text of texts) await expect(text).rejects.toThrow("The container was shut down.")
  })

  it("also one that has just been asked for, and one that waits for its readers", async () => {
    const agent = new Agent({ id: "hand", model: hanging() })
    const long = new Agent({
      id: "long",
      model: modelOf(async function* () {
        for (;;) yield delta("a", "x")
      })
    })
    const eddy = new Eddy({ agents: { agent, long }, logger: memoryLogger() })
    const waiting = await long.stream("Go!")
    await flush(20)
    const asked = agent.stream("Go!")
    await eddy.shutdown()
    expect((await asked).status).toBe("aborted")
    expect(waiting.status).toBe("aborted")
  })

  it("also one whose messages are still being read", async () => {
    const agent = new Agent({ id: "hand", model: hanging() })
    const eddy = new Eddy({ agents: { agent } })
    const asked = agent.stream([{ role: "user", content: [{ type: "text", text: "Go!" }] }])
    await eddy.shutdown()
    expect((await asked).status).toBe("aborted")
  })

  it("stops providers and tools", async () => {
    const signals: Array<AbortSignal> = []
    const look = createTool({
      id: "look",
      execute: (_, { abortSignal }) => {
        signals.push(abortSignal)
        return new Promise<never>(() => undefined)
      }
    })
    const model = ScriptedModel.make([
      [ScriptedModel.toolCall("c1", "look", {}), ScriptedModel.finish("tool-calls")]
    ])
    const inTool = new Agent({ id: "inTool", model, tools: { look } })
    const inModel = new Agent({
      id: "inModel",
      model: modelOf(async function* (_, signal) {
        signals.push(signal)
        yield await new Promise<never>(() => undefined)
      })
    })
    const eddy = new Eddy({ agents: { inTool, inModel } })
    await inTool.stream("Go!")
    await inModel.stream("Go!")
    await until(() => signals.length === 2, "both are under way")
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false])
    await eddy.shutdown()
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true])
    expect(signals.map(({ reason }) => reason)).toEqual([
      "The container was shut down.",
      "The container was shut down."
    ])
  })

  it("afterwards no run starts, and a second shutdown is fine", async () => {
    const agent = new Agent({ id: "hand", model: saying("never") })
    const eddy = new Eddy({ agents: { agent } })
    await eddy.shutdown()
    await eddy.shutdown()
    expectRefusal(await rejection(agent.stream("Go!")), "runtime", "shut down", "Make another one")
    expectRefusal(await rejection(agent.generate("Go!")), "runtime")
    new Eddy({ agents: { agent } })
    expect((await agent.generate("Go!")).text).toBe("never")
  })

  it("runs that have ended are left as they are", async () => {
    const agent = new Agent({ id: "hand", model: saying("done") })
    const eddy = new Eddy({ agents: { agent } })
    const output = await agent.stream("Go!")
    await output.text
    await eddy.shutdown()
    expect(output.status).toBe("success")
    expect(await output.text).toBe("done")
  })

  it("`await using` shuts it down", async () => {
    const agent = new Agent({ id: "hand", model: hanging() })
    const start = async () => {
      await using eddy = new Eddy({ agents: { agent } })
      return await eddy.getAgent("agent").stream("Go!")
    }
    expect((await start()).status).toBe("aborted")
    expectRefusal(await rejection(agent.stream("Go!")), "runtime")
  })

  it("callbacks of runs that the shutdown aborts are called, and their failures logged", async () => {
    const logger = memoryLogger()
    const agent = new Agent({ id: "hand", model: hanging() })
    const eddy = new Eddy({ agents: { agent }, logger })
    await agent.stream("Go!", {
      onAbort: () => {
        throw new Error("mine")
      }
    })
    await eddy.shutdown()
    expect(logger.lines).toEqual([["warn", "The callback onAbort failed: mine"]])
  })
})

describe("the log of a container", () => {
  it("keeps `this` of a logger that is an object with methods", async () => {
    class Lines {
      readonly kept: Array<string> = []
      debug(message: string): void {
        this.kept.push(`debug ${message}`)
      }
      info(message: string): void {
        this.kept.push(`info ${message}`)
      }
      warn(message: string): void {
        this.kept.push(`warn ${message}`)
      }
      error(message: string): void {
        this.kept.push(`error ${message}`)
      }
    }
    const logger = new Lines()
    const agent = new Agent({
      id: "hand",
      model: ScriptedModel.make([[{ type: "error", error: "overloaded" }]])
    })
    new Eddy({ agents: { agent }, logger })
    const output = await agent.stream("Go!")
    await output.getFullOutput()
    await flush()
    expect(logger.kept).toEqual([`error Run ${output.runId} failed: overloaded`])
  })

  it("has what a tool writes after its call, at debug level", async () => {
    const logger = memoryLogger()
    let write: (output: unknown) => Promise<void> = () => expect.fail("no call")
    const look = createTool({
      id: "look",
      execute: (_, { writer }) => {
        write = writer.write
        return "found"
      }
    })
    const model = ScriptedModel.make([
      [ScriptedModel.toolCall("c1", "look", {}), ScriptedModel.finish("tool-calls")],
      [ScriptedModel.finish("stop")]
    ])
    const agent = new Agent({ id: "hand", model, tools: { look } })
    new Eddy({ agents: { agent }, logger })
    await agent.generate("Go!")
    await write("late")
    expectRefusal(await rejection(agent.stream("Go!", { maxSteps: 0 })), "maxSteps")
    await flush()
    expect(logger.lines).toEqual([["debug", 'Tool "look" wrote after its call c1 had ended: dropped.']])
  })
})

describe("wrong agents", () => {
  const model = saying("x")
  const wrong: ReadonlyArray<readonly [string, unknown, string, ReadonlyArray<string>]> = [
    ["no model", { id: "hand" }, "model", ['"hand"', "openai("]],
    ["a model without its provider", { id: "hand", model: "gpt-5" }, "model", ['"openai/gpt-5"']],
    ["null for a model", { id: "hand", model: null }, "model", []],
    ["no id and no name", { model }, "id", ["not empty"]],
    ["an empty id", { id: "", model }, "id", ["not empty"]],
    ["an id that is no string", { id: 3, model }, "id", []],
    ["an unknown option", { id: "hand", model, instruction: "x" }, "instruction", ["instructions"]],
    ["a tool that is none", { id: "hand", model, tools: { look: {} } }, "tools.look", ["createTool("]],
    [
      "a tool that is undefined",
      { id: "hand", model, tools: { look: undefined } },
      "tools.look",
      ["createTool("]
    ],
    ["an unknown default", { id: "hand", model, defaultOptions: { maxStep: 1 } }, "maxStep", ["maxSteps"]],
    [
      "a default out of range",
      { id: "hand", model, defaultOptions: { maxSteps: 0 } },
      "maxSteps",
      ["at least 1"]
    ]
  ]

  it.each(wrong)("%s", (_, options, field, words) => {
    expectRefusal(
      caught(() => new Agent(options as AgentOptions)),
      field,
      ...words
    )
  })

  it("a name alone is an id", () => {
    expect(new Agent({ name: "hand", model })).toMatchObject({ id: "hand", name: "hand" })
    expect(new Agent({ id: "hand", model })).toMatchObject({ id: "hand", name: "hand" })
  })
})

describe("wrong options of a run", () => {
  const model = saying("x")
  const agent = new Agent({ id: "hand", model })
  const wrong: ReadonlyArray<readonly [string, unknown, string, string]> = [
    ["no steps", { maxSteps: 0 }, "maxSteps", "at least 1"],
    ["a fraction of a step", { maxSteps: 1.5 }, "maxSteps", "1.5"],
    ["no number of steps", { maxSteps: Number.NaN }, "maxSteps", "NaN"],
    ["steps without end", { maxSteps: Number.POSITIVE_INFINITY }, "maxSteps", "Infinity"],
    ["steps in words", { maxSteps: "3" }, "maxSteps", "whole number"],
    ["no tool at a time", { toolCallConcurrency: 0 }, "toolCallConcurrency", "at least 1"],
    ["a tool that is none", { tools: { look: 3 } }, "tools.look", "createTool("],
    ["a misspelt option", { onfinish: () => undefined }, "onfinish", "onFinish"],
    ["an option of the agent", { model }, "model", "new Agent({ model })"]
  ]

  it.each(wrong)("%s", async (_, options, field, word) => {
    expectRefusal(await rejection(agent.stream("Go!", options as StreamOptions)), field, word)
    expectRefusal(await rejection(agent.generate("Go!", options as StreamOptions)), field, word)
    expect(model.requests).toHaveLength(0)
  })

  it("a message of no known shape rejects with its place", async () => {
    const error = await rejection(
      agent.stream([{ role: "user", content: "x" }, { role: "captain" }] as never)
    )
    expect(error).toMatchObject({ name: "InvalidMessage", path: expect.stringContaining("[1]") })
    expect(model.requests).toHaveLength(0)
  })
})

describe("wrong tools", () => {
  const wrong: ReadonlyArray<readonly [string, unknown, string]> = [
    ["no id", { execute: () => 1 }, "id"],
    ["an empty id", { id: "" }, "id"],
    ["an id that providers refuse", { id: "look up" }, "id"],
    ["an unknown option", { id: "look", inputschema: {} }, "inputschema"]
  ]

  it.each(wrong)("%s", (_, options, field) => {
    expectRefusal(
      caught(() => createTool(options as Parameters<typeof createTool>[0])),
      field
    )
  })

  it("a schema that cannot be used", () => {
    expectRefusal(
      caught(() => createTool({ id: "look", inputSchema: 3 as never })),
      "inputSchema"
    )
  })
})
