/** Whatever user code throws or returns, a run ends and so does a task, on every face. */
import { beforeAll, describe, expect, it } from "vitest"
import { loadEverything } from "../agent/backgroundKit.js"
import { inTurns } from "../invariants/world.js"
import { hostileValues } from "../support/hostileValues.js"
import { refuseUnhandledRejections } from "../support/readers.js"
import { faces, type Place, places, type Ran, type World } from "./hostileKit.js"

refuseUnhandledRejections()

/** What the first run loads is loaded before turns are counted. */
beforeAll(async () => {
  await loadEverything()
  for (const run of Object.values(faces)) {
    for (const place of [{}, { scorer: useOf("throws", () => new Error("plain")) }]) {
      await run(place, { isInBackground: true, isLoggerBroken: false })
    }
  }
}, 60_000)

type Way = "throws" | "returns" | "rejects with"

const useOf = (way: Way, make: () => unknown): Parameters<(typeof places)[string]>[0] => {
  const uses: Readonly<Record<Way, () => unknown>> = {
    throws: () => {
      throw make()
    },
    returns: make,
    "rejects with": () => Promise.reject(make())
  }
  return uses[way] as () => never
}

/** What is wrong with how it ended. */
const faults = ({ chunks, isRefused, tasks }: Ran): ReadonlyArray<string> => {
  const types = chunks.map(({ type }) => type)
  const ends = types.filter(type => type === "finish").length
  const isWhole = isRefused || (types.at(-1) === "finish" && ends === 1)
  const open = tasks.filter(status => ["pending", "running"].includes(status))
  return [
    ...(isWhole ? [] : [`It ends with ${types.at(-1)}.`]),
    ...open.map(status => `A task is ${status}.`)
  ]
}

const played = async (
  run: (place: Place, world: World) => Promise<Ran>,
  place: Place,
  world: World
): Promise<ReadonlyArray<string>> => {
  try {
    return faults(await inTurns("a run", run(place, world)))
  } catch (cause) {
    return [`It failed: ${cause instanceof Error ? cause.message : typeof cause}`]
  }
}

/** Places that see every value; the others see one of each kind. */
const seesAll = ["the tool", "processInput", "prepareStep"]

const someValues = [
  "an error whose message throws",
  "an error with a cyclic cause",
  "a proxy all of whose traps throw",
  "a revoked proxy",
  "an object whose fields throw",
  "a thenable that settles twice"
]

const valuesFor = (name: string) =>
  Object.entries(hostileValues).filter(([kind]) => seesAll.includes(name) || someValues.includes(kind))

/** Of plain code that both faces call, and whose promises are not awaited, a rejection is the caller's. */
const waysOf = (face: string, name: string): ReadonlyArray<Way> =>
  face.includes("Promise") && name !== "what the tool writes" && name !== "the parts of the model"
    ? ["throws", "returns", "rejects with"]
    : ["throws", "returns"]

describe.each(Object.entries(faces))("%s ends", (face, run) => {
  describe.each(Object.entries(places))("whatever %s", (name, placeOf) => {
    it.each(waysOf(face, name))("%s", async way => {
      const wrong: Record<string, ReadonlyArray<string>> = {}
      for (const [kind, make] of valuesFor(name)) {
        const found = await played(run, placeOf(useOf(way, make)), {
          isInBackground: false,
          isLoggerBroken: false
        })
        if (found.length > 0) wrong[kind] = found
      }
      expect(wrong).toEqual({})
    })
  })

  const ofTasks = ["the tool", "toModelOutput", "the schema of the tool", "what the tool writes"]

  it.each(ofTasks)("when a task runs %s", async name => {
    const wrong: Record<string, ReadonlyArray<string>> = {}
    const placeOf = places[name]
    if (placeOf === undefined) throw new Error(name)
    for (const way of waysOf(face, name)) {
      for (const [kind, make] of valuesFor(name)) {
        const found = await played(run, placeOf(useOf(way, make)), {
          isInBackground: true,
          isLoggerBroken: false
        })
        if (found.length > 0) wrong[`${way} ${kind}`] = found
      }
    }
    expect(wrong).toEqual({})
  })

  it.each([true, false])("when the logger is broken, in the background: %s", async isInBackground => {
    const wrong: Record<string, ReadonlyArray<string>> = {}
    for (const [name, placeOf] of Object.entries(places)) {
      const place = placeOf(useOf("throws", () => new Error("plain")))
      const found = await played(run, place, { isInBackground, isLoggerBroken: true })
      if (found.length > 0) wrong[name] = found
    }
    expect(wrong).toEqual({})
  })
})
