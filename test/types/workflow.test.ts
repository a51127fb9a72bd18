/** What the types of workflows promise: a step that does not fit the one before is an error, and what is needed and fails adds up. */
import { type Errors, type RunStore, WorkflowStep as Step, Workflow } from "eddy"
import { Agent, createStep, createWorkflow } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { Context, Effect, Schema, type Stream } from "effect"
import { describe, expectTypeOf, it } from "vitest"
import { z } from "zod"

class Search extends Context.Tag("Search")<Search, string>() {}

const look = Step.make("look", {
  input: Schema.Struct({ topic: Schema.String }),
  success: Schema.Struct({ found: Schema.Date }),
  execute: () => Effect.zipRight(Search, Effect.fail("empty" as const))
})
const show = Step.make("show", {
  input: Schema.Struct({ found: Schema.Date }),
  execute: ({ found }) => Effect.succeed(found.getTime())
})
const topic = { input: Schema.Struct({ topic: Schema.String }) }

describe("a workflow", () => {
  it("takes JSON and gives JSON, and adds up what its steps need and fail with", () => {
    const workflow = Workflow.make("w", topic).andThen(look).andThen(show).commit()
    expectTypeOf(workflow).toEqualTypeOf<
      Workflow.Workflow<"w", { readonly topic: string }, number, "empty", Search>
    >()
    const stream = Workflow.stream(workflow, { inputData: { topic: "x" } })
    expectTypeOf<Stream.Stream.Context<typeof stream>>().toEqualTypeOf<Search>()
    expectTypeOf<Stream.Stream.Error<typeof stream>>().toEqualTypeOf<"empty" | Workflow.WorkflowError>()
    expectTypeOf<Errors.WorkflowRunNotFound>().not.toExtend<RunStore.RunStore>()
    expectTypeOf(look).toEqualTypeOf<
      Step.Step<"look", { readonly topic: string }, { readonly found: string }, "empty", Search>
    >()
  })

  it("refuses a step that does not take what the one before gives", () => {
    const draft = Workflow.make("w", topic)
    expectTypeOf(draft.andThen<number, never, never>)
      .parameter(0)
      .not.toEqualTypeOf<typeof show>()
    expectTypeOf<typeof show>().not.toExtend<
      Step.Step<string, { readonly topic: string }, unknown, unknown, unknown>
    >()
    expectTypeOf<typeof look>().toExtend<
      Step.Step<string, { readonly topic: string }, unknown, unknown, unknown>
    >()
    type Commit = Parameters<ReturnType<typeof wrong>["commit"]>
    const wrong = () => Workflow.make("w", { ...topic, success: Schema.String }).andThen(look)
    expectTypeOf<Commit["length"]>().toEqualTypeOf<1>()
  })

  it("knows what each node gives", () => {
    const number = Step.make("number", { execute: () => Effect.succeed(1) })
    const text = Step.make("text", { execute: () => Effect.succeed("") })
    const third = Step.make("third", { execute: () => Effect.succeed(1) })
    const other = Step.make("other", { execute: () => Effect.succeed("") })
    Workflow.make("w")
      .parallel([number, text])
      .map(({ inputData }) => {
        expectTypeOf(inputData).toEqualTypeOf<{ readonly number: number; readonly text: string }>()
        return [inputData.number]
      })
      .foreach(other)
      .map(({ inputData }) => expectTypeOf(inputData).toEqualTypeOf<ReadonlyArray<string>>() && true)
      .branch([[({ inputData }) => inputData, third]])
      .map(({ inputData, getStepResult }) => {
        expectTypeOf(inputData).toEqualTypeOf<{ readonly third?: number }>()
        expectTypeOf(getStepResult(other)).toEqualTypeOf<string | undefined>()
        expectTypeOf(getStepResult("other")).toEqualTypeOf<unknown>()
      })
  })
})

describe("a workflow of plain TypeScript", () => {
  it("is typed along the chain", () => {
    const length = createStep({
      id: "length",
      inputSchema: z.object({ text: z.string() }),
      outputSchema: z.object({ length: z.number() }),
      execute: ({ inputData }) => ({ length: inputData.text.length })
    })
    const agent = createStep(new Agent({ id: "a", model: ScriptedModel.make([]) }), { id: "writer" })
    const workflow = createWorkflow({ id: "w", inputSchema: z.object({ prompt: z.string() }) })
      .then(agent)
      .then(length)
      .dountil(
        createStep({ id: "more", execute: () => ({ length: 1 }) }),
        ({ inputData }) => inputData.length > 3
      )
      .commit()
    expectTypeOf<Parameters<typeof workflow.stream>[0]["inputData"]>().toEqualTypeOf<{ prompt: string }>()
    expectTypeOf<Awaited<Awaited<ReturnType<typeof workflow.stream>>["result"]>>().toEqualTypeOf<{
      length: number
    }>()
    expectTypeOf<typeof length>().not.toExtend<
      Step.Step<string, { readonly prompt: string }, unknown, unknown>
    >()
  })
})
