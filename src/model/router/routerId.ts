/** The names of models, read and checked: `"provider/model"`, and what may stand beside it. */
import * as Predicate from "effect/Predicate"
import { InvalidConfiguration } from "../../protocol/Errors.js"
import { remedyFor } from "../../protocol/options.js"
import { find } from "./knownProviders.js"

/** A model by its name, and what differs from what is known of its provider. */
interface PlacedModelId {
  /** `"provider/model"`; also a string that is known at run time only. */
  readonly id: string
  /**
   * Where the provider is: the part of the address that `/chat/completions` follows, for example
   * `http://127.0.0.1:8000/v1`. Any provider but `openai`, `anthropic` and `google`, known or not, is spoken to in OpenAI's
   * chat completions there; those three in their own protocol, which for `openai` is the Responses API.
   */
  readonly url?: string
  /** Default: the key in the provider's environment variable, also when there is a `url`. An empty one sends no key. */
  readonly apiKey?: string
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
}

export type ModelId = `${string}/${string}` | PlacedModelId

/** A name in its parts. */
export interface Named extends Omit<PlacedModelId, "id"> {
  readonly provider: string
  readonly modelId: string
}

export const invalid = (message: string): InvalidConfiguration =>
  new InvalidConfiguration({ field: "model", message })

/** The name as it was written, for messages. */
export const written = ({ modelId, provider }: Named): string => JSON.stringify(`${provider}/${modelId}`)

const example = '"openai/gpt-5-mini"'

/** Whose models are called so. Only for the remedy of a name without provider. */
const makers: ReadonlyArray<readonly [start: string, provider: string]> = [
  ["claude", "anthropic"],
  ["deepseek", "deepseek"],
  ["gemini", "google"],
  ["gpt", "openai"],
  ["grok", "xai"],
  ["mistral", "mistral"]
]

const guessProvider = (modelId: string): string =>
  makers.find(([start]) => modelId.startsWith(start))?.[1] ?? "ollama"

/** A name whose provider stands before a colon, as registries of other libraries write it. */
const withSlash = (id: string): string | undefined => {
  const colon = id.indexOf(":")
  const provider = id.slice(0, colon)
  return find(provider) === undefined ? undefined : `${provider}/${id.slice(colon + 1)}`
}

const split = (id: string): readonly [provider: string, modelId: string] => {
  const name = JSON.stringify(id)
  if (id.trim() === "") throw invalid(`The name of the model is empty. Write provider and model: ${example}.`)
  if (/[\s\p{Cc}]/u.test(id)) {
    throw invalid(`The name of the model, ${name}, has white space in it. Write it without.`)
  }
  const slash = id.indexOf("/")
  const modelId = id.slice(slash + 1)
  if (modelId === "") throw invalid(`${name} names no model. Write it behind the provider: ${example}.`)
  if (slash <= 0) {
    const remedy = JSON.stringify(withSlash(modelId) ?? `${guessProvider(modelId)}/${modelId}`)
    throw invalid(`The model ${name} has no provider. Write the provider in front: ${remedy}.`)
  }
  if (modelId.split("/").includes("")) {
    throw invalid(`The name of the model, ${name}, has a slash too much. Write it without.`)
  }
  return [id.slice(0, slash), modelId]
}

/** Names are keys of provider options too, where the packages read no dots. */
const checkProvider = (provider: string, id: string): string => {
  if (/^[A-Za-z0-9][\w-]*$/.test(provider)) return provider
  const remedy = withSlash(id)
  if (remedy !== undefined) {
    throw invalid(
      `The model ${JSON.stringify(id)} has a colon behind its provider. Write ${JSON.stringify(remedy)}.`
    )
  }
  throw invalid(
    `The provider ${JSON.stringify(provider)} cannot be called so. Name it with letters, digits, "-" and "_", beginning with a letter or a digit.`
  )
}

const checkUrl = (name: string, value: unknown): string => {
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined
  if (typeof value !== "string" || (url?.protocol !== "http:" && url?.protocol !== "https:")) {
    throw invalid(
      `The \`url\` of the model ${name} is no web address. Write one: "http://127.0.0.1:8000/v1".`
    )
  }
  // Neither is quoted: both are places where people keep keys.
  if (`${url.username}${url.password}${url.search}${url.hash}` !== "") {
    throw invalid(
      `The \`url\` of the model ${name} has a user, a query or a fragment in it. Leave them out: a key belongs into \`apiKey\`, whatever else into \`headers\`.`
    )
  }
  if (/\/chat\/completions\/?$/.test(url.pathname)) {
    throw invalid(
      `The \`url\` of the model ${name} ends with "/chat/completions". Leave that out: it is added.`
    )
  }
  return value
}

/** What goes wrong with a header later would quote it, and with it a key. */
export const isHeaderValue = (value: string): boolean => /^[\t\x20-\x7e\x80-\xff]*$/.test(value)

const checkHeaders = (name: string, value: unknown): Readonly<Record<string, string>> => {
  if (!Predicate.isRecord(value)) {
    throw invalid(`The \`headers\` of the model ${name} are no object. Write { "header": "value" }.`)
  }
  const headers: Record<string, string> = {}
  for (const [header, content] of Object.entries(value)) {
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(header) || typeof content !== "string" || !isHeaderValue(content)) {
      throw invalid(
        `The header ${JSON.stringify(header)} of the model ${name} cannot be sent. Give it a name of letters, digits and dashes, and a string in one line as its value.`
      )
    }
    headers[header] = content
  }
  return headers
}

const checkKey = (name: string, value: unknown): string => {
  if (typeof value === "string") return value
  throw invalid(
    `The \`apiKey\` of the model ${name} is no string. Give the key itself, or leave it out for the one in the environment.`
  )
}

const knownFields = ["id", "url", "apiKey", "headers"]

/** The parts of a name. Throws `InvalidConfiguration` for one that cannot work, whoever its provider is. */
export const parse = (given: ModelId): Named => {
  const fields: unknown = typeof given === "string" ? { id: given } : given
  if (!Predicate.isRecord(fields) || typeof fields["id"] !== "string") {
    throw invalid(
      `The model is named neither by a string nor by { id, url, apiKey, headers } with a string as \`id\`. Write for example ${example}.`
    )
  }
  const { apiKey, headers, id, url } = fields
  const [provider, modelId] = split(id)
  const name = JSON.stringify(id)
  for (const field of Object.keys(fields)) {
    if (knownFields.includes(field)) continue
    throw invalid(`The model ${name} has no option \`${field}\`. ${remedyFor(field, knownFields)}`)
  }
  return {
    provider: checkProvider(provider, id),
    modelId,
    ...(url === undefined ? {} : { url: checkUrl(name, url) }),
    ...(apiKey === undefined ? {} : { apiKey: checkKey(name, apiKey) }),
    ...(headers === undefined ? {} : { headers: checkHeaders(name, headers) })
  }
}
