/**
 * The words of OpenTelemetry's conventions for generative AI, as they were in 2026. Written down here: they still move, and what
 * a trace says must not change with the version of a package. Names that begin with `eddy.` are ours.
 */

export const attributes = {
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  agentId: "gen_ai.agent.id",
  agentName: "gen_ai.agent.name",
  agentDescription: "gen_ai.agent.description",
  workflowName: "gen_ai.workflow.name",
  conversationId: "gen_ai.conversation.id",
  requestModel: "gen_ai.request.model",
  requestStream: "gen_ai.request.stream",
  temperature: "gen_ai.request.temperature",
  maxTokens: "gen_ai.request.max_tokens",
  topP: "gen_ai.request.top_p",
  topK: "gen_ai.request.top_k",
  presencePenalty: "gen_ai.request.presence_penalty",
  frequencyPenalty: "gen_ai.request.frequency_penalty",
  stopSequences: "gen_ai.request.stop_sequences",
  seed: "gen_ai.request.seed",
  responseId: "gen_ai.response.id",
  responseModel: "gen_ai.response.model",
  finishReasons: "gen_ai.response.finish_reasons",
  timeToFirstChunk: "gen_ai.response.time_to_first_chunk",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cachedInputTokens: "gen_ai.usage.cache_read.input_tokens",
  reasoningTokens: "gen_ai.usage.reasoning.output_tokens",
  tokenType: "gen_ai.token.type",
  toolName: "gen_ai.tool.name",
  toolType: "gen_ai.tool.type",
  toolDescription: "gen_ai.tool.description",
  toolCallId: "gen_ai.tool.call.id",
  toolArguments: "gen_ai.tool.call.arguments",
  toolResult: "gen_ai.tool.call.result",
  systemInstructions: "gen_ai.system_instructions",
  inputMessages: "gen_ai.input.messages",
  outputMessages: "gen_ai.output.messages",
  errorType: "error.type",
  runId: "eddy.run.id",
  retry: "eddy.chat.retry",
  taskId: "eddy.task.id",
  taskAttempt: "eddy.task.attempt",
  isSuspended: "eddy.task.suspended",
  isTruncated: "eddy.content.truncated"
} as const

export const metrics = {
  duration: "gen_ai.client.operation.duration",
  tokens: "gen_ai.client.token.usage",
  timeToFirstChunk: "gen_ai.client.operation.time_to_first_chunk"
} as const

/** Bounds of the buckets of durations, in seconds. */
export const secondBounds = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92
] as const

/** Bounds of the buckets of tokens. */
export const tokenBounds = [
  1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864
] as const

/** Providers by what their packages call them, up to the first point; Vertex is Google's in two words. */
const providers: Readonly<Record<string, string>> = {
  openai: "openai",
  anthropic: "anthropic",
  google: "gcp.gemini",
  vertex: "gcp.vertex_ai",
  azure: "azure.ai.openai",
  "azure-openai": "azure.ai.openai",
  "amazon-bedrock": "aws.bedrock",
  bedrock: "aws.bedrock",
  cohere: "cohere",
  deepseek: "deepseek",
  groq: "groq",
  mistral: "mistral_ai",
  moonshotai: "moonshot_ai",
  perplexity: "perplexity",
  xai: "x_ai"
}

/** The provider by its name in the conventions; one that they do not know is told by its own. */
export const providerName = (provider: string): string => {
  if (provider.startsWith("google.vertex")) return "gcp.vertex_ai"
  const [first = provider] = provider.split(".", 1)
  return Object.hasOwn(providers, first) ? (providers[first] ?? provider) : provider
}

/** A reason to finish by its name in the conventions. */
export const finishReason = (reason: string): string => {
  if (reason === "tool-calls") return "tool_call"
  return reason === "content-filter" ? "content_filter" : reason
}
