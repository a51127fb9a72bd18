/** An Effect application: a tool that needs a service, and a layer that provides it. */
import { Agent, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Console, Context, Effect, Layer, Schema, Stream } from "effect"

class Weather extends Context.Tag("Weather")<Weather, (city: string) => Effect.Effect<string>>() {
  static readonly layer = Layer.succeed(Weather, city => Effect.succeed(`rain in ${city}`))
}

const weather = Tool.make("weather", {
  input: Schema.Struct({ city: Schema.String }),
  execute: ({ city }) => Effect.flatMap(Weather, at => at(city))
})
const { finish, reply, toolCall } = ScriptedModel
const model = ScriptedModel.make([
  [toolCall("c1", "weather", { city: "Oslo" }), finish("tool-calls")],
  reply("Take an umbrella.")
])
const agent = Agent.make({ id: "guide", model, tools: [weather] })

const run = Agent.stream(agent, "An umbrella in Oslo?").pipe(
  Stream.runForEach(chunk => {
    if (chunk.type === "tool-result") return Console.log(chunk.payload.result)
    return chunk.type === "text-end" ? Console.log("The text is over.") : Effect.void
  }),
  Effect.catchTag("ModelError", ({ reason }) => Console.log(reason))
)

// What its tool needs, the run needs: the type has come through the archive.
const isWeatherNeeded: [Weather] extends [Effect.Effect.Context<typeof run>] ? true : false = true

await Effect.runPromise(Effect.provide(run, Weather.layer))
console.log(isWeatherNeeded)
