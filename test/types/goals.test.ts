/** What the types of goals promise: what objectives need and fail with, what scorers see, and what JavaScript may not say. */
import { Agent, type Errors, type Objective, type ThreadStore } from "eddy"
import * as Facade from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import type { Effect, Option } from "effect"
import { describe, expectTypeOf, it } from "vitest"

const model = ScriptedModel.make([])
const agent = Agent.make({
  id: "a",
  model,
  goal: { judge: [model, { model, maxRetries: 0 }], timeout: "1 minute" }
})
const thread = { threadId: "t", resourceId: "r" }

type Refusal = Errors.InvalidConfiguration | Errors.StorageError | Errors.ThreadNotFound

describe("an objective", () => {
  it("needs a store of threads, and names what may go wrong", () => {
    expectTypeOf(Agent.setObjective(agent, "Count.", thread)).toEqualTypeOf<
      Effect.Effect<Objective.Objective, Refusal, ThreadStore.ThreadStore>
    >()
    expectTypeOf(Agent.getObjective(agent, thread)).toEqualTypeOf<
      Effect.Effect<Option.Option<Objective.Objective>, Refusal, ThreadStore.ThreadStore>
    >()
    expectTypeOf(Agent.updateObjectiveOptions(agent, { ...thread, status: "paused" })).toEqualTypeOf<
      Effect.Effect<Objective.Objective, Refusal | Errors.ObjectiveNotFound, ThreadStore.ThreadStore>
    >()
    expectTypeOf(Agent.clearObjective(agent, thread)).toEqualTypeOf<
      Effect.Effect<boolean, Refusal, ThreadStore.ThreadStore>
    >()
    expectTypeOf<Agent.UpdateObjectiveOptions["status"]>().toEqualTypeOf<"active" | "paused" | undefined>()
  })

  it("is a promise on the other face", () => {
    const facade = new Facade.Agent({
      id: "a",
      model,
      goal: {
        judge: "openai/gpt-5-mini",
        scorer: async candidate => {
          expectTypeOf(candidate).toEqualTypeOf<Facade.GoalCandidate>()
          return candidate.text.length / 100
        }
      }
    })
    expectTypeOf<ReturnType<typeof facade.setObjective>>().toEqualTypeOf<Promise<Facade.Objective>>()
    expectTypeOf<ReturnType<typeof facade.getObjective>>().toEqualTypeOf<
      Promise<Facade.Objective | undefined>
    >()
    expectTypeOf<ReturnType<typeof facade.updateObjectiveOptions>>().toEqualTypeOf<
      Promise<Facade.Objective>
    >()
    expectTypeOf<ReturnType<typeof facade.clearObjective>>().toEqualTypeOf<Promise<boolean>>()
    expectTypeOf<Facade.ChunkOf<"goal">["payload"]["status"]>().toEqualTypeOf<Facade.ObjectiveStatus>()
  })
})
