/** The invariants, as functions that say what is wrong. Each returns nothing when all is well. */
import { isDeepStrictEqual } from "node:util"
import { type Chunk, Errors, type Message, type Usage } from "eddy"
import { Cause, Exit, Option } from "effect"
import { conversationFaults } from "../support/conversationFaults.js"
import { violationsOf } from "../support/grammar.js"
import { type RunOf, runsIn } from "./runsIn.js"
import type { Heard, Streamed, Told } from "./told.js"
import { topRun, type World } from "./world.js"

type Chunks = ReadonlyArray<Chunk.Chunk>

export type Faults = ReadonlyArray<string>

const last = (chunks: Chunks): Chunk.Of<"finish"> | undefined => {
  const chunk = chunks.at(-1)
  return chunk?.type === "finish" ? chunk : undefined
}

/** Invariant 1: `finish` is the last chunk, exactly once. */
export const finishFaults = ({ chunks, isLeft }: Told): Faults => {
  const places = chunks.flatMap(({ type }, index) => (type === "finish" ? [index] : []))
  if (isLeft)
    return places.length === 0 ? [] : [`a finish at ${places}, and its reader had left before the end`]
  return places.length === 1 && places[0] === chunks.length - 1
    ? []
    : [`${chunks.length} chunks, finish at [${places}]`]
}

/** Invariant 1, for a cold stream: it fails with the error that it has told, and else just ends. */
export const exitFaults = ({ chunks, exit, isLeft }: Streamed): Faults => {
  if (isLeft || Exit.isInterrupted(exit)) return []
  const errors = chunks.flatMap(chunk => (chunk.type === "error" ? [chunk.payload.error] : []))
  const failure = Exit.isFailure(exit) ? [Cause.squash(exit.cause)] : []
  return isDeepStrictEqual(errors, failure) ? [] : [`told ${errors}, and failed with ${failure}`]
}

/** Whether a run that was left at any point would have been in order. */
const orderOf = (chunks: Chunks, isWhole: boolean): Faults =>
  violationsOf(chunks).filter(fault => isWhole || !fault.endsWith("] no finish"))

/** Invariant 3: starts and ends, deltas and ids; of every run that the stream holds. */
export const orderFaults = ({ chunks, isLeft }: Told): Faults =>
  runsIn(chunks).flatMap(run => {
    const isWhole = run.call === undefined ? !isLeft : last(run.chunks) !== undefined
    return orderOf(run.chunks, isWhole).map(fault => `${run.runId} ${fault}`)
  })

const outcomesOf = (run: RunOf, toolCallId: string) =>
  run.chunks.flatMap(chunk =>
    (chunk.type === "tool-result" || chunk.type === "tool-error" || chunk.type === "tool-output-denied") &&
    chunk.payload.toolCallId === toolCallId
      ? [chunk]
      : []
  )

/** What the tools of the scenarios return when they return something. */
const ownerOf = (result: unknown): unknown =>
  typeof result === "object" && result !== null && "of" in result ? result.of : undefined

/** Invariant 4: one `tool-call`, at most one execution, exactly one outcome; of every run that the stream holds. */
export const callFaults = ({ chunks, isLeft, world }: Told): Faults => {
  const { executions } = world
  const runs = runsIn(chunks)
  const faults: Array<string> = []
  for (const run of runs) {
    const finish = last(run.chunks)
    const calls = run.chunks.flatMap(chunk => (chunk.type === "tool-call" ? [chunk.payload] : []))
    const isLeftToClient = finish?.payload.stepResult.stoppedBy === "client-tool"
    for (const { providerExecuted, toolCallId } of calls) {
      const fault = (what: string) => faults.push(`${run.runId} ${toolCallId}: ${what}`)
      const told = calls.filter(call => call.toolCallId === toolCallId).length
      if (told !== 1) fault(`${told} tool-calls`)
      const executed = executions.filter(
        execution => execution.runId === run.runId && execution.toolCallId === toolCallId
      ).length
      if (executed > 1) fault(`${executed} executions`)
      const outcomes = outcomesOf(run, toolCallId)
      if (outcomes.length > 1) fault(`${outcomes.length} outcomes`)
      const isProviders =
        providerExecuted === true || outcomes.some(({ payload }) => "providerExecuted" in payload)
      if (isProviders && executed > 0) fault("executed by the provider, and here")
      const mayOwe = isProviders || (isLeftToClient && executed === 0) || finish === undefined
      if (outcomes.length === 0 && !mayOwe) fault("no outcome")
      for (const outcome of outcomes) {
        if (outcome.type !== "tool-result" || isProviders) continue
        const owner = ownerOf(outcome.payload.result)
        if (owner !== undefined && owner !== toolCallId) fault(`the result of ${owner}`)
        const isAgents = runs.some(({ call }) => call?.runId === run.runId && call.toolCallId === toolCallId)
        if (executed === 0 && !isAgents) fault("a result of nothing")
      }
    }
    for (const { runId, toolCallId } of executions) {
      if (runId !== run.runId || (isLeft && finish === undefined)) continue
      if (!calls.some(call => call.toolCallId === toolCallId)) {
        faults.push(`${runId} ${toolCallId}: executed, and never told`)
      }
    }
  }
  return faults
}

