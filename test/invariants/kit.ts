/** How the properties are run. */
import { Conversation } from "eddy"
import { Effect, FastCheck as fc } from "effect"
import type { Faults } from "./checks.js"
import type { Scenario } from "./scenario.js"

/** Multiplies the runs of every property: for a long search. */
const effort = Number(process.env["INVARIANT_EFFORT"] ?? 1)

/** A property may take this long, in milliseconds, also when it has to make a scenario smaller. */
export const patience = 120_000 * Math.max(1, effort)

/** What the first run of all would load while it is watched. */
export const loadEverything = (): Promise<unknown> =>
  Promise.all([
    import("../../src/storage/storedRows.js"),
    Effect.runPromise(Conversation.fromInput([{ role: "user", content: "load" }]))
  ])

/** Holds for everything that is drawn; what does not is made smaller and told. */
export const assertProperty = <A>(
  arbitrary: fc.Arbitrary<A>,
  numRuns: number,
  faultsOf: (drawn: A) => Promise<Faults>
): Promise<void> =>
  fc.assert(
    fc.asyncProperty(arbitrary, async drawn => {
      const faults = await faultsOf(drawn)
      if (faults.length > 0) throw new Error(faults.join("\n"))
    }),
    { numRuns: numRuns * effort, interruptAfterTimeLimit: patience - 20_000, markInterruptAsFailure: true }
  )

/** Holds for every scenario. */
export const holds = (
  scenarios: fc.Arbitrary<Scenario>,
  numRuns: number,
  faultsOf: (scenario: Scenario) => Promise<Faults>
): Promise<void> => assertProperty(scenarios, numRuns, faultsOf)
