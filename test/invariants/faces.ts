/** The ways to run an agent, and the scenarios that fit each of them. */
import { heard, streamed } from "./effectFace.js"
import { played } from "./promiseFace.js"
import { scenarios } from "./scenario.js"

/** A run that is pulled by its one reader. */
export const cold = {
  play: streamed,
  scenarios: scenarios({ stops: ["signal", "signal", "interrupt", "leave"] })
}

/** Runs that go by themselves, with any number of readers. */
export const hot = {
  "a hot run of the Effect face": {
    play: heard,
    scenarios: scenarios({ hasReaders: true, stops: ["signal", "cancel", "scope"] })
  },
  "a hot run of the Promise face": {
    play: played,
    scenarios: scenarios({ hasReaders: true, stops: ["signal", "cancel", "shutdown"] })
  }
}

export const faces = { "a cold stream": cold, ...hot }
