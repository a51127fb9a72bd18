/**
 * What holds of every run, whatever providers, tools, stores and readers do. The invariants of partial JSON (7), of the
 * states of tasks (9) and of idle detection (10) come with structured output and background tasks.
 */
import { FastCheck as fc } from "effect"
import { beforeAll, describe, expect, it } from "vitest"
import { refuseUnhandledRejections } from "../support/readers.js"
import {
  callFaults,
  exitFaults,
  finishFaults,
  orderFaults,
  readerFaults,
  settlementFaults,
  usageFaults
} from "./checks.js"
import { streamed } from "./effectFace.js"
import { cold, faces, hot } from "./faces.js"
import { assertProperty, holds, loadEverything, patience } from "./kit.js"
import { coalesced, differences, splitAgent } from "./pieces.js"
import { reached, toBeReached } from "./reached.js"
import { type Scenario, type SourceKind, scenarios } from "./scenario.js"
import type { Told } from "./told.js"
import type { Cut } from "./world.js"

beforeAll(loadEverything, 30_000)
refuseUnhandledRejections()

const missing = new Set(toBeReached)

const note = ({ chunks, isLeft, world }: Told): void => {
  for (const what of reached(world, chunks, isLeft)) missing.delete(what)
}

describe("1: finish is the last chunk, once", () => {
  it(
    "of a cold stream, which then ends with the error that it has told",
    () =>
      holds(cold.scenarios, 60, async scenario => {
        const told = await cold.play(scenario)
        return [...finishFaults(told), ...exitFaults(told)]
      }),
    patience
  )

  it.each(Object.entries(hot))(
    "of %s; then every reader's stream closes, and every value settles from one cause",
    (_, { play, scenarios }) =>
      holds(scenarios, 60, async scenario => {
        const told = await play(scenario)
        return [...finishFaults(told), ...settlementFaults(told)]
      }),
    patience
  )
})

describe("2: readers see the same from the first chunk on, whoever leaves", () => {
  it.each(Object.entries(hot))(
    "of %s",
    (_, { play, scenarios }) => holds(scenarios, 60, async scenario => readerFaults(await play(scenario))),
    patience
  )
})

const faultsOf = {
  "3: each start has one end, no delta stands outside, and ids are unique": orderFaults,
  "4: each call has one tool-call, at most one execution, and one outcome": callFaults,
  "8: usage is the last figure of an answer, the sum over steps and agents, and absent where nobody knows it":
    usageFaults
}

const plays: ReadonlyArray<readonly [face: string, play: (scenario: Scenario) => Promise<Told>]> =
  Object.entries(faces).map(([face, { play }]) => [face, play])

describe.each(Object.entries(faultsOf))("%s", (_, faultsOf) => {
  it.each(plays)(
    "in %s",
    (face, play) =>
      holds(faces[face as keyof typeof faces].scenarios, 35, async scenario => {
        const told = await play(scenario)
        note(told)
        return faultsOf(told)
      }),
    patience
  )
})

const timeless = scenarios({ isTimeless: true })

const cut: fc.Arbitrary<Cut> = fc.record({
  turns: fc.array(fc.constantFrom(0, 0, 1, 2, 5), { minLength: 1, maxLength: 7 }),
  source: fc.constantFrom<SourceKind>("iterator", "generator", "stream")
})

const pace = fc.constantFrom(0, 1, 2, 7)

describe("6: chunks are equal, however the parts of answers come", () => {
  it(
    "in whatever turns, from whatever kind of source, for whatever reader",
    () =>
      assertProperty(fc.record({ scenario: timeless, cut, pace }), 50, async ({ cut, pace, scenario }) => {
        const one = await streamed(scenario)
        const other = await streamed({ ...scenario, pace }, cut)
        return differences(one.chunks, other.chunks)
      }),
    patience
  )

  it(
    "in whatever pieces of text, but for how many they are",
    () =>
      assertProperty(fc.record({ scenario: timeless, seed: fc.nat(20) }), 40, async ({ scenario, seed }) => {
        const one = await streamed(scenario)
        const other = await streamed({ ...scenario, agent: splitAgent(scenario.agent, seed) })
        return differences(coalesced(one.chunks), coalesced(other.chunks))
      }),
    patience
  )
})

it(
  "the scenarios come to everything that they are for",
  async () => {
    // Most of it was come to above.
    for (const scenario of fc.sample(cold.scenarios, { numRuns: 1_000, seed: 1 })) {
      if (missing.size === 0) break
      note(await cold.play(scenario))
    }
    expect([...missing]).toStrictEqual([])
  },
  patience
)
