/** What a model is told of calls that have settled since it answered last. Nobody stores it. */
import type { SystemMessage } from "../../protocol/Message.js"
import type { Task } from "../../protocol/Task.js"

/** A task that has settled, as a conversation knows it. */
type SettledTask = Pick<Task, "id" | "toolCallId" | "toolName"> & { readonly status: unknown }

const outcomeOf = ({ status }: SettledTask): string => {
  switch (status) {
    case "completed":
      return "completed"
    case "timed_out":
      return "took too long and was stopped"
    case "cancelled":
      return "was cancelled, there is no result"
    default:
      return "failed"
  }
}

/** Names the calls and their outcomes; what they came to is in the conversation, where the calls are. */
export const settledMessage = (tasks: ReadonlyArray<SettledTask>): SystemMessage => ({
  role: "system",
  content: [
    "Background tasks have settled since your last answer. Their outcomes stand in the conversation, as the results of their calls:",
    ...tasks.map(
      task => `- call ${task.toolCallId} of "${task.toolName}" (task ${task.id}) ${outcomeOf(task)}.`
    ),
    "Go on with the conversation from these outcomes, and tell the user what matters of them. Do not call these tools again for the same work."
  ].join("\n")
})
