/** The words of plain TypeScript, in those of the core. */
import * as Effect from "effect/Effect"
import { isLanguageModel } from "../agent/checkOptions.js"
import { checkChanges } from "../agent/loop/planning.js"
import { runKinds, runPlaces } from "../agent/optionKinds.js"
import type {
  Dynamic as CoreDynamic,
  PrepareStep as CorePrepareStep,
  UntilIdleOptions as CoreUntilIdle,
  DynamicState,
  Models,
  RunOptions,
  StopCondition
} from "../agent/RunOptions.js"
import { type StructuredOutput as CoreStructuredOutput, checkNames } from "../agent/structuredOutput.js"
import * as AiSdk from "../model/AiSdk.js"
import type { LanguageModel } from "../model/ModelPort.js"
import * as ModelRouter from "../model/ModelRouter.js"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { isOptions, type Kind, type Known, object, shown, wrongValue } from "../protocol/options.js"
import type * as Tool from "../tool/Tool.js"
import type {
  Dynamic,
  ModelInput,
  PrepareStep,
  ResumeStreamOptions,
  SingleModel,
  StopWhen,
  StreamOptions,
  StructuredOutput,
  ToolsInput,
  UntilIdleOptions
} from "./AgentOptions.js"
import { maybeTime, optionsOf, said, within } from "./background.js"
import { callbackKinds } from "./callbacks.js"
import { fromPromise } from "./fromPromise.js"
import { toProcessors } from "./processors.js"

const toolsByName = {
  ...object,
  remedy: "Give the tools by name in an object, for example { look, find }."
}

/** Options of a run that this face knows. */
export const streamOptions: Known = {
  kinds: { ...runKinds, tools: toolsByName, ...callbackKinds } satisfies Record<keyof StreamOptions, Kind>,
  places: runPlaces
}

const isModelId = (model: SingleModel): model is ModelRouter.ModelId =>
  typeof model === "string" || (("id" in model || "url" in model) && !("specificationVersion" in model))

const toModel = (model: SingleModel): LanguageModel => {
  if (isLanguageModel(model)) return model
  if (isModelId(model)) return ModelRouter.fromId(model)
  const made = AiSdk.make(model)
  if (typeof made.modelId === "string") return made
  // A provider that stands where its model should is taken for a function, and names its model by what it is told.
  throw new InvalidConfiguration({
    field: "model",
    message: '`model` has no name. Ask the provider for a model by its name, for example openai("gpt-5").'
  })
}

const isEntry = (
  entry: SingleModel | { readonly model: SingleModel; readonly maxRetries?: number }
): entry is { readonly model: SingleModel; readonly maxRetries?: number } =>
  typeof entry === "object" &&
  "model" in entry &&
  !("specificationVersion" in entry) &&
  !isLanguageModel(entry)

const isList = (models: ModelInput): models is Exclude<ModelInput, SingleModel> => Array.isArray(models)

const noModel = (value: unknown): InvalidConfiguration =>
  new InvalidConfiguration({
    field: "model",
    message: `\`model\` is ${shown(value)}. Give a model of an AI SDK provider package, for example openai("gpt-5"), or its name: "openai/gpt-5".`
  })

const single = (model: SingleModel): LanguageModel => {
  if (typeof model !== "string" && (typeof model !== "object" || model === null)) throw noModel(model)
  return toModel(model)
}

/** Throws `InvalidConfiguration`. */
export const toModels = (models: ModelInput): Models => {
  if (!isList(models)) return single(models)
  return models.map(entry =>
    typeof entry === "object" && entry !== null && isEntry(entry)
      ? { ...entry, model: single(entry.model) }
      : single(entry)
  )
}

/** Throws `InvalidConfiguration`. */
export const toTools = (tools: ToolsInput | undefined): ReadonlyArray<Tool.Tool> => {
  if (tools === undefined) return []
  if (!toolsByName.accepts(tools)) throw wrongValue("tools", tools, toolsByName.remedy)
  return Object.entries(tools).map(([name, tool]) => {
    if (typeof tool?.named === "function") return tool.named(name)
    throw new InvalidConfiguration({
      field: `tools.${name}`,
      message: `\`tools.${name}\` is no tool. Make it with createTool({ id, inputSchema, execute }).`
    })
  })
}

