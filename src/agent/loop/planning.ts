/** What a step asks its model: the run's own settings, or what `prepareStep` makes of them. */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { ModelSettings, ToolChoice, ToolDefinition } from "../../model/ModelPort.js"
import { fromInput } from "../../protocol/Conversation.js"
import { InvalidConfiguration } from "../../protocol/Errors.js"
import { callUser } from "../../protocol/foreignValue.js"
import type { Message } from "../../protocol/Message.js"
import { checkOptions } from "../../protocol/options.js"
import { type ProviderMetadata, wellFormed } from "../../protocol/safeJson.js"
import type { Tool } from "../../tool/Tool.js"
import {
  activeTools,
  checked,
  checkToolChoice,
  definitionsOf,
  modelsOf,
  toolsByName
} from "../checkOptions.js"
import { checkModelSettings, runPlaces, stepChangeKinds } from "../optionKinds.js"
import type { PrepareStep, StepChanges } from "../RunOptions.js"
import type { ModelChoice } from "./retrying.js"
import { type Note, type Run, stepNumberOf } from "./run.js"

/** What one step asks. */
export interface StepPlan<R> {
  readonly models: ReadonlyArray<ModelChoice>
  /** What the model is told, instructions first. A snapshot. */
  readonly messages: ReadonlyArray<Message>
  readonly tools: ReadonlyMap<string, Tool<string, R>>
  readonly definitions: ReadonlyArray<ToolDefinition>
  readonly toolChoice: ToolChoice | undefined
  readonly modelSettings: ModelSettings | undefined
  readonly providerOptions: ProviderMetadata | undefined
}

/** A system message of the instructions. Throws `InvalidConfiguration` when they are no text. */
export const instructionsOf = (text: string | undefined): ReadonlyArray<Message> => {
  if (text === undefined || text === "") return []
  if (typeof text === "string") return [{ role: "system", content: wellFormed(text) }]
  throw new InvalidConfiguration({
    field: "instructions",
    message: "`instructions` are no text. Give a string."
  })
}

/** Instructions with what the tools of a step add to them. */
const withPrompt = (first: ReadonlyArray<Message>, prompt: string | undefined): ReadonlyArray<Message> => {
  if (prompt === undefined) return first
  const [system, ...rest] = first
  return system?.role === "system"
    ? [{ ...system, content: `${system.content}\n\n${prompt}` }, ...rest]
    : [{ role: "system", content: prompt }, ...first]
}

/** What the model is told first: the instructions, and what its tools add to them. */
const firstOf = <R>(
  run: Run<R>,
  instructions: ReadonlyArray<Message>,
  tools: ReadonlyMap<string, Tool<string, R>>,
  definitions: ReadonlyArray<ToolDefinition>
): ReadonlyArray<Message> => {
  const structure = run.structuring?.structure
  const said = withPrompt(instructions, structure?.isApart === true ? undefined : structure?.prompt)
  if (run.tasks === undefined) return said
  return withPrompt(said, run.tasks.offer(tools, definitions).prompt)
}

/** What nobody has said, in the order of its places. */
export const notesOf = <R>({ feedback, note }: Run<R>): ReadonlyArray<Note> => {
  if (note === undefined) return feedback
  return [...feedback, note].sort((left, right) => left.after - right.after)
}

/** A conversation, with what has happened since the model answered where it happened: it is no word of anybody's. */
const withNotes = <R>(run: Run<R>, told: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const notes = notesOf(run)
  if (notes.length === 0) return told
  const before = told.length - run.added.length
  const places = notes.map(({ after }) => Math.max(0, before + after))
  return [
    ...notes.flatMap(({ message }, index) => [...told.slice(places[index - 1] ?? 0, places[index]), message]),
    ...told.slice(places.at(-1))
  ]
}

/** The tools of a step, as its model is told of them. */
const offered = <R>(
  run: Run<R>,
  tools: ReadonlyMap<string, Tool<string, R>>,
  definitions: ReadonlyArray<ToolDefinition>
): ReadonlyArray<ToolDefinition> => run.tasks?.offer(tools, definitions).definitions ?? definitions

