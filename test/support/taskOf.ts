/** A task of this id that is pending. */
export const taskOf = (id: string) => ({
  id,
  status: "pending" as const,
  toolName: "look",
  toolCallId: `call-${id}`,
  args: { question: id },
  agentId: "agent",
  runId: "run",
  createdAt: new Date(1000),
  attempt: 0,
  maxRetries: 0,
  timeoutMs: 1000
})
