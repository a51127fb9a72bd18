/**
 * A human in the loop, across a restart: a tool lays its call aside until somebody approves. The process ends; another
 * one, on the same database, resumes the call, and the agent answers to its result.
 *
 * Run it: npm run example -- approval
 *
 * It runs itself twice, on one file of SQLite. It prints what each process has to say:
 *
 *     asking: Your notice waits for approval.
 *     resuming: publish is suspended with {"awaiting":"approval","draft":"Closed on Monday."}
 *     resuming: publish came to {"published":"Closed on Monday.","by":"ada"}
 *     resuming: It is out: Ada has approved it.
 */
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { fileURLToPath } from "node:url"
import { Agent, createTool, Eddy, LibSQLStore, type ModelOutput } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { z } from "zod"

const { finish, reply, toolCall } = ScriptedModel
const [, , part, url = ""] = process.argv
const memory = { thread: "notices", resource: "ada" }
const approval = z.object({ by: z.string() })
const publish = createTool({
  id: "publish",
  description: "Publishes a notice, once a human has approved it.",
  inputSchema: z.object({ draft: z.string() }),
  resumeSchema: approval,
  background: { enabled: true },
  execute: async ({ draft }, { agent: { resumeData, suspend } }) => {
    // Executed from its start each time: first without data, then with what it is resumed with.
    if (resumeData === undefined) return suspend?.({ awaiting: "approval", draft })
    return { published: draft, by: approval.parse(resumeData).by }
  }
})

/** What each process makes: the same agent, over the same database. The second plays what is left of the script. */
const open = (turns: ReadonlyArray<ScriptedModel.Turn>) => {
  const clerk = new Agent({ id: "clerk", model: ScriptedModel.make(turns), tools: { publish } })
  const storage = new LibSQLStore({ url })
  return new Eddy({ agents: { clerk }, storage, backgroundTasks: { enabled: true } })
}

const show = async (output: ModelOutput) => {
  for await (const chunk of output.fullStream) {
    if (chunk.type === "background-task-completed") {
      console.log(`${part}: ${chunk.payload.toolName} came to ${JSON.stringify(chunk.payload.result)}`)
    }
    if (chunk.type === "step-finish" && chunk.payload.output.text !== "") {
      console.log(`${part}: ${chunk.payload.output.text}`)
    }
  }
}

if (part === "asking") {
  const call = toolCall("c1", "publish", { draft: "Closed on Monday." })
  await using eddy = open([[call, finish("tool-calls")], reply("Your notice waits for approval.")])
  // Until idle: a suspended call is nothing to wait for.
  await show(await eddy.agents.clerk.stream("We are closed on Monday.", { memory, untilIdle: true }))
} else if (part === "resuming") {
  await using eddy = open([reply("It is out: Ada has approved it.")])
  const waiting = await eddy.backgroundTaskManager?.listTasks({ status: "suspended" })
  for (const { runId, suspendData, toolCallId, toolName } of waiting?.tasks ?? []) {
    console.log(`${part}: ${toolName} is suspended with ${JSON.stringify(suspendData)}`)
    const options = { runId, toolCallId, memory, untilIdle: true }
    await show(await eddy.agents.clerk.resumeStream({ by: "ada" }, options))
  }
} else {
  const folder = mkdtempSync(`${tmpdir()}/eddy-approval-`)
  try {
    for (const next of ["asking", "resuming"]) {
      const script = [fileURLToPath(import.meta.url), next, `file:${folder}/eddy.db`]
      execFileSync(process.execPath, [...process.execArgv, ...script], { stdio: "inherit" })
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