/** Sums, written down once more: field by field, and what nobody knows stays unknown. */
const sum = (usages: ReadonlyArray<Usage.Usage>): Usage.Usage => {
  const total: Record<string, number> = {}
  for (const usage of usages) {
    for (const [field, tokens] of Object.entries(usage)) total[field] = (total[field] ?? 0) + tokens
  }
  return total
}

const lastFigures = (usages: ReadonlyArray<Usage.Usage>): Usage.Usage => Object.assign({}, ...usages)

/** What the answer of this call of a model has told of its usage. */
const toldBy = ({ asked }: World, headers: Readonly<Record<string, string>> | undefined): Usage.Usage => {
  const { handed } = asked[Number(headers?.["asked"])] ?? { handed: [] }
  return lastFigures(handed.flatMap(part => (part.type === "finish" ? [part.usage] : [])))
}

const oddFigures = (usage: Usage.Usage): Faults =>
  Object.entries(usage).flatMap(([field, tokens]) =>
    Number.isSafeInteger(tokens) && tokens >= 0 ? [] : [`${field} is ${tokens}`]
  )

const same = (what: string, found: unknown, wanted: unknown): Faults =>
  isDeepStrictEqual(found, wanted)
    ? []
    : [`${what} is ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`]

/** What runs below have used, as far as they have told: of those that were cut off, what their steps have said. */
const usedBelow = (runs: ReadonlyArray<RunOf>, run: RunOf, from: number, to: number): Usage.Usage => {
  const below = run.chunks.slice(from, to).flatMap(chunk => {
    if (chunk.type !== "tool-output") return []
    const { output } = chunk.payload
    return runs.filter(({ chunks }) => chunks.includes(output as Chunk.Chunk))
  })
  return sum(
    [...new Set(below)].map(({ chunks }) => {
      const finish = last(chunks)
      return finish === undefined
        ? sum(chunks.flatMap(chunk => (chunk.type === "step-finish" ? [chunk.payload.output.usage] : [])))
        : finish.payload.output.usage
    })
  )
}

/** Whether a run ended because somebody stopped it, or a time limit did. */
const isStopped = (chunks: Chunks): boolean =>
  chunks.some(chunk => {
    if (chunk.type === "abort") return true
    if (chunk.type !== "error") return false
    const { error } = chunk.payload
    return (
      error instanceof Errors.RunTimedOut ||
      (error instanceof Errors.ModelError && error.reason === "timeout")
    )
  })

/** Invariant 8: usage of steps, of runs, of the runs below. */
export const usageFaults = ({ chunks, world }: Told): Faults => {
  const runs = runsIn(chunks)
  return runs.flatMap(run => {
    const faults: Array<string> = []
    const steps: Array<Usage.Usage> = []
    let from = 0
    for (const [index, chunk] of run.chunks.entries()) {
      if (chunk.type === "step-start") from = index
      if (chunk.type === "step-finish") {
        const { output, response, totalUsage = {} } = chunk.payload
        const used = sum([toldBy(world, response?.headers), usedBelow(runs, run, from, index)])
        faults.push(...same(`usage of step ${steps.length}`, output.usage, used), ...oddFigures(output.usage))
        steps.push(output.usage)
        faults.push(...same(`totalUsage of step ${steps.length - 1}`, totalUsage, sum(steps)))
        from = index
      }
      if (chunk.type === "finish") {
        const { output, response } = chunk.payload
        const isOpen = run.chunks.slice(from).some(({ type }) => type === "step-start")
        const open = isOpen ? toldBy(world, response.headers) : {}
        // Of an answer that was stopped it is a matter of luck whether its last part was heard.
        const isUnheard = isOpen && isStopped(run.chunks) && isDeepStrictEqual(output.usage, sum(steps))
        if (!isUnheard) faults.push(...same("usage of the run", output.usage, sum([...steps, open])))
        faults.push(...oddFigures(output.usage))
      }
    }
    return faults.map(fault => `${run.runId} ${fault}`)
  })
}

