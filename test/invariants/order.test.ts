/**
 * What holds of every run, whatever providers, tools, stores and readers do. The invariants of partial JSON (7), of the
 * states of tasks (9) and of idle detection (10) come with structured output and background tasks.
 */
import { beforeAll, describe, it } from "vitest"
import { callFaults, finishFaults, orderFaults, usageFaults } from "./checks.js"
import { streamed } from "./effectFace.js"
import { holds, loadEverything, patience } from "./kit.js"
import { scenarios } from "./scenario.js"

beforeAll(loadEverything, 30_000)

const any = scenarios({ stops: ["signal", "signal", "interrupt", "leave"] })

describe("any run", () => {
  it(
    "1: has finish as its last chunk, once, and then ends",
    () =>
      holds(any, 150, async scenario => {
        const { chunks, isLeft } = await streamed(scenario)
        return finishFaults(chunks, isLeft)
      }),
    patience
  )

  it(
    "3: has one end for each start, no delta outside, and ids that are unique",
    () =>
      holds(any, 150, async scenario => {
        const { chunks, isLeft } = await streamed(scenario)
        return orderFaults(chunks, isLeft)
      }),
    patience
  )

  it(
    "4: has one tool-call, at most one execution and one outcome for each call",
    () =>
      holds(any, 150, async scenario => {
        const { chunks, isLeft, world } = await streamed(scenario)
        return callFaults(world, chunks, isLeft)
      }),
    patience
  )

  it(
    "8: counts what it has used: the last figure of an answer, sums over steps and agents, nothing for what nobody knows",
    () =>
      holds(any, 150, async scenario => {
        const { chunks, world } = await streamed(scenario)
        return usageFaults(world, chunks)
      }),
    patience
  )
})
