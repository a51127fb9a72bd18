/** Where a call runs and by which limits, who is told of it, and what a model may say about it. */
import type { LanguageModel } from "eddy"
import { describe, expect, it } from "vitest"
import {
  inherited,
  isEligible,
  type Override,
  overrideField,
  promptOf,
  readOverride,
  resolve,
  splitArguments,
  type ToolFacts,
  withOverride
} from "../../src/background/resolution.js"
import { type AgentOptions, agentSettingsOf } from "../../src/background/settings.js"
import { type BackgroundOptions, backgroundOf } from "../../src/tool/background.js"

const nothing: Override = { enabled: undefined, timeoutMs: undefined, maxRetries: undefined }

const toolOf = (background?: BackgroundOptions): ToolFacts => ({
  name: "agent-look",
  aliases: ["look", "look-id"],
  background: background === undefined ? undefined : backgroundOf(background)
})

const agentOf = (options: AgentOptions | undefined) =>
  options === undefined ? undefined : agentSettingsOf(options)

const manager = { timeoutMs: 1, maxRetries: 2, waitTimeoutMs: 3 }

const resolved = (agent?: AgentOptions, tool?: BackgroundOptions, override: unknown = undefined) =>
  resolve(agentOf(agent), toolOf(tool), readOverride(override), manager)

describe("whether a call runs in the background", () => {
  const on: BackgroundOptions = { enabled: true }
  const off: BackgroundOptions = { enabled: false }
  const rows: ReadonlyArray<
    readonly [
      agent: AgentOptions | undefined,
      tool: BackgroundOptions | undefined,
      override: boolean | undefined,
      isBackground: boolean
    ]
  > = [
    // Nobody has said anything, or the tool has.
    [undefined, undefined, undefined, false],
    [undefined, on, undefined, true],
    [undefined, off, undefined, false],
    [undefined, { timeout: 10 }, undefined, false],
    [{}, undefined, undefined, false],
    [{}, on, undefined, true],
    [{}, off, undefined, false],
    [{ tools: { other: true } }, on, undefined, true],
    [{ tools: { other: true } }, undefined, undefined, false],
    // The agent speaks of it by its name, by the id of its tool, and by that of the agent that it is.
    ...["agent-look", "look", "look-id"].flatMap((name): typeof rows => [
      [{ tools: { [name]: true } }, undefined, undefined, true],
      [{ tools: { [name]: true } }, off, undefined, true],
      [{ tools: { [name]: false } }, on, undefined, false],
      [{ tools: { [name]: {} } }, off, undefined, true],
      [{ tools: { [name]: { enabled: false } } }, on, undefined, false],
      [{ tools: { [name]: { enabled: true } } }, undefined, undefined, true],
      [{ tools: { [name]: { timeout: 5 } } }, undefined, undefined, true],
      [{ disabled: true, tools: { [name]: true } }, on, undefined, false],
      [{ tools: { [name]: true } }, undefined, false, false],
      [{ tools: { [name]: false } }, on, true, false]
    ]),
    // The name counts before other names.
    [{ tools: { look: true, "agent-look": false } }, on, undefined, false],
    [{ tools: { "look-id": false, look: true } }, undefined, undefined, true],
    // All of them.
    [{ tools: "all" }, undefined, undefined, true],
    [{ tools: "all" }, off, undefined, true],
    [{ tools: "all", disabled: true }, on, undefined, false],
    // None of them.
    [{ disabled: true }, on, undefined, false],
    [{ disabled: false }, on, undefined, true],
    [{ disabled: true }, on, true, false],
    // The model brings back what is allowed, and allows nothing itself.
    [undefined, on, false, false],
    [undefined, on, true, true],
    [undefined, undefined, true, false],
    [undefined, off, true, false],
    [{ tools: "all" }, undefined, false, false],
    [{ tools: "all" }, undefined, true, true]
  ]

  it.each(rows)("agent %j, tool %j, model %s: %s", (agent, tool, enabled, isBackground) => {
    expect(resolved(agent, tool, { enabled }).isBackground).toBe(isBackground)
    // Whatever the model says, it is told of what a developer has allowed.
    const isAllowed = isEligible(agentOf(agent), toolOf(tool))
    expect(isAllowed).toBe(enabled === false ? resolved(agent, tool).isBackground : isBackground)
  })
})