const isFunction = <A>(value: Dynamic<A>): value is (state: DynamicState) => A | Promise<A> =>
  typeof value === "function"

/** A part of an agent, translated at once, or each time that its function has made it. */
export const toDynamic = <A, B>(value: Dynamic<A>, translate: (made: A) => B): CoreDynamic<B> =>
  isFunction(value)
    ? state =>
        Effect.map(
          fromPromise(() => value(state)),
          translate
        )
    : translate(value)

const toStopCondition =
  (condition: StopWhen): StopCondition =>
  state => {
    const verdict = condition(state)
    return typeof verdict === "boolean" ? verdict : Effect.orDie(fromPromise(() => verdict))
  }

const toPrepareStep =
  (prepare: PrepareStep): CorePrepareStep =>
  state =>
    Effect.map(
      fromPromise(() => prepare(state)),
      changes => {
        if (changes === undefined || changes === null) return undefined
        checkChanges(changes)
        const { model, tools, ...rest } = changes
        return {
          ...rest,
          ...(model === undefined ? {} : { model: toModels(model) }),
          ...(tools === undefined ? {} : { tools: toTools(tools) })
        }
      }
    )

/** Throws `InvalidConfiguration`. */
const toStructuredOutput = (options: StructuredOutput): CoreStructuredOutput => {
  checkNames(options)
  const { model, ...rest } = options
  return model === undefined ? rest : { ...rest, model: within("structuredOutput", () => single(model)) }
}

/** Throws `InvalidConfiguration`. */
const toUntilIdle = (untilIdle: boolean | UntilIdleOptions): boolean | CoreUntilIdle => {
  if (typeof untilIdle === "boolean") return untilIdle
  const options = optionsOf("untilIdle", untilIdle, ["maxIdleMs", "batch"])
  return said<CoreUntilIdle>({
    maxIdle: maybeTime("untilIdle.maxIdleMs", options.maxIdleMs),
    batch: options.batch
  })
}

/** Throws `InvalidConfiguration`. */
export const toRunOptions = (options: StreamOptions): RunOptions<ReadonlyArray<Tool.Tool>> => {
  const {
    onAbort: _onAbort,
    onChunk: _onChunk,
    onError: _onError,
    onFinish: _onFinish,
    onStepFinish: _onStepFinish,
    inputProcessors,
    outputProcessors,
    prepareStep,
    requireToolApproval,
    stopWhen,
    structuredOutput,
    tools,
    untilIdle,
    ...rest
  } = options
  const conditions: ReadonlyArray<StopWhen> =
    stopWhen === undefined ? [] : typeof stopWhen === "function" ? [stopWhen] : stopWhen
  return {
    ...rest,
    ...(stopWhen === undefined ? {} : { stopWhen: conditions.map(toStopCondition) }),
    ...(prepareStep === undefined ? {} : { prepareStep: toPrepareStep(prepareStep) }),
    ...(structuredOutput === undefined ? {} : { structuredOutput: toStructuredOutput(structuredOutput) }),
    ...(requireToolApproval === undefined
      ? {}
      : {
          requireToolApproval:
            typeof requireToolApproval === "function"
              ? state => fromPromise(() => requireToolApproval(state))
              : requireToolApproval
        }),
    ...(untilIdle === undefined ? {} : { untilIdle: toUntilIdle(untilIdle) }),
    ...toProcessors({ inputProcessors, outputProcessors }),
    tools: toTools(tools)
  }
}

/** Options of a decision about a call; JavaScript may leave them out. Throws `InvalidConfiguration`. */
export const decisionOf = <A extends ResumeStreamOptions>(options: A | undefined): A | Partial<A> => {
  if (options === undefined) return {}
  if (isOptions(options)) return options
  throw wrongValue("options", options, "Give { runId, toolCallId }.")
}
