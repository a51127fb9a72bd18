/** The options of agents and runs, as data: what each takes, and where those stand that are written in another place. */
import * as Options from "../protocol/options.js"
import type { Defaults, RunOptions, StepChanges } from "./RunOptions.js"

type Kinds<Name extends PropertyKey> = Readonly<Record<Name, Options.Kind>>

const modelSettingKinds = {
  maxOutputTokens: Options.wholeNumber(1),
  temperature: Options.number,
  topP: Options.number,
  topK: Options.number,
  presencePenalty: Options.number,
  frequencyPenalty: Options.number,
  stopSequences: Options.texts,
  seed: Options.number,
  headers: Options.object
} satisfies Kinds<keyof NonNullable<Defaults["modelSettings"]>>

/** Settings of the model, which a model of one's own may have more of. Throws `InvalidConfiguration`. */
export const checkModelSettings = (settings: unknown): void => {
  if (settings === undefined) return
  Options.checkOptions("`modelSettings`", settings, { kinds: modelSettingKinds }, "modelSettings")
}

const isFunction = (value: unknown): boolean => typeof value === "function"

const stopWhen: Options.Kind = {
  accepts: value => isFunction(value) || (Array.isArray(value) && value.every(isFunction)),
  remedy: value =>
    typeof value === "number"
      ? `Give a function, for example ({ steps }) => steps.length >= ${value}; \`maxSteps\` takes a number.`
      : "Give a function of { steps }, or an array of functions."
}

const toolChoice: Options.Kind = {
  accepts: value =>
    Options.isOptions(value)
      ? value["type"] === "tool" && typeof value["toolName"] === "string"
      : value === "auto" || value === "none" || value === "required",
  remedy: 'Give "auto", "none", "required", or { type: "tool", toolName }.'
}

const orFunction = (kind: Options.Kind, remedy: string): Options.Kind =>
  Options.either(kind, Options.callback, remedy)

/** Options of a step, which runs and `prepareStep` have in common. */
const stepKinds = {
  activeTools: Options.texts,
  toolChoice,
  modelSettings: Options.object,
  providerOptions: Options.object
} satisfies Partial<Kinds<keyof StepChanges>>

/** Settings that an agent may have and a run may change. */
export const defaultKinds = {
  ...stepKinds,
  maxSteps: Options.read,
  stopWhen,
  prepareStep: Options.callback,
  toolCallConcurrency: Options.read,
  requireToolApproval: orFunction(Options.flag, "Give true, false, or a function of the call that decides."),
  maxRetries: Options.read,
  inputProcessors: Options.read,
  outputProcessors: Options.read,
  maxProcessorRetries: Options.read,
  timeouts: Options.object,
  maxDepth: Options.read,
  includeRawChunks: Options.flag,
  includeRequestBody: Options.flag,
  untilIdle: Options.read,
  structuredOutput: Options.read
} satisfies Kinds<keyof Defaults>

/** Options that only a run has. */
const runOnlyKinds = {
  tools: { accepts: Array.isArray, remedy: "Give the tools in an array." },
  clientTools: Options.object,
  instructions: Options.text,
  requestContext: { ...Options.object, remedy: "Give a Map, or a plain object." },
  memory: { ...Options.object, remedy: "Give { thread, resource }." },
  resource: Options.id,
  replay: Options.flag,
  runId: Options.id,
  abortSignal: Options.abortSignal
} satisfies Kinds<Exclude<keyof RunOptions, keyof Defaults>>

/** What a run of either face has. */
export const runKinds = { ...defaultKinds, ...runOnlyKinds }

/** What `prepareStep` may give. */
export const stepChangeKinds = {
  ...stepKinds,
  model: Options.read,
  messages: Options.read,
  instructions: Options.read,
  tools: Options.read
} satisfies Kinds<keyof StepChanges>

/** Parts of an agent of either face, but for its settings. */
export const agentPartKinds = {
  id: Options.read,
  name: Options.id,
  description: Options.text,
  instructions: orFunction(Options.text, "Give a string, or a function that makes one."),
  model: Options.read,
  tools: Options.read,
  memory: { ...Options.object, remedy: "Give { lastMessages, whenBusy }." },
  backgroundTasks: Options.object,
  goal: Options.read
}

/** Settings by the name that other libraries, or the options around them, give them. */
const settingPlaces: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.keys(modelSettingKinds).map(name => [name, `modelSettings.${name}`])),
  maxTokens: "modelSettings.maxOutputTokens",
  stop: "modelSettings.stopSequences",
  output: "structuredOutput.schema",
  experimental_output: "structuredOutput.schema",
  schema: "structuredOutput.schema",
  responseFormat: "structuredOutput.schema",
  timeout: "timeouts.run",
  timeoutMs: "timeouts.run",
  concurrency: "toolCallConcurrency",
  experimental_activeTools: "activeTools",
  requireApproval: "requireToolApproval"
}

/** The options of a run by other names. */
const runOptionPlaces: Readonly<Record<string, string>> = {
  threadId: "memory.thread",
  thread: "memory.thread",
  resourceId: "memory.resource",
  lastMessages: "memory.lastMessages",
  signal: "abortSignal",
  system: "instructions",
  context: "requestContext",
  runtimeContext: "requestContext"
}

const sentences = (
  places: Readonly<Record<string, string>>,
  sentence: (place: string) => string
): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(places).map(([name, place]) => [name, sentence(place)]))

const ofAgent = (name: string): string => `It is an option of the agent: \`new Agent({ ${name} })\`.`

/** Where options stand that are written as options of a run. */
export const runPlaces: Readonly<Record<string, string>> = {
  ...sentences({ ...settingPlaces, ...runOptionPlaces }, Options.at),
  ...Object.fromEntries(
    ["model", "id", "name", "description", "agents", "workflows", "backgroundTasks", "goal"].map(name => [
      name,
      ofAgent(name)
    ])
  )
}

const same = (names: ReadonlyArray<string>): Readonly<Record<string, string>> =>
  Object.fromEntries(names.map(name => [name, name]))

const toRun = (place: string): string => `It is an option of a run. Give it to the run as \`${place}\`.`

/** Where options stand that are written as options of an agent; its settings stand behind `settings`. */
export const agentPlaces = (settings: "" | "defaultOptions."): Readonly<Record<string, string>> => ({
  ...sentences({ ...same(Object.keys(runOnlyKinds)), ...runOptionPlaces }, toRun),
  system: Options.at("instructions"),
  ...sentences({ ...settingPlaces, ...(settings === "" ? {} : same(Object.keys(defaultKinds))) }, place =>
    Options.at(`${settings}${place}`)
  )
})