describe("the limits of a call", () => {
  const agent: AgentOptions = { tools: { look: { timeout: 10, retries: 20, waitTimeout: 30 } } }
  const tool: BackgroundOptions = { enabled: true, timeout: 100, retries: 200, waitTimeout: 300 }
  const model = { timeoutMs: 1000, maxRetries: 999 }
  const limits = (timeoutMs: number, maxRetries: number, waitTimeoutMs: number | undefined) => ({
    isBackground: true,
    timeoutMs,
    maxRetries,
    waitTimeoutMs
  })

  it("are those of the model, the agent's entry, the tool, the manager: the first that has one", () => {
    expect(resolved(agent, tool, model)).toStrictEqual(limits(1000, 999, 30))
    expect(resolved(agent, tool)).toStrictEqual(limits(10, 20, 30))
    expect(resolved({}, tool)).toStrictEqual(limits(100, 200, 300))
    expect(resolved(undefined, { enabled: true })).toStrictEqual(limits(1, 2, 3))
    expect(resolved({ tools: { look: true } }, { enabled: false, timeout: 100 })).toStrictEqual(
      limits(100, 2, 3)
    )
  })

  it("are decided field by field", () => {
    expect(resolved({ tools: { look: { timeout: 10 } } }, { retries: 0 }, { maxRetries: 0 })).toStrictEqual(
      limits(10, 0, 3)
    )
    expect(resolved({ tools: { look: { retries: 0 } } }, tool)).toStrictEqual(limits(100, 0, 300))
    expect(resolved(agent, tool, { timeoutMs: 7 })).toStrictEqual(limits(7, 20, 30))
  })

  it("wait as the entry says, then the tool, then the agent, then the manager", () => {
    const waiting = (entry?: number, own?: number, all?: number) =>
      resolved(
        {
          tools: { look: entry === undefined ? true : { waitTimeout: entry } },
          ...(all === undefined ? {} : { waitTimeout: all })
        },
        own === undefined ? {} : { waitTimeout: own }
      ).waitTimeoutMs
    expect(waiting(10, 20, 30)).toBe(10)
    expect(waiting(undefined, 20, 30)).toBe(20)
    expect(waiting(undefined, undefined, 30)).toBe(30)
    expect(waiting()).toBe(3)
    expect(
      resolve(undefined, toolOf({ enabled: true }), nothing, { ...manager, waitTimeoutMs: undefined })
        .waitTimeoutMs
    ).toBeUndefined()
  })

  it("of 'all' are the tool's, then the manager's", () => {
    expect(resolved({ tools: "all", waitTimeout: 40 })).toStrictEqual(limits(1, 2, 40))
    expect(resolved({ tools: "all" }, { enabled: false, timeout: 9 })).toStrictEqual(limits(9, 2, 3))
  })
})

describe("what a model wrote about a call", () => {
  it.each([
    undefined,
    null,
    true,
    false,
    0,
    "",
    "enabled",
    [],
    [{ enabled: false }],
    {},
    { Enabled: false },
    { timeout: 5, retries: 5 }
  ])("is nothing: %j", written => {
    expect(readOverride(written)).toStrictEqual(nothing)
  })

  it.each([null, 0, 1, "false", "no", {}, []])("says nothing of where it runs: %j", enabled => {
    expect(readOverride({ enabled, timeoutMs: 5 })).toStrictEqual({ ...nothing, timeoutMs: 5 })
  })

  it.each([null, 0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, "5", true, {}])(
    "says no time: %j",
    timeoutMs => {
      expect(readOverride({ timeoutMs, maxRetries: 1 })).toStrictEqual({ ...nothing, maxRetries: 1 })
    }
  )

  it.each([null, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 1001, "1", true, []])(
    "says no number of retries: %j",
    maxRetries => {
      expect(readOverride({ maxRetries, enabled: false })).toStrictEqual({ ...nothing, enabled: false })
    }
  )

  it("is taken as it is otherwise, and nothing more", () => {
    const written = { enabled: true, timeoutMs: 0.5, maxRetries: 0, waitTimeoutMs: 5 }
    expect(readOverride(written)).toStrictEqual({ enabled: true, timeoutMs: 0.5, maxRetries: 0 })
    expect(readOverride({ timeoutMs: 2 ** 31 - 1, maxRetries: 1000 })).toStrictEqual({
      enabled: undefined,
      timeoutMs: 2 ** 31 - 1,
      maxRetries: 1000
    })
  })

  it.each([undefined, null, 5, "text", [1], [{ _background: 1 }], { n: 1 }, { inner: { _background: {} } }])(
    "is not among these arguments: %j",
    written => {
      expect(splitArguments(written)).toStrictEqual({ input: written, aside: undefined })
    }
  )

  it.each([{ enabled: false }, null, "odd", undefined])("is taken out of the arguments: %j", aside => {
    const written = { n: 1, [overrideField]: aside }
    expect(splitArguments(written)).toStrictEqual({ input: { n: 1 }, aside })
    expect(written).toStrictEqual({ n: 1, [overrideField]: aside })
  })
})

