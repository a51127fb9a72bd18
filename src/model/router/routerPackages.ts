/** The provider packages: loaded when a model is asked first, and told apart when they cannot be used. */
import * as Predicate from "effect/Predicate"
import { type AiSdkModel, versions } from "../aiSdkTypes.js"
import type { PackageName, Provider } from "./knownProviders.js"
import { invalid, type Named, written } from "./routerId.js"

/** Imports a package. The specifiers are spelt out for the bundlers, which find what they can read. */
export const importPackage = async (name: PackageName): Promise<unknown> => {
  // Of an import in a `try` they only warn when the package is not installed.
  try {
    switch (name) {
      case "@ai-sdk/anthropic":
        return await import("@ai-sdk/anthropic")
      case "@ai-sdk/google":
        return await import("@ai-sdk/google")
      case "@ai-sdk/openai":
        return await import("@ai-sdk/openai")
      case "@ai-sdk/openai-compatible":
        return await import("@ai-sdk/openai-compatible")
    }
  } catch (cause) {
    return Promise.reject(cause)
  }
}

interface Package {
  /** What makes a provider, by the names that it has in the versions of the package. */
  readonly factories: ReadonlyArray<string>
  readonly keyHeader: string
}

const packages: Readonly<Record<PackageName, Package>> = {
  "@ai-sdk/anthropic": { factories: ["createAnthropic"], keyHeader: "x-api-key" },
  "@ai-sdk/google": { factories: ["createGoogleGenerativeAI", "createGoogle"], keyHeader: "x-goog-api-key" },
  "@ai-sdk/openai": { factories: ["createOpenAI"], keyHeader: "Authorization" },
  "@ai-sdk/openai-compatible": { factories: ["createOpenAICompatible"], keyHeader: "Authorization" }
}

const messageOf = (cause: unknown): string => {
  const said = Predicate.hasProperty(cause, "message") ? cause.message : cause
  const [line = ""] = typeof said === "string" ? said.split("\n", 1) : []
  return line.trim() === "" ? "it does not say why" : line.trim()
}

/** Says so of the package itself: what the package imports may be missing as well, and is another matter. */
const isMissing = (packageName: PackageName, cause: unknown): boolean => {
  const refusal = /(?:cannot find|could not resolve|failed to load)[^"'`]*["'`]([^"'`]+)["'`]/i
  return refusal.exec(messageOf(cause))?.[1] === packageName
}

/** What is told when a package cannot be loaded. */
export const loadFailure = (named: Named, packageName: PackageName, cause: unknown): Error =>
  isMissing(packageName, cause)
    ? invalid(
        `The model ${written(named)} needs the package ${packageName}, which is not installed. Run: npm install ${packageName}`
      )
    : invalid(
        `The package ${packageName} is there, but fails while it is loaded (${messageOf(cause)}). Install it anew: npm install ${packageName}@latest`
      )

const unusable = (packageName: PackageName): Error =>
  invalid(
    `The package ${packageName} is there in a version that eddy cannot use. Update it: npm install ${packageName}@latest`
  )

const isModel = (value: unknown): value is AiSdkModel =>
  Predicate.hasProperty(value, "doStream") &&
  Predicate.isFunction(value.doStream) &&
  Predicate.hasProperty(value, "specificationVersion") &&
  versions.some(known => known === value.specificationVersion)

/** Without a key its header is taken out, or some packages would send an empty one. */
const settingsOf = (named: Named, provider: Provider, key: string | undefined): object => {
  const url = named.url ?? provider.url
  return {
    ...(provider.packageName === "@ai-sdk/openai-compatible"
      ? { name: named.provider, includeUsage: provider.tellsUsageUnasked !== true }
      : {}),
    ...(url === undefined ? {} : { baseURL: url }),
    // Given even when it is empty, or the package would look for one itself.
    apiKey: key ?? "",
    headers: {
      ...(key === undefined ? { [packages[provider.packageName].keyHeader]: undefined } : {}),
      ...named.headers
    }
  }
}

/** The model as a loaded package makes it, called by the words of its name. */
export const makeModel = (
  loaded: unknown,
  named: Named,
  provider: Provider,
  key: string | undefined
): AiSdkModel => {
  const { packageName } = provider
  const create = packages[packageName].factories
    .map(name => (Predicate.hasProperty(loaded, name) ? loaded[name] : undefined))
    .find(Predicate.isFunction)
  if (create === undefined) throw unusable(packageName)
  let model: unknown
  try {
    const makeAny: unknown = create(settingsOf(named, provider, key))
    model = Predicate.isFunction(makeAny) ? makeAny(named.modelId) : undefined
  } catch (cause) {
    throw invalid(
      `The package ${packageName} makes no model ${written(named)} (${messageOf(cause)}). Check what it reads from the environment, or update it: npm install ${packageName}@latest`
    )
  }
  if (!isModel(model)) throw unusable(packageName)
  const made = model
  return {
    specificationVersion: made.specificationVersion,
    provider: named.provider,
    modelId: named.modelId,
    doStream: options => made.doStream(options)
  }
}
