/** What remains of a run, however it ended: what the next one is told, and nothing else. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Agent, Conversation, Id, type Message, ThreadStore } from "eddy"
import { Effect, FastCheck as fc, Layer } from "effect"
import { beforeAll, describe, expect, it } from "vitest"
import { turn } from "../agent/kit.js"
import { promptFaults as requestFaults } from "../agent/memoryKit.js"
import { conversationFaults } from "../support/conversationFaults.js"
import { callsIn, type Faults, finishMessagesFaults, promptFaults } from "./checks.js"
import { heard, streamed } from "./effectFace.js"
import { faces } from "./faces.js"
import { holds, loadEverything, patience } from "./kit.js"
import { left, quietTimers } from "./leftovers.js"
import { played } from "./promiseFace.js"
import { type Scenario, scenarios, tell } from "./scenario.js"
import type { Told } from "./told.js"
import { lastAnswer, memory, topRun, type World } from "./world.js"

beforeAll(loadEverything, 30_000)

/** What a model is told in the next turn of the thread. */
const nextPrompt = async (world: World): Promise<ReadonlyArray<Message.Message>> => {
  world.heal()
  const before = world.asked.length
  const agent = Agent.make({ id: "next", model: world.model("next", "next", [lastAnswer]) })
  await Agent.generate(agent, "next", { memory }).pipe(
    Effect.provide(
      Layer.merge(
        Layer.succeed(ThreadStore.ThreadStore, world.store),
        Layer.succeed(Id.IdGenerator, world.ids)
      )
    ),
    Effect.runPromise
  )
  return world.asked[before]?.request.messages ?? []
}

/** What the models of the run itself were told. */
const ownFaults = ({ asked }: World): Faults =>
  asked.flatMap(({ agent, request }) => requestFaults(request.messages).map(fault => `${agent}: ${fault}`))

/** What would be told if the process had ended without a word, at any moment. */
const crashFaults = async ({ executions, moments }: World): Promise<Faults> => {
  const faults: Array<string> = []
  for (const messages of moments) {
    const prompt = await Effect.runPromise(Conversation.fromInput([...messages, "next"]))
    faults.push(...conversationFaults(prompt, () => false))
    for (const { call, outcome } of callsIn(prompt)) {
      const isCutShort = executions.some(
        ({ isOver, runId, toolCallId }) => runId === topRun && toolCallId === call && !isOver
      )
      if (outcome === "success" && isCutShort) faults.push(`${call} looks successful`)
    }
  }
  return faults.map(fault => `after a crash: ${fault}`)
}

const nextFaults = async (told: Told): Promise<Faults> => [
  ...ownFaults(told.world),
  ...(await crashFaults(told.world)),
  ...finishMessagesFaults(told),
  ...promptFaults(told, await nextPrompt(told.world))
]

describe("5: the next prompt is well formed, and tells what was told", () => {
  it(
    "on the thread of a cold stream, whether it ended, was stopped, or was left",
    () =>
      holds(scenarios({ hasThread: true, stops: ["signal", "interrupt", "leave"] }), 70, async scenario =>
        nextFaults(await streamed(scenario))
      ),
    patience
  )

  it(
    "on the thread of a hot run, whether it ended, was cancelled, or lost its scope",
    () =>
      holds(
        scenarios({ hasThread: true, hasReaders: true, stops: ["signal", "cancel", "scope"] }),
        35,
        async scenario => nextFaults(await heard(scenario))
      ),
    patience
  )

  it(
    "on the thread of a hot run, whether it ended, was cancelled, or lost its container",
    () =>
      holds(
        scenarios({ hasThread: true, hasReaders: true, stops: ["signal", "cancel", "shutdown"] }),
        35,
        async scenario => nextFaults(await played(scenario))
      ),
    patience
  )

  it(
    "from what finish remembers, without a thread",
    () =>
      holds(scenarios({ hasThread: false, stops: ["signal"] }), 35, async scenario => {
        const told = await streamed(scenario)
        const finish = told.chunks.at(-1)
        if (finish?.type !== "finish") return ["no finish"]
        const next = await Effect.runPromise(Conversation.fromInput([...finish.payload.messages.all, "next"]))
        return [
          ...ownFaults(told.world),
          ...finishMessagesFaults(told),
          ...conversationFaults(next, () => false)
        ]
      }),
    patience
  )
})

describe.each(Object.entries(faces))("11: after %s", (_, { play, scenarios }) => {
  it(
    "no fiber, timer, listener or open source is left",
    () =>
      holds(scenarios, 45, async (scenario: Scenario) => {
        const before = await quietTimers()
        return left(await play(scenario), before)
      }),
    patience
  )
})

setFlagsFromString("--expose-gc")
const gc: unknown = runInNewContext("gc")

const collectGarbage = async (isGone: () => boolean, rounds: number): Promise<void> => {
  if (typeof gc !== "function") expect.fail("no garbage collector to call")
  for (let round = 0; round < rounds && !isGone(); round++) {
    await turn()
    await turn()
    gc()
  }
}

describe.each(Object.entries(faces))("11: after %s", (_, { play, scenarios }) => {
  it(
    "nobody holds what it has told",
    async () => {
      const drawn = fc.sample(scenarios, 12)
      const owners: Array<unknown> = []
      const held: Array<unknown> = []
      const watch = async (scenario: Scenario): Promise<WeakRef<object> | undefined> => {
        const { chunks, owner, world } = await play(scenario)
        owners.push(owner, world)
        const last = chunks.at(-1)
        if (last === undefined) return undefined
        held.push(last)
        return new WeakRef(last)
      }
      const refs: Array<readonly [Scenario, WeakRef<object>]> = []
      for (const scenario of drawn) {
        const ref = await watch(scenario)
        if (ref !== undefined) refs.push([scenario, ref])
      }
      const remaining = () => refs.filter(([, ref]) => ref.deref() !== undefined)
      await collectGarbage(() => remaining().length === 0, 2)
      // Held by this test, and so not gone: the check can fail.
      expect(remaining()).toHaveLength(refs.length)
      held.length = 0
      await collectGarbage(() => remaining().length === 0, 20)
      expect(remaining().map(([scenario]) => tell(scenario))).toStrictEqual([])
      expect(owners).toHaveLength(2 * drawn.length)
    },
    patience
  )
})