/** What a step has said that goes into prompts: texts and calls, in order. */
type Said =
  | { readonly text: string; readonly id: string; readonly isPlaced: boolean }
  | {
      readonly call: string
      readonly outcome: "success" | "error" | undefined
      readonly isProviders: boolean
    }

interface SaidInStep {
  readonly isFinished: boolean
  readonly said: ReadonlyArray<Said>
}

const hasMetadata = (payload: { readonly providerMetadata?: unknown }): boolean =>
  payload.providerMetadata !== undefined

/** What a run has told that is to be remembered, step by step. */
const saidIn = (chunks: Chunks): ReadonlyArray<SaidInStep> => {
  const steps: Array<{ isFinished: boolean; said: Array<Said> }> = []
  const outcome = (toolCallId: string): "success" | "error" | undefined => {
    for (const chunk of chunks) {
      if (chunk.type === "tool-error" && chunk.payload.toolCallId === toolCallId) return "error"
      if (chunk.type === "tool-result" && chunk.payload.toolCallId === toolCallId) {
        return chunk.payload.isError === true ? "error" : "success"
      }
    }
    return undefined
  }
  const isProviders = (toolCallId: string): boolean =>
    chunks.some(
      chunk =>
        (chunk.type === "tool-result" || chunk.type === "tool-call") &&
        chunk.payload.toolCallId === toolCallId &&
        chunk.payload.providerExecuted === true
    )
  for (const chunk of chunks) {
    const said = steps.at(-1)?.said ?? []
    // A block has its place where it says something first.
    const say = (id: string, text: string): void => {
      const index = said.findIndex(one => "text" in one && one.id === id)
      const known = said[index]
      if (known === undefined || !("text" in known)) said.push({ text, id, isPlaced: true })
      else said[index] = { ...known, text: known.text + text }
    }
    switch (chunk.type) {
      case "step-start":
        steps.push({ isFinished: false, said: [] })
        break
      case "text-start":
      case "text-end":
        if (hasMetadata(chunk.payload)) say(chunk.payload.id, "")
        break
      case "text-delta":
        say(chunk.payload.id, chunk.payload.text)
        break
      case "tool-call": {
        const { toolCallId } = chunk.payload
        said.push({ call: toolCallId, outcome: outcome(toolCallId), isProviders: isProviders(toolCallId) })
        break
      }
      case "step-finish": {
        const step = steps.at(-1)
        if (step !== undefined) step.isFinished = true
        break
      }
    }
  }
  return steps
}

type Remembered =
  | { readonly text: string }
  | { readonly call: string; readonly outcome: "success" | "error" | undefined }

/** What a conversation remembers of what was said: texts and calls with their outcomes, in order. */
const rememberedIn = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<Remembered> => {
  const results = new Map(
    messages.flatMap(message =>
      message.role === "tool" || message.role === "assistant"
        ? message.content.flatMap(part =>
            part.type === "tool-result" ? [[part.toolCallId, part.output] as const] : []
          )
        : []
    )
  )
  return messages.flatMap(message =>
    message.role !== "assistant"
      ? []
      : message.content.flatMap((part): ReadonlyArray<Remembered> => {
          if (part.type === "text" && part.text !== "") return [{ text: part.text }]
          if (part.type !== "tool-call") return []
          const type = results.get(part.toolCallId)?.type
          const outcome = type === undefined ? undefined : /^error|denied/.test(type) ? "error" : "success"
          return [{ call: part.toolCallId, outcome }]
        })
  )
}

