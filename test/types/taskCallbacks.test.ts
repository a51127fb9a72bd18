// @effect-diagnostics missingEffectContext:off
/** What callbacks of tasks may return: whatever needs nothing, on both faces and at every level. */
import { Agent, BackgroundTasks, Tool } from "eddy"
import * as Facade from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Context, Effect } from "effect"
import { describe, it } from "vitest"

class Search extends Context.Tag("Search")<Search, string>() {}

const model = ScriptedModel.make([])
const execute = () => Effect.succeed(1)
const needy = () => Search
const seen: Array<unknown> = []
const byId = new Map<string, unknown>()

describe("callbacks of tasks", () => {
  it("return anything that is no Effect, and Effects without requirements", () => {
    Tool.make("a", { execute, background: { onComplete: task => seen.push(task) } })
    Tool.make("a", { execute, background: { onFailed: task => byId.set(task.id, task) } })
    Tool.make("a", { execute, background: { onCancelled: () => {} } })
    Tool.make("a", { execute, background: { onComplete: async () => {} } })
    Tool.make("a", { execute, background: { onComplete: ({ id }) => Effect.log(id) } })
    Tool.make("a", { execute, background: { onFailed: () => Effect.fail("logged") } })
    const tool = { id: "a", description: "", execute: () => 1 }
    Facade.createTool({ ...tool, background: { onComplete: async () => {} } })
    Facade.createTool({ ...tool, background: { onComplete: task => seen.push(task) } })
    Facade.createTool({ ...tool, background: { onFailed: ({ id }) => console.log(id) } })
    Facade.createTool({ ...tool, background: { onCancelled: task => byId.set(task.id, task) } })
  })

  it("return no Effect that needs something", () => {
    // @ts-expect-error a task has no services but those of its manager
    Tool.make("a", { execute, background: { onComplete: needy } })
    // @ts-expect-error the same
    Tool.make("a", { execute, background: { onFailed: needy } })
    // @ts-expect-error the same
    Tool.make("a", { execute, background: { onCancelled: needy } })
    // @ts-expect-error the same of an agent
    Agent.make({ id: "a", model, backgroundTasks: { onTaskComplete: needy } })
    // @ts-expect-error the same
    Agent.make({ id: "a", model, backgroundTasks: { onTaskFailed: needy } })
    // @ts-expect-error the same
    Agent.make({ id: "a", model, backgroundTasks: { onTaskCancelled: needy } })
    // @ts-expect-error the same of the manager
    BackgroundTasks.layer({ onTaskComplete: needy })
    // @ts-expect-error the same
    BackgroundTasks.layer({ onTaskFailed: needy })
    // @ts-expect-error the same
    BackgroundTasks.layer({ onTaskCancelled: needy })
  })

  it("return no Effect at all on the Promise face, which runs none", () => {
    const tool = { id: "a", description: "", execute: () => 1 }
    // @ts-expect-error an Effect would never run
    Facade.createTool({ ...tool, background: { onComplete: () => Effect.void } })
    // @ts-expect-error the same of an agent
    new Facade.Agent({ id: "a", model, backgroundTasks: { onTaskFailed: () => Effect.void } })
    const storage = new Facade.InMemoryStore()
    // @ts-expect-error the same of a container
    new Facade.Eddy({ storage, backgroundTasks: { enabled: true, onTaskComplete: () => Effect.void } })
  })
})
