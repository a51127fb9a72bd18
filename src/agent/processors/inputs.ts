/** Processors of what goes into a run, and of what its model is told. */
import * as Effect from "effect/Effect"
import { type Entry, type Input, readInput, settled } from "../../protocol/Conversation.js"
import { settle } from "../../protocol/conversationPairs.js"
import type { ProcessorFailed } from "../../protocol/Errors.js"
import type { Message } from "../../protocol/Message.js"
import { isRecord } from "../../protocol/safeJson.js"
import type { StepPlan } from "../loop/planning.js"
import type { Run } from "../loop/run.js"
import type { State } from "../loop/state.js"
import { haltedBetween, storing } from "../loop/stopping.js"
import type { Hooks, Processor } from "./definition.js"
import { called, gaveWrong } from "./failing.js"
import { hooked } from "./hooking.js"

type Reads = Effect.Effect<ReadonlyArray<Entry>, ProcessorFailed>

const noMessages = "no messages. Give messages, a text, or nothing to change nothing."

/** What a hook gave, as messages: those that it was given are known, and keep their ids; one for one, so do changed ones. */
const readMessages = (
  processor: Processor,
  hook: keyof Hooks,
  given: Input,
  entries: ReadonlyArray<Entry>
): Reads => {
  if (typeof given !== "string" && !isRecord(given) && !Array.isArray(given)) {
    return Effect.fail(gaveWrong(processor, hook, noMessages))
  }
  const known = new Map<unknown, Entry>(entries.map(entry => [entry.message, entry]))
  const items: ReadonlyArray<Input> = Array.isArray(given) ? given : [given]
  return Effect.map(
    Effect.forEach(items, (item, index) => {
      const entry = known.get(item)
      if (entry !== undefined) return Effect.succeed([entry])
      const id = items.length === entries.length ? entries[index]?.id : undefined
      return Effect.mapBoth(readInput(item), {
        onFailure: ({ message }) => gaveWrong(processor, hook, message),
        onSuccess: read =>
          read.map((made, place) => (made.id === undefined && place === 0 ? { ...made, id } : made))
      })
    }),
    read => read.flat()
  )
}

const messagesOf = (entries: ReadonlyArray<Entry>): ReadonlyArray<Message> =>
  entries.map(({ message }) => message)

const between = <R>(run: Run<R>) => ({
  failed: (error: ProcessorFailed): State<R> => storing(run, { _tag: "Failure", error, answer: undefined }),
  halted: () => haltedBetween(run)
})

/** What the run was handed, once the processors of the input have let it pass. */
export const processedInput = <R>(run: Run<R>, then: () => State<R>): State<R> => {
  const { processors, thread } = run
  if (processors === undefined || processors.input.length === 0) return then()
  const first = thread?.entries ?? run.input.map(message => ({ id: undefined, message }))
  if (first.length === 0) return then()
  // Nobody is told of it, and nobody stores it, until it has passed.
  run.input = []
  return hooked(
    run,
    Effect.fnUntraced(function* (contextOf) {
      let entries = first
      for (const bound of processors.input) {
        const { processor } = bound
        const messages = messagesOf(entries)
        const given = yield* called(processor, "processInput", () =>
          processor.processInput(messages, contextOf(bound, messages))
        )
        if (given === undefined || given === null || given === messages) continue
        entries = yield* readMessages(processor, "processInput", given, entries)
        if (thread === undefined) yield* saysSomething(processor, entries)
      }
      return entries
    }),
    {
      ...between(run),
      passed: entries => {
        if (thread === undefined) run.input = settle(messagesOf(entries))
        else thread.entries = entries
        return then()
      },
      tripped: tripwire => ({ _tag: "Ending", end: { _tag: "Tripwire", tripwire, answer: undefined } })
    }
  )
}

/** A run without a thread has nothing else to say. */
const saysSomething = (processor: Processor, entries: ReadonlyArray<Entry>) =>
  Effect.mapError(settled(messagesOf(entries)), ({ message }) =>
    gaveWrong(processor, "processInput", message)
  )

const areKnown = (messages: ReadonlyArray<unknown>, known: ReadonlyArray<Message>): boolean => {
  const all = new Set<unknown>(known)
  return messages.length === known.length && messages.every(message => all.has(message))
}

/** What a step tells its model, once the processors have had their say. */
export const processedPrompt = <R>(
  run: Run<R>,
  plan: StepPlan<R>,
  then: (plan: StepPlan<R>) => State<R>
): State<R> => {
  const { processors } = run
  if (processors === undefined || processors.inputStep.length === 0) return then(plan)
  return hooked(
    run,
    Effect.fnUntraced(function* (contextOf) {
      let messages = plan.messages
      for (const bound of processors.inputStep) {
        const { processor } = bound
        const told = messages
        const given = yield* called(processor, "processInputStep", () =>
          processor.processInputStep(told, contextOf(bound, told))
        )
        if (given === undefined || given === null || given === told) continue
        const entries = told.map(message => ({ id: undefined, message }))
        const read = messagesOf(yield* readMessages(processor, "processInputStep", given, entries))
        // A provider may owe a result: what was well formed stays as it is.
        messages = areKnown(read, told) ? read : settle(read)
        if (messages.length === 0) return yield* gaveWrong(processor, "processInputStep", noMessages)
      }
      return messages
    }),
    {
      ...between(run),
      passed: messages => then({ ...plan, messages }),
      tripped: tripwire => storing(run, { _tag: "Tripwire", tripwire, answer: undefined })
    }
  )
}
