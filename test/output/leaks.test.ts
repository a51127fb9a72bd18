/** What is left when a run is over, however it ended: no listener, no timer, no open source, nothing that holds the run. */
import { getEventListeners, setMaxListeners } from "node:events"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Agent, type ModelPart, Tool } from "eddy"
import { createTool, Eddy, Agent as PromiseAgent, type ModelOutput as PromiseOutput } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Effect, Exit, Fiber, Stream } from "effect"
import { describe, expect, it } from "vitest"
import {
  collect,
  delta,
  finish,
  flush,
  modelOf,
  refuseUnhandledRejections,
  until
} from "../support/readers.js"

refuseUnhandledRejections()

/** A signal that counts who listens, and remembers everybody that ever did. */
const countedSignal = () => {
  const controller = new AbortController()
  const { signal } = controller
  // Node warns of more than ten.
  setMaxListeners(0, signal)
  let net = 0
  let added = 0
  const { addEventListener, removeEventListener } = signal
  const listeners = new Set<unknown>()
  const count = (): void => {
    net = listeners.size
  }
  signal.addEventListener = (...args: Parameters<AbortSignal["addEventListener"]>) => {
    added++
    listeners.add(args[1])
    count()
    addEventListener.apply(signal, args)
  }
  signal.removeEventListener = (...args: Parameters<AbortSignal["removeEventListener"]>) => {
    listeners.delete(args[1])
    count()
    removeEventListener.apply(signal, args)
  }
  return {
    controller,
    signal,
    net: () => Math.max(net, getEventListeners(signal, "abort").length),
    added: () => added
  }
}

const look = createTool({ id: "look", execute: () => "found" })

/** Answers of a run that calls a tool, then says something and ends as it is told to. */
const modelThat = (end: ModelPart.ModelPart) =>
  modelOf(async function* (call) {
    if (call % 2 === 0) {
      yield ScriptedModel.toolCall(`c${call}`, "look", {})
      yield finish("tool-calls")
    } else {
      yield delta("a", "said")
      yield end
    }
  })

const quiet = { onError: () => undefined }

type Endings = Readonly<Record<string, (signal: AbortSignal) => () => Promise<unknown>>>

/** Each gives a way to make one more run to its end. */
const endings: Endings = {
  success: abortSignal => {
    const agent = new PromiseAgent({ id: "hand", model: modelThat(finish("stop")), tools: { look } })
    return async () => expect((await agent.generate("Look!", { abortSignal })).text).toBe("said")
  },
  failure: abortSignal => {
    const model = modelThat({ type: "error", error: "overloaded" })
    const agent = new PromiseAgent({ id: "hand", model, tools: { look } })
    return async () => {
      const output = await agent.stream("Look!", { abortSignal, ...quiet })
      expect((await output.getFullOutput()).status).toBe("failed")
    }
  },
  "an early break": abortSignal => {
    const agent = new PromiseAgent({ id: "hand", model: modelThat(finish("stop")), tools: { look } })
    return async () => {
      const output = await agent.stream("Look!", { abortSignal })
      for await (const chunk of output.fullStream) if (chunk.type === "tool-call") break
      expect(await output.finishReason).toBe("stop")
    }
  },
  cancel: abortSignal => {
    const model = modelOf(async function* () {
      yield delta("a", "said")
      yield await new Promise<never>(() => undefined)
    })
    const agent = new PromiseAgent({ id: "hand", model })
    return async () => {
      const output = await agent.stream("Look!", { abortSignal })
      for await (const _ of output.textStream) break
      await output.cancel()
    }
  },
  "a refusal before the run": abortSignal => {
    const agent = new PromiseAgent({ id: "hand", model: modelThat(finish("stop")) })
    return async () => {
      await expect(agent.stream("Look!", { abortSignal, maxSteps: 0 })).rejects.toThrow("maxSteps")
      await expect(agent.stream([{ role: "captain" }] as never, { abortSignal })).rejects.toThrow()
    }
  },
  "a stream of the Effect face": abortSignal => {
    const tool = Tool.make("look", { execute: () => Effect.succeed("found") })
    const agent = Agent.make({ id: "hand", model: modelThat(finish("stop")), tools: [tool] })
    return () => Effect.runPromise(Stream.runDrain(Agent.stream(agent, "Look!", { abortSignal })))
  },
  "a stream of the Effect face that is left": abortSignal => {
    const tool = Tool.make("look", { execute: () => Effect.succeed("found") })
    const agent = Agent.make({ id: "hand", model: modelThat(finish("stop")), tools: [tool] })
    return () =>
      Effect.runPromise(Stream.runDrain(Stream.take(Agent.stream(agent, "Look!", { abortSignal }), 3)))
  },
  "a run of the Effect face whose scope closes": abortSignal => {
    const model = modelOf(async function* () {
      yield delta("a", "said")
      yield await new Promise<never>(() => undefined)
    })
    const agent = Agent.make({ id: "hand", model })
    return () =>
      Effect.runPromise(
        Effect.scoped(
          Effect.flatMap(Agent.run(agent, "Look!", { abortSignal }), output =>
            Stream.runDrain(Stream.take(output.textStream, 1))
          )
        )
      )
  },
  "an interrupted fiber": abortSignal => {
    const agent = Agent.make({
      id: "hand",
      model: modelOf(async function* () {
        yield await new Promise<never>(() => undefined)
      })
    })
    return async () => {
      const fiber = Effect.runFork(Agent.generate(agent, "Look!", { abortSignal }))
      await flush(2)
      expect(Exit.isInterrupted(await Effect.runPromise(Fiber.interrupt(fiber)))).toBe(true)
    }
  }
}

