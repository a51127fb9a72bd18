/** Runs of real agents, with models that answer as no provider should, in every protocol. */
import { describe, expect, it } from "@effect/vitest"
import { Agent, type Chunk, type ModelPart, Tool } from "eddy"
import { Effect, FastCheck as fc } from "effect"
import * as AgUi from "../../../src/http/mapping/AgUi.js"
import * as OpenAiResponses from "../../../src/http/mapping/OpenAiResponses.js"
import * as UiMessageStream from "../../../src/http/mapping/UiMessageStream.js"
import { finish, modelOf, read, textOf, turn } from "../../agent/kit.js"
import { anyPart, toolNames } from "../../support/randomParts.js"
import { faultsOf } from "./agUiOrder.js"
import { mapped } from "./kit.js"
import { textByBlock } from "./randomRuns.js"
import { readUi, uiText } from "./uiKit.js"

async function* play(parts: ReadonlyArray<ModelPart.ModelPart | "turn">) {
  for (const part of parts) {
    if (part === "turn") await turn()
    else yield part
  }
}

/** One executes, one fails, one is the client's. */
const tools: ReadonlyArray<Tool.Tool> = toolNames.map((name, index) =>
  index === 2
    ? Tool.make(name, { input: { type: "object" } })
    : Tool.make(name, {
        input: { type: "object" },
        execute: args => (index === 0 ? Effect.succeed(args) : Effect.fail("no"))
      })
)

const responses = fc.array(fc.array(anyPart, { maxLength: 14 }), { minLength: 1, maxLength: 3 })

const run = (answers: ReadonlyArray<ReadonlyArray<ModelPart.ModelPart | "turn">>, abortAfter: number) =>
  Effect.gen(function* () {
    const controller = new AbortController()
    const { model } = modelOf(answers.map(parts => () => play([...parts, finish("stop")])))
    const agent = Agent.make({ id: "random", model, tools })
    const stream = Agent.stream(agent, "go", {
      maxSteps: answers.length,
      maxRetries: 0,
      abortSignal: controller.signal
    })
    const told = yield* read(stream, (_, count) =>
      Effect.sync(() => {
        if (count === abortAfter) controller.abort("enough")
      })
    )
    return told.chunks
  })

const last = (chunks: ReadonlyArray<Chunk.Chunk>): string | undefined => {
  const chunk = chunks.at(-1)
  return chunk?.type === "finish" ? chunk.payload.stepResult.reason : undefined
}

describe("runs of agents", () => {
  it("are read in every protocol", async () => {
    await fc.assert(
      fc.asyncProperty(responses, fc.integer({ min: 2, max: 60 }), async (answers, abortAfter) => {
        const chunks = await Effect.runPromise(run(answers, abortAfter))
        const { errors, message } = await readUi(mapped(UiMessageStream.make(), chunks))
        expect(errors).toStrictEqual(last(chunks) === "error" ? ["An error occurred."] : [])
        expect(uiText(message)).toBe(textByBlock(chunks))
        const events = mapped(AgUi.make({ threadId: "th", runId: "ru" }), chunks)
        expect(await faultsOf(events)).toStrictEqual([])
        const frames = mapped(OpenAiResponses.make({ model: "m", created: 0 }), chunks)
        const end = frames.at(-1)
        const said = end !== undefined && "response" in end ? JSON.stringify(end.response.output) : ""
        expect(said.includes("text") || textOf(chunks) === "").toBe(true)
      }),
      { numRuns: 60 }
    )
  })
})
