/** Names that the types know: of models, and of what a container holds. */
import {
  Agent,
  type AgentOptions,
  createStep,
  createWorkflow,
  Eddy,
  InMemoryStore,
  type ModelInput
} from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { describe, expectTypeOf, it } from "vitest"

describe("the name of a model", () => {
  it("has a provider", () => {
    expectTypeOf<"openai/gpt-5-mini">().toExtend<ModelInput>()
    expectTypeOf<{ id: string }>().toExtend<ModelInput>()
    expectTypeOf<"gpt-5-mini">().not.toExtend<ModelInput>()
    expectTypeOf<"gpt-5-mini">().not.toExtend<AgentOptions["model"]>()
    expectTypeOf<readonly ["openai/gpt-5-mini"]>().toExtend<ModelInput>()
    expectTypeOf<readonly ["gpt-5-mini"]>().not.toExtend<ModelInput>()
  })
})

describe("names in a container", () => {
  const guide = new Agent({ id: "guide-agent", model: ScriptedModel.make([]) })
  const flow = createWorkflow({ id: "flow" })
    .then(createStep({ id: "s", execute: () => 1 }))
    .commit()
  const eddy = new Eddy({ agents: { guide }, workflows: { flow }, storage: new InMemoryStore() })

  it("are those that it was made with", () => {
    expectTypeOf(eddy.getAgent).parameter(0).toEqualTypeOf<"guide">()
    expectTypeOf(eddy.getWorkflow).parameter(0).toEqualTypeOf<"flow">()
    expectTypeOf(eddy.getAgent("guide")).toEqualTypeOf<Agent>()
  })

  it("are any where the container is typed loosely", () => {
    const loose: Eddy = eddy
    expectTypeOf(loose.getAgent).parameter(0).toEqualTypeOf<string>()
    expectTypeOf(loose.getAgent("guide-agent")).toEqualTypeOf<Agent>()
  })
})
