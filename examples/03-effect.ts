/**
 * An Effect application: the model and a service that a tool needs are layers, a run is a Stream, errors have types.
 *
 * Run it: npm run example -- effect
 *
 * It prints the call that failed, the answer, and what the same program says over a model that fails:
 *
 *     UnknownPort: No almanac lists the port "Atlantis".
 *     High water in Kiel is at 14:20. No almanac lists Atlantis.
 *     ModelError (request): The script has 0 turns; this is call 1. Add a turn.
 */
import { Agent, type LanguageModel, Tool } from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Console, Context, Data, Effect, Layer, Schema, Stream } from "effect"
import { pickLanguageModel } from "./support/languageModel.js"

class UnknownPort extends Data.TaggedError("UnknownPort")<{ readonly message: string }> {}

class Almanac extends Context.Tag("Almanac")<
  Almanac,
  { readonly highWater: (port: string) => Effect.Effect<string, UnknownPort> }
>() {
  static readonly layer = Layer.succeed(Almanac, {
    highWater: port =>
      port === "Kiel"
        ? Effect.succeed("14:20")
        : new UnknownPort({ message: `No almanac lists the port "${port}".` })
  })
}

class Model extends Context.Tag("Model")<Model, LanguageModel.LanguageModel>() {}

// What `execute` needs, the stream of an agent with this tool needs. What it fails with, the model is told.
const tide = Tool.make("tide", {
  description: "When it is high water in a port",
  input: Schema.Struct({ port: Schema.String }),
  success: Schema.Struct({ at: Schema.String }),
  execute: Effect.fn(function* ({ port }) {
    const almanac = yield* Almanac
    return { at: yield* almanac.highWater(port) }
  })
})

const ask = (question: string) =>
  Model.pipe(
    Effect.map(model => Agent.make({ id: "harbour", model, tools: [tide] })),
    Effect.map(agent => Agent.stream(agent, question)),
    Stream.unwrap
  )

// Effect<void, InvalidConfiguration | InvalidMessage | RunAborted, Model | Almanac>: the model's failure is dealt with.
const program = ask("When is it high water in Kiel, and when in Atlantis?").pipe(
  Stream.runForEach(chunk =>
    Effect.sync(() => {
      if (chunk.type === "text-delta") process.stdout.write(chunk.payload.text)
      if (chunk.type === "text-end") process.stdout.write("\n")
      if (chunk.type === "tool-error") process.stdout.write(`${chunk.payload.error}\n`)
    })
  ),
  Effect.catchTag("ModelError", ({ message, reason }) => Console.log(`ModelError (${reason}): ${message}`))
)

const { finish, text, toolCall } = ScriptedModel
const script = ScriptedModel.make(
  [
    [
      toolCall("c1", "tide", { port: "Kiel" }),
      toolCall("c2", "tide", { port: "Atlantis" }),
      finish("tool-calls")
    ],
    [...text("High water in Kiel is at 14:20. No almanac lists Atlantis."), finish("stop")]
  ],
  { pace: "30 millis" }
)

const runWith = (model: LanguageModel.LanguageModel) =>
  Effect.runPromise(Effect.provide(program, Layer.merge(Almanac.layer, Layer.succeed(Model, model))))

await runWith(await pickLanguageModel(script))
await runWith(ScriptedModel.make([]))
