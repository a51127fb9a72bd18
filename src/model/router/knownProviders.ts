/** The providers that a model may be named by, as data: which package speaks to them, where they are, who knows their key. */

/** The packages that models are made with. */
export type PackageName =
  | "@ai-sdk/anthropic"
  | "@ai-sdk/google"
  | "@ai-sdk/openai"
  | "@ai-sdk/openai-compatible"

/** How a provider is reached. */
export interface Provider {
  readonly packageName: PackageName
  /** Absent where the package knows it. */
  readonly url?: string
  /** Environment variables that may hold the key: the first one that does is taken. None for who asks for no key. */
  readonly keyVariables: ReadonlyArray<string>
  /** It tells the usage of a stream unasked, and refuses a request that asks for it. */
  readonly tellsUsageUnasked?: true
}

const compatible = (url: string, ...keyVariables: ReadonlyArray<string>): Provider => ({
  packageName: "@ai-sdk/openai-compatible",
  url,
  keyVariables
})

const providers: ReadonlyMap<string, Provider> = new Map<string, Provider>([
  ["anthropic", { packageName: "@ai-sdk/anthropic", keyVariables: ["ANTHROPIC_API_KEY"] }],
  ["cerebras", compatible("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY")],
  ["deepinfra", compatible("https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY")],
  ["deepseek", compatible("https://api.deepseek.com", "DEEPSEEK_API_KEY")],
  ["fireworks", compatible("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY")],
  [
    "google",
    { packageName: "@ai-sdk/google", keyVariables: ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"] }
  ],
  ["groq", compatible("https://api.groq.com/openai/v1", "GROQ_API_KEY")],
  ["lmstudio", compatible("http://127.0.0.1:1234/v1")],
  ["mistral", { ...compatible("https://api.mistral.ai/v1", "MISTRAL_API_KEY"), tellsUsageUnasked: true }],
  ["ollama", compatible("http://127.0.0.1:11434/v1")],
  ["openai", { packageName: "@ai-sdk/openai", keyVariables: ["OPENAI_API_KEY"] }],
  ["openrouter", compatible("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY")],
  ["together", compatible("https://api.together.ai/v1", "TOGETHER_API_KEY")],
  ["xai", compatible("https://api.x.ai/v1", "XAI_API_KEY")]
])

/** The names of all, in the order of the alphabet. */
export const names: ReadonlyArray<string> = [...providers.keys()]

/** The provider of this name; `undefined` for one that is not known. */
export const find = (name: string): Provider | undefined => providers.get(name)

/** A server that nobody knows but the caller, who gives its address and its key. */
export const other: Provider = { packageName: "@ai-sdk/openai-compatible", keyVariables: [] }
