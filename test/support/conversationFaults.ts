/** Whether a conversation is one that every provider takes. */
import type { Message } from "eddy"

/** What a provider would refuse: a call without its outcome behind it, an outcome without its call, another order. */
export const conversationFaults = (
  messages: ReadonlyArray<Message.Message>,
  mayOwe: (call: Message.ToolCallPart) => boolean
) => {
  const faults: Array<string> = []
  const providerCalls = new Set<string>()
  const providerResults = new Set<string>()
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool" && messages[index - 1]?.role !== "assistant")
      faults.push("results of nothing")
    if (message.role !== "assistant") continue
    const calls = message.content.flatMap(part => (part.type === "tool-call" ? [part] : []))
    for (const part of message.content) {
      if (part.type === "tool-call" && part.providerExecuted === true) providerCalls.add(part.toolCallId)
      if (part.type !== "tool-result") continue
      if (!providerCalls.has(part.toolCallId)) faults.push(`"${part.toolCallId}" is a result of nothing`)
      if (providerResults.has(part.toolCallId)) faults.push(`"${part.toolCallId}" has two results`)
      providerResults.add(part.toolCallId)
    }
    const next = messages[index + 1]
    const results = next?.role === "tool" ? next.content.map(part => part.toolCallId) : []
    const owed = calls
      .filter(call => call.providerExecuted !== true && (results.includes(call.toolCallId) || !mayOwe(call)))
      .map(call => call.toolCallId)
    if (results.join() !== owed.join()) faults.push(`calls [${owed.join()}], results [${results.join()}]`)
  }
  for (const message of messages) {
    if (message.role !== "assistant") continue
    for (const part of message.content) {
      if (
        part.type === "tool-call" &&
        part.providerExecuted === true &&
        !providerResults.has(part.toolCallId)
      ) {
        if (!mayOwe(part)) faults.push(`"${part.toolCallId}" of the provider has no result`)
      }
    }
  }
  if (!JSON.stringify(messages).isWellFormed() || /\\ud[89a-f]/i.test(JSON.stringify(messages))) {
    faults.push("half a surrogate pair")
  }
  return faults
}
