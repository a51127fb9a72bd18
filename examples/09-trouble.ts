/**
 * Models in trouble: one that is overloaded is asked again, one that is silent is left after a time limit for the next in the
 * list, and whoever reads the stream sees one clean answer.
 *
 * Run it: npm run example -- trouble
 *
 * It prints what was asked, and last the answer and its chunks:
 *
 *     busy was asked 2 times, silent once, spare once
 *     start step-start text-start text-delta text-end step-finish finish
 *     spare says: All is well.
 */
import { Agent, type LanguageModel, ModelError } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"

const { finish, hang } = ScriptedModel

const counted = (model: LanguageModel, modelId: string) => {
  const counts = { asked: 0 }
  const answer: LanguageModel["answer"] = (request, signal) => {
    counts.asked++
    return model.answer(request, signal)
  }
  return { counts, model: { provider: "example", modelId, answer } }
}

const overloaded = new ModelError({
  reason: "request",
  provider: "example",
  modelId: "busy",
  message: "Overloaded, try again.",
  statusCode: 503
})

const busy = counted({ provider: "", modelId: "", answer: () => Promise.reject(overloaded) }, "busy")
const silent = counted(ScriptedModel.make([[{ type: "text-start", id: "0" }, hang]]), "silent")
const spare = counted(
  ScriptedModel.make([
    [
      { type: "text-start", id: "0" },
      { type: "text-delta", id: "0", delta: "All is well." },
      { type: "text-end", id: "0" },
      finish("stop")
    ]
  ]),
  "spare"
)

const agent = new Agent({
  id: "watch",
  model: [{ model: busy.model, maxRetries: 1 }, { model: silent.model, maxRetries: 0 }, spare.model],
  defaultOptions: { timeouts: { firstContent: "300 millis", betweenChunks: "5 seconds", run: "1 minute" } }
})

const output = await agent.stream("Is all well?")
const types: Array<string> = []
for await (const chunk of output.fullStream) types.push(chunk.type)

const times = (count: number) => (count === 1 ? "once" : `${count} times`)
console.log(
  `busy was asked ${times(busy.counts.asked)}, silent ${times(silent.counts.asked)}, spare ${times(spare.counts.asked)}`
)
console.log(types.join(" "))
const [step] = await output.steps
console.log(`${step?.request.modelId} says: ${await output.text}`)
