/**
 * Language models by their names: `"openai/gpt-5-mini"`. The provider packages stay optional: one is loaded when a model
 * of it is asked first, and nothing of it before.
 *
 * @since 0.1.0
 */
import type { LanguageModel } from "./ModelPort.js"
import type * as RouterId from "./router/routerId.js"
import { makeRouter, packages } from "./router/routerModel.js"

/**
 * A model by its name: `"provider/model"`, or with the address of any server that speaks OpenAI's chat completions:
 * `{ id: "barn/llama-3", url: "http://127.0.0.1:8000/v1" }`. What follows the first slash is the model, further slashes and
 * colons included: `"openrouter/anthropic/claude-sonnet-4.5"`, `"ollama/llama3:8b"`.
 *
 * @since 0.1.0
 * @category models
 */
export type ModelId = RouterId.ModelId

const environment = (variable: string): string | undefined =>
  typeof process === "undefined" ? undefined : process.env[variable]

const route = makeRouter({
  load: async name => (await packages()).importPackage(name),
  environment
})

/**
 * The model of this name. Throws `InvalidConfiguration` for one that cannot work: no provider, an unknown provider without
 * a `url`, an address that is none. `provider` and `modelId` of the model, and of its errors, are the two parts of the name,
 * not the words of the package.
 *
 * | name | package | key |
 * | --- | --- | --- |
 * | `openai/…` | `@ai-sdk/openai` | `OPENAI_API_KEY` |
 * | `anthropic/…` | `@ai-sdk/anthropic` | `ANTHROPIC_API_KEY` |
 * | `google/…` | `@ai-sdk/google` | `GOOGLE_GENERATIVE_AI_API_KEY`, else `GEMINI_API_KEY` |
 * | `cerebras/…`, `deepinfra/…`, `deepseek/…`, `fireworks/…`, `groq/…`, `mistral/…`, `openrouter/…`, `together/…`, `xai/…` | `@ai-sdk/openai-compatible` | `CEREBRAS_API_KEY` and so on |
 * | `lmstudio/…`, `ollama/…`, on this machine | `@ai-sdk/openai-compatible` | none |
 * | any other, with `url` | `@ai-sdk/openai-compatible` | `apiKey`, if there is one |
 *
 * The environment is read when the model is asked, not before. Then `answer` rejects with `InvalidConfiguration` when the
 * package is missing, cannot be loaded or is of a version that cannot be used, and when there is no key: not for a `url`,
 * whose server may need none. Nothing is sent in these cases, and the next call tries again. What goes wrong later is a
 * `ModelError`, as of any AI SDK model.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromId = (id: ModelId): LanguageModel => route(id)