/** Calls that the provider has executed. */
const providersCalls = (messages: ReadonlyArray<Message.Message>): ReadonlySet<string> =>
  new Set(
    messages.flatMap(message =>
      message.role !== "assistant"
        ? []
        : message.content.flatMap(part =>
            part.type === "tool-call" && part.providerExecuted === true ? [part.toolCallId] : []
          )
    )
  )

/** The calls that a conversation remembers. */
export const callsIn = (messages: ReadonlyArray<Message.Message>) =>
  rememberedIn(messages).flatMap(one => ("call" in one ? [one] : []))

/** What is to be remembered of a run that told its end. An answer that failed is not. */
const toRemember = (chunks: Chunks): ReadonlyArray<Remembered> => {
  const reason = last(chunks)?.payload.stepResult.reason
  return saidIn(chunks)
    .filter(({ isFinished }) => isFinished || reason !== "error")
    .flatMap(({ said }) => said)
    .flatMap((one): ReadonlyArray<Remembered> => {
      if ("text" in one) return one.text === "" ? [] : [{ text: one.text }]
      return one.outcome === undefined ? [] : [{ call: one.call, outcome: one.outcome }]
    })
}

const answeredOnly = (remembered: ReadonlyArray<Remembered>): ReadonlyArray<Remembered> =>
  remembered.filter(one => "text" in one || one.outcome !== undefined)

/** Whether all that was read is remembered, each text as it was read or longer; of the last answer maybe nothing. */
const isContinued = (steps: ReadonlyArray<SaidInStep>, remembered: ReadonlyArray<Remembered>): boolean => {
  const isFound = (said: ReadonlyArray<Said>): boolean => {
    let place = 0
    for (const one of said) {
      // What came of a call that nobody has read of is anybody's guess.
      if ("call" in one && one.outcome === undefined) continue
      if ("text" in one && one.text === "") continue
      const isAnywhere = "text" in one && isHeld(one)
      const found = remembered.findIndex(
        (other, index) =>
          (isAnywhere || index >= place) &&
          ("text" in one
            ? "text" in other && other.text.startsWith(one.text)
            : "call" in other && other.call === one.call && other.outcome === one.outcome)
      )
      if (found < 0) return false
      if (!isAnywhere) place = found + 1
    }
    return true
  }
  const whole = steps.flatMap(({ said }) => said)
  const finished = steps.filter(step => step.isFinished).flatMap(({ said }) => said)
  return isFound(whole) || isFound(finished)
}

/** Whether a text has its place since half of a character came, of which nothing can be told yet. */
const isHeld = (one: Remembered): boolean => "text" in one && /^(😀|\uFFFD)/u.test(one.text)

const held = (all: ReadonlyArray<Remembered>): ReadonlyArray<string> =>
  all.flatMap(one => ("text" in one && isHeld(one) ? [one.text] : [])).sort()

const sameMemory = (
  what: string,
  found: ReadonlyArray<Remembered>,
  wanted: ReadonlyArray<Remembered>
): Faults => [
  ...same(
    what,
    found.filter(one => !isHeld(one)),
    wanted.filter(one => !isHeld(one))
  ),
  ...same(what, held(found), held(wanted))
]

/** Invariant 5: what the model is told next on the thread, after a run that ended in whatever way. */
export const promptFaults = (
  { chunks, isLeft, world }: Told,
  prompt: ReadonlyArray<Message.Message>
): Faults => {
  const faults = [...conversationFaults(prompt, () => false)]
  const roles = prompt.map(({ role }) => role)
  if (roles[0] !== "user" || roles.at(-1) !== "user") faults.push(`from ${roles[0]} to ${roles.at(-1)}`)
  if (roles.includes("system")) faults.push("a system message is remembered")
  const remembered = rememberedIn(prompt)
  const providers = providersCalls(prompt)
  for (const one of remembered) {
    if (!("call" in one) || one.outcome !== "success") continue
    const told = saidIn(chunks)
      .flatMap(({ said }) => said)
      .find(said => "call" in said && said.call === one.call)
    const isDone = world.executions.some(
      ({ isOver, runId, toolCallId }) => isOver && runId === topRun && toolCallId === one.call
    )
    const isBelow = world.asked.some(({ agent }) => agent.startsWith("top."))
    const isTold = told !== undefined && "outcome" in told && told.outcome === "success"
    if (!isTold && !(isLeft && (isDone || isBelow || providers.has(one.call))))
      faults.push(`${one.call} looks successful`)
  }
  const { trouble } = world.scenario.store ?? { trouble: "none" }
  if (trouble === "fails" || trouble === "hangs") return faults
  if (isLeft) {
    const isFound = isContinued(saidIn(chunks), remembered)
    return isFound ? faults : [...faults, `remembers ${JSON.stringify(remembered)}`]
  }
  return [...faults, ...sameMemory("what is remembered", answeredOnly(remembered), toRemember(chunks))]
}

