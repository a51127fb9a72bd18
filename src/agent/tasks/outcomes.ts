/** Outcomes of background tasks in a conversation. */
import { taskOf } from "../../background/taskChunks.js"
import type { Message, ToolResultPart } from "../../protocol/Message.js"
import { isSettled, statuses } from "../../protocol/Task.js"

/** Whether a part is the outcome of a background task. */
export const isSettledPart = (part: ToolResultPart): boolean => {
  const status = taskOf(part)?.status
  return statuses.some(known => known === status && isSettled(known))
}

/** Tasks whose outcomes stand in these messages. */
export const settledIn = (messages: ReadonlyArray<Message>): ReadonlySet<string> => {
  const ids = new Set<string>()
  for (const message of messages) {
    if (message.role !== "tool") continue
    for (const part of message.content) {
      const task = taskOf(part)
      if (task !== undefined && isSettledPart(part)) ids.add(task.taskId)
    }
  }
  return ids
}
