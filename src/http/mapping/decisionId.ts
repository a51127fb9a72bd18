/** The id under which a client decides about a call: the run and the call in one string. */

const separator = "::"

/** A call id with the separator in it would be cut in the wrong place; every other id stands as it is. */
const escaped = (toolCallId: string): string => {
  const id = toolCallId.replaceAll("%", "%25")
  return id.includes(separator) || id.startsWith(":") ? id.replaceAll(":", "%3A") : id
}

export const decisionId = (runId: string, toolCallId: string): string =>
  `${runId}${separator}${escaped(toolCallId)}`

export interface Decided {
  readonly runId: string
  readonly toolCallId: string
}

/** The run and the call of an id; `undefined` when it is none of ours. Cut at the last separator: ids of runs are the host's. */
export const readDecisionId = (id: string): Decided | undefined => {
  const at = id.lastIndexOf(separator)
  if (at <= 0 || at + separator.length === id.length) return undefined
  const toolCallId = id.slice(at + separator.length)
  return {
    runId: id.slice(0, at),
    toolCallId: toolCallId.replaceAll("%3A", ":").replaceAll("%25", "%")
  }
}
