/**
 * How runs end that do not end by themselves: aborted, with a tool that failed, with a model that failed. The stream always
 * says so and closes; promises reject with the run's error; `getFullOutput` has what was said until then.
 *
 * Run it: npm run example -- abort
 *
 * It prints each of the three, and last:
 *
 *     model failed: start step-start text-start text-delta text-delta text-end error finish
 *     status failed, reason error, text "The tide", error: The connection was lost.
 *     text rejects: ModelError
 */
import { Agent, type Chunk, createTool, type ModelOutput } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { pickModel } from "./support/model.js"

const { finish, hang, text, toolCall } = ScriptedModel

const report = async (title: string, output: ModelOutput) => {
  const types: Array<Chunk["type"]> = []
  for await (const { type } of output.fullStream) types.push(type)
  console.log(`${title}: ${types.join(" ")}`)
  const { error, finishReason, status, text } = await output.getFullOutput()
  console.log(`status ${status}, reason ${finishReason}, text "${text}", error: ${error?.message ?? "none"}`)
  await output.text.then(
    () => console.log("text resolves\n"),
    (cause: Error) => console.log(`text rejects: ${cause.name}\n`)
  )
}

// Aborted in the middle of a sentence. The signal reaches the provider and the tools.
const talker = new Agent({
  id: "talker",
  model: await pickModel(ScriptedModel.make([[...text("Once upon a time"), hang]], { pace: "20 millis" }))
})
const controller = new AbortController()
const story = await talker.stream("Tell me a long story.", {
  abortSignal: controller.signal,
  onAbort: ({ error }) => console.log(`onAbort: ${error.message}`)
})
let count = 0
for await (const _ of story.textStream) if (++count === 4) controller.abort("enough")
await report("aborted", story)

// A tool that throws: the model is told the message, and the run goes on.
const broken = createTool({
  id: "broken",
  description: "Looks up the answer",
  execute: () => {
    throw new Error("The archive is closed.")
  }
})
const clerk = new Agent({
  id: "clerk",
  tools: { broken },
  model: await pickModel(
    ScriptedModel.make([
      [toolCall("c1", "broken", {}), finish("tool-calls")],
      [...text("Closed."), finish("stop")]
    ])
  )
})
await report("tool failed", await clerk.stream("What does the archive say? Call the tool once."))

// A model that fails after it has begun to speak. Always scripted: real ones do not fail when asked to.
const failing = ScriptedModel.make([
  [...text("The tide"), { type: "error", error: new Error("The connection was lost.") }]
])
const pilot = new Agent({ id: "pilot", model: failing })
await report(
  "model failed",
  await pilot.stream("How is the tide?", { onError: ({ error }) => console.log(`onError: ${error.message}`) })
)