/** What a step asks that nobody has changed. */
export const basePlan = <R>(run: Run<R>): StepPlan<R> => {
  const { modelSettings, providerOptions, toolChoice } = run.settings
  return {
    models: run.models,
    messages: firstOf(run, run.instructions, run.tools, run.definitions).concat(
      withNotes(run, run.input.concat(run.added))
    ),
    tools: run.tools,
    definitions: offered(run, run.tools, run.definitions),
    toolChoice,
    modelSettings,
    providerOptions
  }
}

/** The messages that `prepareStep` was told, as they are: they are in order, and a call may be owed its result. */
const isOurs = (
  messages: NonNullable<StepChanges["messages"]>,
  told: ReadonlyArray<Message>
): messages is ReadonlyArray<Message> => {
  const known = new Set<unknown>(told)
  return Array.isArray(messages) && messages.length === told.length && messages.every(item => known.has(item))
}

const messagesOf = Effect.fnUntraced(function* <R>(
  run: Run<R>,
  { instructions, messages }: StepChanges,
  { definitions, tools }: Pick<StepPlan<R>, "tools" | "definitions">
) {
  const said = instructions === undefined ? run.instructions : instructionsOf(instructions)
  const first = firstOf(run, said, tools, definitions)
  const told = [...run.input, ...run.added]
  const isSame = messages === undefined || isOurs(messages, told)
  if (isSame) return [...first, ...withNotes(run, messages ?? told)]
  const others: ReadonlyArray<Message> = yield* fromInput(messages)
  return [...first, ...others, ...notesOf(run).map(({ message }) => message)]
})

const toolsOf = <R>(
  run: Run<R>,
  { activeTools: names, tools }: StepChanges
): Pick<StepPlan<R>, "tools" | "definitions"> => {
  if (names === undefined && tools === undefined) return { tools: run.tools, definitions: run.definitions }
  const added: ReadonlyMap<string, Tool<string, R>> = toolsByName(tools ?? [])
  const chosen =
    names === undefined
      ? new Map([...run.tools, ...added])
      : activeTools(new Map([...run.allTools, ...added]), names)
  return { tools: chosen, definitions: definitionsOf(chosen) }
}

/** Refuses what can have no changes in it; of a promise nobody here would know the value. Throws `InvalidConfiguration`. */
export const checkChanges = (changes: unknown): void => {
  if (Predicate.isRecord(changes) && !Predicate.isPromiseLike(changes)) return
  throw new InvalidConfiguration({
    field: "prepareStep",
    message: "`prepareStep` gave no object. Give the changes, for example { activeTools: [] }, or nothing."
  })
}

/** What a step asks after `prepareStep` has had its say. Fails with whatever that fails with. */
export const changedPlan = Effect.fnUntraced(function* <R>(run: Run<R>, prepareStep: PrepareStep) {
  const given = yield* callUser(() =>
    prepareStep({
      stepNumber: stepNumberOf(run),
      steps: [...run.fold.finishedSteps],
      messages: [...run.input, ...run.added],
      model: run.models[run.modelIndex]?.model ?? run.model,
      requestContext: run.requestContext
    })
  )
  const changes = given ?? {}
  checkChanges(changes)
  const base = basePlan(run)
  const { chosen, plan } = yield* checked(() => {
    checkOptions("`prepareStep`", changes, { kinds: stepChangeKinds, places: runPlaces })
    checkModelSettings(changes.modelSettings)
    const { model, modelSettings, providerOptions, toolChoice } = changes
    const chosen = toolsOf(run, changes)
    const choice = toolChoice ?? base.toolChoice
    checkToolChoice(choice, chosen.tools)
    const plan = {
      tools: chosen.tools,
      definitions: offered(run, chosen.tools, chosen.definitions),
      models: model === undefined ? base.models : modelsOf(model, run.settings.maxRetries),
      toolChoice: choice,
      modelSettings: modelSettings ?? base.modelSettings,
      providerOptions: providerOptions ?? base.providerOptions
    }
    return { chosen, plan }
  })
  const made: StepPlan<R> = { ...plan, messages: yield* messagesOf(run, changes, chosen) }
  return made
})
