/** What is left of a run when it is over, however it ended: nothing. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { FastCheck as fc } from "effect"
import { beforeAll, describe, expect, it } from "vitest"
import { turn } from "../agent/kit.js"
import type { Faults } from "./checks.js"
import { heard, streamed } from "./effectFace.js"
import { holds, loadEverything, patience } from "./kit.js"
import { played } from "./promiseFace.js"
import { type Scenario, scenarios, tell } from "./scenario.js"
import type { World } from "./world.js"

beforeAll(loadEverything, 30_000)

/** Timers of the platform, and whatever waits for the next turn. */
const timers = (): number =>
  process.getActiveResourcesInfo().filter(name => name === "Timeout" || name === "Immediate").length

/** Turns of the event loop that whatever has been stopped may take to be gone. */
const grace = 200

const waitUntil = async (isSo: () => boolean): Promise<boolean> => {
  for (let count = 0; count < grace && !isSo(); count++) await turn()
  return isSo()
}

/** What is left of a run that is over. */
const left = async (
  { fibers, world }: { readonly fibers: number; readonly world: World },
  before: number
): Promise<Faults> => {
  const count = async (what: string, now: () => number): Promise<Faults> =>
    (await waitUntil(() => now() <= 0)) ? [] : [`${now()} ${what}`]
  return [
    ...(fibers === 0 ? [] : [`${fibers} fibers`]),
    ...(await count("listeners of the signal", () => world.listening)),
    ...(await count("open sources", () => world.openSources.size)),
    ...(await count("sleepers of the clock", () => world.clock.sleeping)),
    ...(await count("timers", () => timers() - before))
  ]
}

const faces = {
  "a cold stream": {
    play: streamed,
    scenarios: scenarios({ stops: ["signal", "interrupt", "leave"] })
  },
  "a hot run of the Effect face": {
    play: heard,
    scenarios: scenarios({ hasReaders: true, stops: ["signal", "cancel", "scope"] })
  },
  "a hot run of the Promise face": {
    play: played,
    scenarios: scenarios({ hasReaders: true, stops: ["signal", "cancel", "shutdown"] })
  }
}

describe.each(Object.entries(faces))("11: after %s", (_, { play, scenarios }) => {
  it(
    "no fiber, timer, listener or open source is left",
    () =>
      holds(scenarios, 120, async (scenario: Scenario) => {
        await turn()
        const before = timers()
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
      const drawn = fc.sample(scenarios, 25)
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
