/** What holds of hot runs, whoever reads them, whenever, and however they leave. */
import { beforeAll, describe, it } from "vitest"
import { refuseUnhandledRejections } from "../support/readers.js"
import { callFaults, finishFaults, readerFaults, settlementFaults, usageFaults } from "./checks.js"
import { heard } from "./effectFace.js"
import { holds, loadEverything, patience } from "./kit.js"
import { played } from "./promiseFace.js"
import { scenarios } from "./scenario.js"

beforeAll(loadEverything, 30_000)
refuseUnhandledRejections()

const faces = {
  "the Effect face": {
    play: heard,
    scenarios: scenarios({ hasReaders: true, stops: ["signal", "cancel", "scope"] })
  },
  "the Promise face": {
    play: played,
    scenarios: scenarios({ hasReaders: true, stops: ["signal", "cancel", "shutdown"] })
  }
}

describe.each(Object.entries(faces))("a hot run of %s", (_, { play, scenarios }) => {
  it(
    "1: tells finish last and once, closes every reader and settles every value from one cause",
    () =>
      holds(scenarios, 100, async scenario => {
        const told = await play(scenario)
        return [...finishFaults(told.chunks, false), ...settlementFaults(told)]
      }),
    patience
  )

  it(
    "2: shows every reader the same from the first chunk on, whoever leaves",
    () => holds(scenarios, 100, async scenario => readerFaults(await play(scenario))),
    patience
  )

  it(
    "4: executes once",
    () =>
      holds(scenarios, 100, async scenario => {
        const told = await play(scenario)
        return callFaults(told.world, told.chunks, false)
      }),
    patience
  )
  it(
    "8: counts",
    () =>
      holds(scenarios, 100, async scenario => {
        const told = await play(scenario)
        return usageFaults(told.world, told.chunks)
      }),
    patience
  )
})