describe("what a supervisor takes over from an agent below", () => {
  const quiet = toolOf()
  const slow = toolOf({ enabled: true, timeout: 50, retries: 3 })
  const slower = { ...toolOf({ enabled: true, timeout: 80 }), name: "slower", aliases: [] }

  it("is nothing when none of its tools runs in the background", () => {
    expect(inherited(undefined, [])).toBeUndefined()
    expect(inherited(undefined, [quiet])).toBeUndefined()
    expect(inherited(agentOf({}), [quiet])).toBeUndefined()
    expect(inherited(agentOf({ tools: { look: false } }), [slow])).toBeUndefined()
    expect(inherited(agentOf({ disabled: true }), [slow, slower])).toBeUndefined()
    expect(inherited(agentOf({ disabled: true, tools: "all" }), [])).toBeUndefined()
    expect(inherited(agentOf({ disabled: true, tools: { look: true } }), [])).toBeUndefined()
  })

  it.each<readonly [AgentOptions | undefined, ReadonlyArray<ToolFacts>]>([
    [undefined, [slow]],
    [undefined, [quiet, slow]],
    [{}, [slow]],
    [{ tools: { look: true } }, [quiet]],
    [{ tools: "all" }, [quiet]],
    // What a function makes is not known before it does.
    [{ tools: "all" }, []],
    [{ tools: { look: { timeout: 5 } } }, []]
  ])("is that the whole call does: %j", (agent, tools) => {
    expect(inherited(agentOf(agent), tools)?.enabled).toBe(true)
  })

  it("may take as long as the slowest of them, and waits as the agent does", () => {
    expect(inherited(undefined, [slow, slower])).toMatchObject({ timeoutMs: 80, maxRetries: undefined })
    expect(inherited(agentOf({ tools: { slower: false } }), [slow, slower])?.timeoutMs).toBe(50)
    expect(inherited(agentOf({ tools: { look: { timeout: 90 } } }), [slow, slower])?.timeoutMs).toBe(90)
    expect(inherited(agentOf({ tools: { made: { timeout: 99 } } }), [])?.timeoutMs).toBe(99)
    expect(inherited(agentOf({ tools: "all" }), [quiet])?.timeoutMs).toBeUndefined()
    expect(inherited(agentOf({ waitTimeout: 7 }), [slow])?.waitTimeoutMs).toBe(7)
    expect(inherited(undefined, [slow])?.waitTimeoutMs).toBeUndefined()
  })

  it("is told to whom the agent tells its tasks", () => {
    const onTaskComplete = () => undefined
    expect(inherited(agentOf({ onTaskComplete }), [slow])?.callbacks.onComplete).toBe(onTaskComplete)
    expect(inherited(undefined, [slow])?.callbacks).toStrictEqual({
      onComplete: undefined,
      onFailed: undefined,
      onCancelled: undefined
    })
  })
})

describe("a tool as the model is told of it", () => {
  const definition = {
    name: "look",
    description: "Looks.",
    inputSchema: {
      type: "object",
      properties: { n: { type: "number" } },
      required: ["n"],
      additionalProperties: false
    }
  }

  it("has what it may say about a call, and everything else as it was", () => {
    const before = structuredClone(definition)
    const told = withOverride(definition)
    expect(definition).toStrictEqual(before)
    expect(told).toMatchObject({
      name: "look",
      description: "Looks.",
      inputSchema: {
        type: "object",
        properties: {
          n: { type: "number" },
          _background: {
            type: "object",
            properties: {
              enabled: { type: "boolean" },
              timeoutMs: { type: "number" },
              maxRetries: { type: "integer" }
            }
          }
        },
        required: ["n"],
        additionalProperties: false
      }
    })
    // Whatever is told is heard.
    const { _background: override } = (told.inputSchema as { properties: Record<string, object> }).properties
    expect(override).not.toHaveProperty("required")
  })

  it("that takes no arguments takes this one", () => {
    expect(withOverride({ name: "look", inputSchema: { type: "object" } }).inputSchema).toHaveProperty(
      "properties._background"
    )
  })

  it.each<LanguageModel.ToolDefinition["inputSchema"]>([
    { type: "string" },
    { anyOf: [{ type: "object" }] },
    {},
    { type: ["object", "null"] }
  ])("stays as it is when it takes no object: %j", inputSchema => {
    const other = { name: "look", inputSchema }
    expect(withOverride(other)).toBe(other)
  })

  it("that has an argument of this name keeps it", () => {
    const inputSchema = { type: "object", properties: { _background: { type: "string" } } }
    const own = { name: "look", inputSchema }
    expect(withOverride(own)).toBe(own)
  })

  it("is named in what the model is told about all of them", () => {
    const prompt = promptOf(["look", "dig"])
    expect(prompt).toContain("look, dig")
    expect(prompt).toContain('"_background"')
    expect(prompt).not.toContain("\n")
  })
})
