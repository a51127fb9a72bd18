/**
 * Background tasks from outside of any run: what happens to those of one thread, as a stream; what the store knows of them;
 * one that is cancelled; and callbacks.
 *
 * Run it: npm run example -- task-events
 *
 * It prints when the tasks begin, and last:
 *
 *     poster is completed: printed
 *     map failed: Out of paper.
 *     book is cancelled, after 1 attempt
 *     2 tasks of the agent are completed
 *     callbacks: container card, container poster, tool map, container map, agent book
 */
import { setTimeout } from "node:timers/promises"
import { Agent, createTool, InMemoryStore, Mastra, type Task } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { z } from "zod"

const { finish, reply, toolCall } = ScriptedModel
const called: Array<string> = []
const tell = (who: string) => (task: Task) => void called.push(`${who} ${task.args["what"]}`)

const print = createTool({
  id: "print",
  inputSchema: z.object({ what: z.string(), milliseconds: z.number() }),
  background: { enabled: true, onFailed: tell("tool") },
  execute: async ({ milliseconds, what }, { abortSignal }) => {
    await setTimeout(milliseconds, undefined, { signal: abortSignal })
    if (what === "map") throw new Error("Out of paper.")
    return "printed"
  }
})
const call = (what: string, milliseconds: number) => toolCall(what, "print", { what, milliseconds })

const printer = new Agent({
  id: "printer",
  model: ScriptedModel.make([
    [call("card", 100), finish("tool-calls")],
    reply("On it."),
    [call("poster", 200), call("map", 500), call("book", 60_000), finish("tool-calls")],
    reply("On it.")
  ]),
  tools: { print },
  backgroundTasks: { onTaskCancelled: tell("agent") }
})
const mastra = new Mastra({
  agents: { printer },
  storage: new InMemoryStore(),
  backgroundTasks: { enabled: true, onTaskComplete: tell("container"), onTaskFailed: tell("container") }
})
const manager = mastra.backgroundTaskManager
if (manager === undefined) throw new Error("Background tasks are not enabled.")
// Open until it is aborted. It does not tell of the card, which belongs to another thread.
const controller = new AbortController()
const events = manager.stream({ threadId: "t1", abortSignal: controller.signal })

await printer.generate("Print a card.", { memory: { thread: "t0", resource: "u1" } })
await printer.generate("Print a poster, a map and a book.", { memory: { thread: "t1", resource: "u1" } })

for await (const { payload, type } of events) {
  if (type === "background-task-running") console.log(`${payload.args["what"]} is running`)
  if (type === "background-task-completed")
    console.log(`${payload.toolCallId} is completed: ${payload.result}`)
  if (type === "background-task-failed") {
    console.log(`${payload.toolCallId} failed: ${payload.error.message}`)
    const { tasks } = await manager.listTasks({ status: "running", agentId: "printer" })
    for (const { id } of tasks) await manager.cancel(id)
  }
  if (type === "background-task-cancelled") {
    const task = await manager.getTask(payload.taskId)
    console.log(`${task?.toolCallId} is ${task?.status}, after ${task?.attempt} attempt`)
    controller.abort()
  }
}

const { total } = await manager.listTasks({ agentId: "printer", status: "completed" })
console.log(`${total} tasks of the agent are completed`)
await mastra.shutdown()
console.log(`callbacks: ${called.join(", ")}`)
