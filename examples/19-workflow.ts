/**
 * A workflow: steps one after the other, two of them beside each other, one that is an agent, and one that waits for a human.
 * Everything it has done is stored: another process could resume it.
 *
 * Run it: npm run example -- workflow
 *
 * It prints what each step does, and last:
 *
 *     approve is suspended: {"question":"Publish 3 lines?"}
 *     finish: suspended
 *     approve is resumed
 *     approve gave {"text":"Eddies are loops in a stream.","by":"ada"}
 *     finish: stop, 17 tokens
 */
import { Agent, createStep, createWorkflow, Eddy, InMemoryStore, type WorkflowOutput } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { z } from "zod"

const { finish, reply } = ScriptedModel
const usage = { inputTokens: 10, outputTokens: 7 }
const sentence = reply("Eddies are loops in a stream.").filter(({ type }) => type !== "finish")
const writer = new Agent({ id: "writer", model: ScriptedModel.make([[...sentence, finish("stop", usage)]]) })

const topic = z.object({ topic: z.string() })
const facts = createStep({
  id: "facts",
  inputSchema: topic,
  execute: ({ inputData }) => [inputData.topic, "water"]
})
const title = createStep({
  id: "title",
  inputSchema: topic,
  execute: ({ inputData }) => inputData.topic.toUpperCase()
})
const approve = createStep({
  id: "approve",
  inputSchema: z.object({ text: z.string() }),
  resumeSchema: z.object({ by: z.string() }),
  execute: ({ inputData, resumeData, suspend }) =>
    // Executed from its start each time: first without data, then with what it is resumed with.
    resumeData === undefined ? suspend({ question: "Publish 3 lines?" }) : { ...inputData, by: resumeData.by }
})

const publishing = createWorkflow({ id: "publishing", inputSchema: topic })
  .parallel([facts, title])
  .map(({ inputData: { facts, title } }) => ({ prompt: `${title}: write about ${facts.join(" and ")}.` }))
  .then(createStep(writer))
  .then(approve)
  .commit()

const show = async (output: WorkflowOutput<unknown>) => {
  for await (const chunk of output.fullStream) {
    if (chunk.type === "step-finish") {
      const { payload } = chunk
      const { output: gave, status, suspendData } = payload.metadata
      if (status === "success") console.log(`${payload.id} gave ${JSON.stringify(gave)}`)
      if (status === "suspended") console.log(`${payload.id} is suspended: ${JSON.stringify(suspendData)}`)
    }
    if (chunk.type === "finish") {
      const { totalTokens } = chunk.payload.output.usage
      const { reason } = chunk.payload.stepResult
      console.log(reason === "stop" ? `finish: ${reason}, ${totalTokens} tokens` : `finish: ${reason}`)
    }
  }
}

await using eddy = new Eddy({ workflows: { publishing }, storage: new InMemoryStore() })
await show(await eddy.getWorkflow("publishing").stream({ inputData: { topic: "eddies" } }))
const { runs } = await publishing.listRuns()
for (const { runId, suspended } of runs) {
  for (const { stepId } of suspended) {
    console.log(`${stepId} is resumed`)
    await show(await publishing.resumeStream({ runId, step: stepId, resumeData: { by: "ada" } }))
  }
}
