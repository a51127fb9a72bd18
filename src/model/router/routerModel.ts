/** Makes models of names. What it needs of its surroundings is handed in, so that a test can be all of them. */
import * as Effect from "effect/Effect"
import * as AiSdk from "../AiSdk.js"
import type { LanguageModel, ModelAnswer, ModelRequest } from "../ModelPort.js"
import * as KnownProviders from "./knownProviders.js"
import { invalid, isHeaderValue, type ModelId, type Named, parse, written } from "./routerId.js"

/** How packages are loaded: loaded itself when a model is asked first. */
export const packages = () => import("./routerPackages.js")

export interface Surroundings {
  /** Imports a package; rejects as the import does. */
  readonly load: (packageName: KnownProviders.PackageName) => Promise<unknown>
  /** An environment variable, as it is now. */
  readonly environment: (variable: string) => string | undefined
}

const providerOf = (named: Named): KnownProviders.Provider => {
  const known = KnownProviders.find(named.provider)
  if (known !== undefined) return known
  if (named.url !== undefined) return KnownProviders.other
  throw invalid(
    `The provider "${named.provider}" is not known. Known are ${KnownProviders.names.join(", ")}. Any other server that speaks OpenAI's chat completions is named with its address: { id: ${written(named)}, url: "https://…/v1" }.`
  )
}

const missingKey = (named: Named, variables: ReadonlyArray<string>): Error =>
  invalid(
    `The model ${written(named)} needs a key. Set ${variables.join(" or ")}, or give the key itself: { id: ${written(named)}, apiKey }.`
  )

/** The key, wherever it comes from; `undefined` when there is none and none is needed. */
const keyOf = (
  named: Named,
  { keyVariables }: KnownProviders.Provider,
  environment: Surroundings["environment"]
): string | undefined => {
  const sources: ReadonlyArray<readonly [from: string, key: string]> =
    named.apiKey === undefined
      ? keyVariables.map(variable => [variable, environment(variable)?.trim() ?? ""])
      : [["`apiKey`", named.apiKey.trim()]]
  const found = sources.find(([_, key]) => key !== "")
  if (found === undefined) {
    if (keyVariables.length > 0 && named.url === undefined) throw missingKey(named, keyVariables)
    return undefined
  }
  const [from, key] = found
  if (isHeaderValue(key)) return key
  throw invalid(
    `The key of the model ${written(named)} in ${from} has characters that no HTTP header can carry. Copy it anew.`
  )
}

/** A function from names to models. Packages are loaded once for all of them. */
export const makeRouter = ({ environment, load }: Surroundings): ((id: ModelId) => LanguageModel) => {
  const loading = new Map<KnownProviders.PackageName, Promise<unknown>>()

  const loadOnce = (packageName: KnownProviders.PackageName): Promise<unknown> => {
    const known = loading.get(packageName)
    if (known !== undefined) return known
    const begun = load(packageName).catch(cause => {
      loading.delete(packageName)
      return Promise.reject(cause)
    })
    loading.set(packageName, begun)
    return begun
  }

  return id => {
    const named = parse(id)
    const provider = providerOf(named)
    // Kept, because a model remembers the prompts that it has converted.
    let made: { readonly key: string | undefined; readonly model: LanguageModel } | undefined

    const modelFor = async (key: string | undefined): Promise<LanguageModel> => {
      if (made !== undefined && made.key === key) return made.model
      const { loadFailure, makeModel } = await packages()
      const loaded = await loadOnce(provider.packageName).catch(cause =>
        Promise.reject(loadFailure(named, provider.packageName, cause))
      )
      const model = AiSdk.make(makeModel(loaded, named, provider, key))
      made = { key, model }
      return model
    }

    const answer = async (request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> => {
      const model = await modelFor(keyOf(named, provider, environment))
      const begun = model.answer(request, signal)
      return Effect.isEffect(begun) ? Effect.runPromise(begun, { signal }) : begun
    }

    return { provider: named.provider, modelId: named.modelId, answer }
  }
}