/** Invariant 5, for the messages of `finish`. */
export const finishMessagesFaults = ({ chunks }: Told): Faults => {
  const finish = last(chunks)
  if (finish === undefined) return []
  const { messages, stepResult } = finish.payload
  const isWhole = stepResult.reason !== "error" && stepResult.reason !== "aborted"
  const mayOwe = (call: Message.ToolCallPart): boolean =>
    isWhole && (call.providerExecuted === true || stepResult.stoppedBy === "client-tool")
  return [
    ...conversationFaults(messages.all, mayOwe),
    ...sameMemory("what finish remembers", answeredOnly(rememberedIn(messages.all)), toRemember(chunks))
  ]
}

/** Invariant 2: every reader sees the same from the first chunk on. */
export const readerFaults = ({ chunks, full, reads }: Heard): Faults => {
  const texts = chunks.flatMap(chunk => (chunk.type === "text-delta" ? [chunk.payload.text] : []))
  return reads.flatMap(({ failure, isWhole, items, script }, index) => {
    const all: ReadonlyArray<unknown> = script.of === "text" ? texts : chunks
    // Who left saw the beginning, everybody else everything.
    const seen = isWhole && failure === undefined ? all : all.slice(0, items.length)
    if (isDeepStrictEqual(items, seen)) return []
    const place = items.findIndex((item, at) => !isDeepStrictEqual(item, all[at]))
    return [
      `reader ${index} of a run that ${full.status}: ${items.length} of ${all.length}, other from ${place} on`
    ]
  })
}

const isEffectFailure = (failure: unknown): failure is Cause.Cause<unknown> => Cause.isCause(failure)

/** What a reader's stream may have failed with. */
const readerMayFail = ({ full, world }: Heard, failure: unknown): boolean => {
  // Streams of Effect fail with the error that they told; web streams just close.
  if (isEffectFailure(failure)) return full.status === "failed" && Cause.squash(failure) === full.error
  return (
    !world.scenario.replay && failure instanceof Errors.InvalidConfiguration && failure.field === "replay"
  )
}

/** Values that are there however the run ended. */
const unfailing: ReadonlyArray<string> = ["finishReason", "fullOutput", "getFullOutput", "turns"]

/** Invariant 1, of what is asked of a hot run: every stream closes, every value settles from the run's one cause. */
export const settlementFaults = (heard: Heard): Faults => {
  const { answered, chunks, full, reads } = heard
  const finish = last(chunks)
  const isFailed = full.status === "failed" || full.status === "aborted"
  const told = chunks.map(chunk => (chunk.type === "text-delta" ? chunk.payload.text : "")).join("")
  return [
    ...same("finishReason", full.finishReason, finish?.payload.stepResult.reason),
    ...same("text", full.text, told),
    ...same("usage", full.usage, finish?.payload.output.usage),
    ...reads.flatMap(({ failure }, index) =>
      failure === undefined || readerMayFail(heard, failure) ? [] : [`reader ${index} fails with ${failure}`]
    ),
    ...answered.flatMap(({ name, outcome }) => {
      if ("error" in outcome) {
        const mayFail = isFailed && !unfailing.includes(name)
        return mayFail && outcome.error === full.error
          ? []
          : [`${name} of a run that ${full.status} fails with ${outcome.error}`]
      }
      if (isFailed && !unfailing.includes(name)) return [`${name} of a run that ${full.status} has a value`]
      const wanted = Object.entries(full).find(([key]) => key === name)
      return wanted === undefined || Option.isOption(outcome.value)
        ? []
        : same(name, outcome.value, wanted[1])
    })
  ]
}