describe("one signal for many runs, one after the other", () => {
  it.each(Object.entries(endings))("%s leaves no listener", async (name, ending) => {
    const { added, net, signal } = countedSignal()
    const runOnce = ending(signal)
    const runs = ["success", "failure", "an early break"].includes(name) ? 500 : 100
    for (let count = 0; count < runs; count++) {
      await runOnce()
      // What a run closes after it has told its end.
      await flush(1)
      expect(net()).toBe(0)
    }
    // The check sees listeners at all; a run that is refused never had one.
    expect(added()).toBe(name === "a refusal before the run" ? 0 : runs)
  })

  it("a signal that fires stops the runs that are going, and lets go of them", async () => {
    const { controller, net, signal } = countedSignal()
    const agent = new PromiseAgent({
      id: "hand",
      model: modelOf(async function* () {
        yield await new Promise<never>(() => undefined)
      })
    })
    const outputs = await Promise.all(
      Array.from({ length: 20 }, () => agent.stream("Go!", { abortSignal: signal }))
    )
    await flush()
    // One for all of them: an engine warns of a signal with many listeners.
    expect(net()).toBe(1)
    controller.abort("all of you")
    const all = await Promise.all(outputs.map(output => output.getFullOutput()))
    expect(all.map(({ error }) => error?.cause)).toEqual(Array.from({ length: 20 }, () => "all of you"))
    await flush()
    expect(net()).toBe(0)
  })
})

describe("memory", () => {
  setFlagsFromString("--expose-gc")
  const gc: unknown = runInNewContext("gc")

  const collectGarbage = async (isGone: () => boolean, rounds: number): Promise<void> => {
    if (typeof gc !== "function") expect.fail("no garbage collector to call")
    for (let round = 0; round < rounds && !isGone(); round++) {
      await flush(2)
      gc()
    }
  }

  const signal = new AbortController().signal

  const ways: Readonly<Record<string, (agent: PromiseAgent) => Promise<PromiseOutput>>> = {
    "read to its end": async agent => {
      const output = await agent.stream("Look!", { abortSignal: signal, ...quiet })
      await collect(output.fullStream)
      return output
    },
    "left early": async agent => {
      const output = await agent.stream("Look!", { abortSignal: signal, ...quiet })
      for await (const _ of output.fullStream) break
      await output.getFullOutput()
      return output
    },
    cancelled: async agent => {
      const output = await agent.stream("Look!", { abortSignal: signal, ...quiet })
      await output.cancel()
      return output
    }
  }

  const models = {
    "a run that succeeds": () => modelThat(finish("stop")),
    "a run that fails": () => modelThat({ type: "error", error: "overloaded" })
  }

  const cases = Object.entries(models).flatMap(([kind, model]) =>
    Object.entries(ways).map(([way, run]) => ({ kind, way, model, run }))
  )

  it.each(cases)("$kind, $way, is let go of by its agent, container and signal", async ({ model, run }) => {
    const agent = new PromiseAgent({ id: "hand", model: model(), tools: { look } })
    const eddy = new Eddy({ agents: { agent } })
    const held: Array<PromiseOutput> = []
    const watch = async () => {
      const output = await run(agent)
      held.push(output)
      return [new WeakRef(output), new WeakRef(await output.getFullOutput())] as const
    }
    const refs = await watch()
    const isGone = () => refs.every(ref => ref.deref() === undefined)
    await collectGarbage(isGone, 2)
    // Held by this test, and so not gone: the check can fail.
    expect(isGone()).toBe(false)
    held.length = 0
    await collectGarbage(isGone, 20)
    expect(isGone()).toBe(true)
    await eddy.shutdown()
  })
})

describe("many at once", () => {
  it("200 runs of every kind settle, and nothing is left open", async () => {
    const { net, signal } = countedSignal()
    let open = 0
    const model = modelOf(call => {
      const parts: ReadonlyArray<ModelPart.ModelPart> = [
        delta("a", "said"),
        ...(call % 3 === 0
          ? [finish("stop")]
          : call % 3 === 1
            ? [{ type: "error" as const, error: "overloaded" }]
            : Array.from({ length: 500 }, () => delta("a", "x")))
      ]
      open++
      let next = 0
      return new ReadableStream<ModelPart.ModelPart>(
        {
          pull: controller => {
            const part = parts[next++]
            if (part !== undefined) return controller.enqueue(part)
            open--
            controller.close()
          },
          cancel: () => {
            open--
          }
        },
        { highWaterMark: 0 }
      )
    })
    const agent = new PromiseAgent({ id: "hand", model, defaultOptions: quiet })
    const outputs = await Promise.all(
      Array.from({ length: 200 }, () => agent.stream("Go!", { abortSignal: signal }))
    )
    const all = await Promise.all(
      outputs.map(async (output, place) => {
        if (place % 5 === 0) await output.cancel()
        else if (place % 5 === 1) for await (const _ of output.fullStream) break
        else if (place % 5 === 2) await collect(output.fullStream)
        return output.getFullOutput()
      })
    )
    const statuses = new Set(all.map(({ status }) => status))
    expect(statuses).toEqual(new Set(["success", "failed", "aborted"]))
    expect(outputs.every(({ status }) => status !== "running")).toBe(true)
    await until(() => open === 0, "every source was closed or cancelled")
    expect(net()).toBe(0)
  })
})
