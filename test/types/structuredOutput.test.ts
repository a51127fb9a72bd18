/** What the types of structured values promise: the schema says what comes out, on both faces. */
import { Agent, type DeepPartial, type ElementOf, type Errors, type FullOutput, type ModelOutput } from "eddy"
import * as Facade from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { type Effect, Schema, type Scope, type Stream } from "effect"
import { describe, expectTypeOf, it } from "vitest"
import { z } from "zod"

const model = ScriptedModel.make([])
const agent = Agent.make({ id: "a", model })
const facade = new Facade.Agent({ id: "a", model })
const person = Schema.Struct({ name: Schema.String, born: Schema.Date })
const user = z.object({ name: z.string(), tags: z.array(z.object({ id: z.number() })) })

type Person = { readonly name: string; readonly born: Date }
type User = { name: string; tags: Array<{ id: number }> }

describe("structured values", () => {
  it("have the type of an Effect Schema", () => {
    const running = Agent.run(agent, "go", { structuredOutput: { schema: person } })
    expectTypeOf(running).toEqualTypeOf<
      Effect.Effect<ModelOutput.ModelOutput<Person>, Errors.AgentError, Scope.Scope>
    >()
    type Output = Effect.Effect.Success<typeof running>
    expectTypeOf<Output["object"]>().toEqualTypeOf<Effect.Effect<Person, ModelOutput.ObjectError>>()
    expectTypeOf<Output["objectStream"]>().toEqualTypeOf<
      Stream.Stream<{ readonly name?: string; readonly born?: Date }, Errors.AgentError>
    >()
    expectTypeOf<Output["elementStream"]>().toEqualTypeOf<Stream.Stream<never, Errors.AgentError>>()
    expectTypeOf(Agent.generate(agent, "go", { structuredOutput: { schema: person } })).toEqualTypeOf<
      Effect.Effect<FullOutput<Person>, Errors.AgentError | Errors.StructuredOutputError>
    >()
  })

  it("have the type of a Standard Schema", () => {
    const stream = () => facade.stream("go", { structuredOutput: { schema: user } })
    expectTypeOf(stream).returns.resolves.toEqualTypeOf<Facade.ModelOutput<User>>()
    type Output = Awaited<ReturnType<typeof stream>>
    expectTypeOf<Output["object"]>().toEqualTypeOf<Promise<User>>()
    type Partials = Output["objectStream"] extends AsyncIterable<infer Item> ? Item : never
    expectTypeOf<Partials>().toEqualTypeOf<{
      readonly name?: string
      readonly tags?: ReadonlyArray<{ readonly id?: number }>
    }>()
    const generate = () => facade.generate("go", { structuredOutput: { schema: z.array(user) } })
    expectTypeOf(generate).returns.resolves.toEqualTypeOf<Facade.FullOutput<Array<User>>>()
    const elements = async () =>
      (await facade.stream("go", { structuredOutput: { schema: z.array(user) } })).elementStream
    expectTypeOf(elements).returns.resolves.toEqualTypeOf<Facade.ElementStream<User>>()
  })

  it("are unknown of a JSON Schema, and where there is none", () => {
    const described = () => facade.stream("go", { structuredOutput: { schema: { type: "object" } } })
    expectTypeOf(described).returns.resolves.toEqualTypeOf<Facade.ModelOutput<unknown>>()
    const plain = () => facade.stream("go", { maxSteps: 2 })
    expectTypeOf(plain).returns.resolves.toEqualTypeOf<Facade.ModelOutput<unknown>>()
  })

  it("fall back on values of their own type", () => {
    const fallbackValue = { name: "", tags: [] }
    const stream = () =>
      facade.stream("go", { structuredOutput: { schema: user, errorStrategy: "fallback", fallbackValue } })
    expectTypeOf(stream).returns.resolves.toEqualTypeOf<Facade.ModelOutput<User>>()
    const nameless = { tags: [] }
    // @ts-expect-error `name` is missing
    const wrong = () => facade.stream("go", { structuredOutput: { schema: user, fallbackValue: nameless } })
    expectTypeOf(wrong).toBeFunction()
  })

  it("grow as far as they are known", () => {
    expectTypeOf<DeepPartial<ReadonlyArray<string>>>().toEqualTypeOf<ReadonlyArray<string>>()
    expectTypeOf<DeepPartial<unknown>>().toEqualTypeOf<unknown>()
    expectTypeOf<ElementOf<ReadonlyArray<number>>>().toEqualTypeOf<number>()
    expectTypeOf<ElementOf<{ a: 1 }>>().toEqualTypeOf<never>()
  })
})
