/** Calls and their outcomes, brought together: what a prompt must be before a provider accepts it (invariant 5). */
import type { AssistantMessage, Message, ToolCallPart, ToolMessage, ToolResultPart } from "./Message.js"

type AssistantPart = AssistantMessage["content"][number]

/**
 * The outcome of each call that has one. A result belongs to the last call of its id that came before it and has none
 * yet, so that providers that use an id again in a later answer do no harm. Keys are parts, by identity.
 */
export const outcomes = (messages: ReadonlyArray<Message>): ReadonlyMap<ToolCallPart, ToolResultPart> => {
  const open = new Map<string, ToolCallPart>()
  const found = new Map<ToolCallPart, ToolResultPart>()
  for (const message of messages) {
    if (message.role !== "assistant" && message.role !== "tool") continue
    for (const part of message.content) {
      if (part.type === "tool-call") open.set(part.toolCallId, part)
      if (part.type !== "tool-result") continue
      const call = open.get(part.toolCallId)
      if (call === undefined) continue
      open.delete(part.toolCallId)
      found.set(call, part)
    }
  }
  return found
}

/** Ids of calls, and whether the last call of that id has its outcome. */
export const answeredCalls = (messages: ReadonlyArray<Message>): Map<string, boolean> => {
  const calls = new Map<string, boolean>()
  for (const message of messages) {
    if (message.role !== "assistant" && message.role !== "tool") continue
    for (const part of message.content) {
      if (part.type === "tool-call") calls.set(part.toolCallId, false)
      else if (part.type === "tool-result" && calls.has(part.toolCallId)) calls.set(part.toolCallId, true)
    }
  }
  return calls
}

interface Pairs {
  readonly results: ReadonlyMap<ToolCallPart, ToolResultPart>
  readonly calls: ReadonlyMap<ToolResultPart, ToolCallPart>
  readonly messageOf: ReadonlyMap<ToolResultPart, Message>
}

const pair = (messages: ReadonlyArray<Message>): Pairs => {
  const results = outcomes(messages)
  const messageOf = new Map<ToolResultPart, Message>()
  for (const message of messages) {
    if (message.role !== "assistant" && message.role !== "tool") continue
    for (const part of message.content) if (part.type === "tool-result") messageOf.set(part, message)
  }
  return { results, calls: new Map(Array.from(results, ([call, result]) => [result, call])), messageOf }
}

/** What a provider executed itself it tells in its answer, where it stays; our own outcomes follow the answer. */
const staysInside = (result: ToolResultPart, pairs: Pairs): boolean =>
  pairs.calls.get(result)?.providerExecuted === true && pairs.messageOf.get(result)?.role === "assistant"

/**
 * An assistant message may hold outcomes of ours: what stands behind one was said in its knowledge, so it is another
 * answer. Outcomes of ours and results without a call are left out here.
 */
const answers = (
  content: AssistantMessage["content"],
  pairs: Pairs
): ReadonlyArray<ReadonlyArray<AssistantPart>> => {
  const groups: Array<Array<AssistantPart>> = [[]]
  let ended = false
  for (const part of content) {
    if (part.type === "tool-result" && !staysInside(part, pairs)) {
      ended ||= pairs.calls.has(part)
      continue
    }
    if (ended) groups.push([])
    ended = false
    groups.at(-1)?.push(part)
  }
  return groups
}

/** Reasoning that led to a call that is gone leads nowhere, and providers refuse it. */
const withoutLooseEnds = (
  content: ReadonlyArray<AssistantPart>,
  { results }: Pairs
): ReadonlyArray<AssistantPart> => {
  const kept = content.filter(part => part.type !== "tool-call" || results.has(part))
  return kept.length === content.length
    ? kept
    : kept.slice(0, kept.findLastIndex(part => part.type !== "reasoning") + 1)
}

const named = (result: ToolResultPart, pairs: Pairs): ToolResultPart => ({
  ...result,
  toolName: pairs.calls.get(result)?.toolName ?? result.toolName
})

const toolMessage = (content: ReadonlyArray<AssistantPart>, pairs: Pairs): ReadonlyArray<ToolMessage> => {
  const results = content.flatMap(part => {
    const result = part.type === "tool-call" ? pairs.results.get(part) : undefined
    return result === undefined || staysInside(result, pairs) ? [] : [result]
  })
  if (results.length === 0) return []
  const providerOptions = Object.assign(
    {},
    ...results.map(result => {
      const message = pairs.messageOf.get(result)
      return message?.role === "tool" ? message.providerOptions : undefined
    })
  )
  return [
    {
      role: "tool",
      content: results.map(result => named(result, pairs)),
      ...(Object.keys(providerOptions).length > 0 && { providerOptions })
    }
  ]
}

/**
 * Messages in the form that every provider accepts: each call has its outcome in the tool message right behind it, in call
 * order, or is left out; results without a call, second results and empty messages are left out.
 */
export const settle = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const pairs = pair(messages)
  return messages.flatMap<Message>(message => {
    switch (message.role) {
      case "tool":
        return []
      case "assistant":
        return answers(message.content, pairs).flatMap<Message>(answer => {
          const content = withoutLooseEnds(answer, pairs).map(part =>
            part.type === "tool-result" ? named(part, pairs) : part
          )
          return content.length === 0 ? [] : [{ ...message, content }, ...toolMessage(content, pairs)]
        })
      default:
        return message.content.length === 0 ? [] : [message]
    }
  })
}
