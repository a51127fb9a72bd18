/** What runs have to live through, as plain data: made at random, made smaller, and told in words when something is wrong. */
import type { ModelPart } from "eddy"
import { FastCheck as fc } from "effect"
import { anyPart, loosely, reasons, toolNames, usage } from "../support/randomParts.js"

/** A part of an answer, a turn of the event loop before the next one, or more parts than a reader may be behind. */
export type Entry = ModelPart.ModelPart | "turn" | "flood"

/** What comes before an answer: how the model is asked, or what it comes to instead of an answer. */
type Opening =
  | "at once"
  | "as an effect"
  | "late"
  | "busy"
  | "refused"
  | "rejected with a text"
  | "thrown"
  | "dead"
  | "silent"

/** How an answer ends when it has no finish part, or behind it. */
type Ending = "eof" | "throw" | "hang"

export type SourceKind = "generator" | "iterator" | "stream"

export interface AnswerScript {
  readonly opening: Opening
  readonly source: SourceKind
  readonly entries: ReadonlyArray<Entry>
  readonly ending: Ending
}

/** A model; behind its answers it says "ok" for ever. */
export interface ModelScript {
  readonly answers: ReadonlyArray<AnswerScript>
  readonly maxRetries: number | undefined
}

export type Behaviour =
  | "returns"
  | "fails"
  | "fails with a text"
  | "dies"
  | "throws"
  | "returns nothing"
  | "says that it failed"
  | "writes"
  | "writes much"
  | "writes late"
  | "is strict"
  | "tells the model something else"
  | "ignores interruption"
  | "is slow to stop"
  | "hangs"
  | "stops the run"
  | "is the client's"

export interface ToolScript {
  readonly behaviour: Behaviour
  /** Turns of the event loop that it takes. */
  readonly turns: number
  /** Milliseconds, which are turns too. */
  readonly timeout: number | undefined
}

/** What `prepareStep` does before a step. */
export type StepChange =
  | "nothing"
  | "other messages"
  | "fewer tools"
  | "another tool"
  | "another model"
  | "is slow"
  | "fails"
  | "throws"
  | "says nonsense"
  | "hangs"

export interface AgentScript {
  readonly models: ReadonlyArray<ModelScript>
  /** By name; a tool that is an agent is called with `agent-` before its name. */
  readonly tools: Readonly<Record<string, ToolScript | AgentScript>>
  readonly maxSteps: number
  readonly maxRetries: number
  readonly concurrency: number
  readonly timeouts: Readonly<Partial<Record<"firstContent" | "betweenChunks" | "step" | "run", number>>>
  readonly changes: ReadonlyArray<StepChange>
}

/** `signal` is for both faces; the others each for the one that has them. */
type StopKind = "signal" | "interrupt" | "leave" | "scope" | "cancel" | "shutdown"

export interface Stop {
  readonly how: StopKind
  /** After so many chunks, or turns of the event loop, or when this comes first. Chunk 0: before the run begins. */
  readonly after: { readonly chunks: number } | { readonly turns: number } | { readonly first: Moment }
}

/** A type of chunks, or a step of an agent below that has ended. */
type Moment =
  | "step-start"
  | "text-delta"
  | "tool-call-delta"
  | "tool-call"
  | "tool-output"
  | "a step below"
  | "tool-result"
  | "tool-error"
  | "step-finish"

/** What the store does at its `at`-th operation. */
interface StoreScript {
  readonly trouble: "none" | "slow" | "fails" | "hangs"
  readonly at: number
}

export interface ReaderScript {
  readonly of: "chunks" | "text"
  readonly by: "reader" | "iterator"
  /** Turns before it opens its stream; `end`: when the run has settled. */
  readonly opens: number | "end"
  /** After so many items, or turns of the event loop. */
  readonly leaves: { readonly items: number } | { readonly turns: number } | undefined
  /** Turns between two reads. */
  readonly pace: number
}

/** A value that is asked for, and when. */
export interface Question {
  /** Index in a list of names, whatever its length. */
  readonly value: number
  readonly when: number | "end"
}

export interface Scenario {
  readonly agent: AgentScript
  readonly stop: Stop | undefined
  /** The reader of a cold stream pauses after so many chunks; 0: never. */
  readonly pace: number
  readonly includeRawChunks: boolean
  readonly maxDepth: number
  readonly store: StoreScript | undefined
  readonly readers: ReadonlyArray<ReaderScript>
  readonly questions: ReadonlyArray<Question>
  readonly replay: boolean
}

export const isAgent = (tool: ToolScript | AgentScript): tool is AgentScript => "models" in tool

/** What of all this is wanted. */
export interface Wanted {
  readonly stops?: ReadonlyArray<StopKind>
  /** Nothing that depends on when what happens: no time limits, no hanging, one tool at a time, nobody stops anything. */
  readonly isTimeless?: boolean
  /** Default: as often as not. */
  readonly hasThread?: boolean
  readonly hasReaders?: boolean
}

/** `rate` times in a hundred; shrinks to nothing. */
const sometimes = <A>(rate: number, arbitrary: fc.Arbitrary<A>): fc.Arbitrary<A | undefined> =>
  fc.oneof({ weight: 100 - rate, arbitrary: fc.constant(undefined) }, { weight: rate, arbitrary })

/** Lists, long ones as often as short ones; now and then an empty one, which is also what they shrink to. */
const list = <A>(
  arbitrary: fc.Arbitrary<A>,
  minLength: number,
  maxLength: number
): fc.Arbitrary<ReadonlyArray<A>> =>
  fc.oneof(
    { withCrossShrink: true },
    { weight: 1, arbitrary: fc.constant<ReadonlyArray<A>>([]) },
    { weight: 9, arbitrary: fc.array(arbitrary, { minLength, maxLength, size: "max" }) }
  )

const ids = fc.constantFrom("c1", "c2", "c3")

/** Arguments that every tool and every agent takes. */
const goodInput = '{"prompt":"go"}'

/** What a strict tool refuses, and what no tool can read. */
const inputs = fc.constantFrom(...Array.from({ length: 8 }, () => goodInput), "{}", '{"prompt":')

/** Bits of answers that are well made. */
const block = fc
  .record({
    kind: fc.constantFrom("text", "text", "reasoning"),
    id: fc.constantFrom("0", "1"),
    deltas: fc.array(fc.constantFrom("one ", "two ", "three "), { minLength: 1, maxLength: 3 })
  })
  .map(({ deltas, id, kind }) => [
    loosely({ type: `${kind}-start`, id }),
    ...deltas.map(delta => loosely({ type: `${kind}-delta`, id, delta })),
    loosely({ type: `${kind}-end`, id })
  ])

const call = fc
  .record({
    id: ids,
    toolName: fc.constantFrom(...toolNames),
    input: inputs,
    isStreamed: fc.boolean()
  })
  .map(({ id, input, isStreamed, toolName }) => {
    const whole = loosely({ type: "tool-call", toolCallId: id, toolName, input })
    if (!isStreamed) return [whole]
    return [
      loosely({ type: "tool-input-start", id, toolName }),
      loosely({ type: "tool-input-delta", id, delta: input.slice(0, 5) }),
      loosely({ type: "tool-input-delta", id, delta: input.slice(5) }),
      loosely({ type: "tool-input-end", id }),
      whole
    ]
  })

const bit: fc.Arbitrary<ReadonlyArray<Entry>> = fc.oneof(
  { weight: 7, arbitrary: call },
  { weight: 3, arbitrary: block },
  { weight: 2, arbitrary: fc.constant(["turn" as const]) },
  { weight: 1, arbitrary: anyPart.map(part => [part]) }
)

/** What a flood is made of. */
export const flood: ReadonlyArray<ModelPart.ModelPart> = Array.from({ length: 150 }, (_, index) =>
  loosely({ type: "text-delta", id: "0", delta: `${index} ` })
)

const calm = fc
  .record({
    bits: list(bit, 1, 5),
    first: sometimes(5, fc.constant("flood" as const)),
    reason: fc.oneof(
      { weight: 8, arbitrary: fc.constant("tool-calls" as const) },
      { weight: 1, arbitrary: reasons }
    ),
    usage
  })
  .map(
    ({ bits, first, reason, usage }): ReadonlyArray<Entry> => [
      ...(first === undefined ? [] : [first]),
      ...bits.flat(),
      loosely({ type: "finish", reason, usage })
    ]
  )

const wild = fc
  .record({
    parts: list(anyPart, 2, 12),
    last: sometimes(75, fc.record({ reason: reasons, usage })),
    more: list(anyPart, 1, 2)
  })
  .map(
    ({ last, more, parts }): ReadonlyArray<Entry> =>
      last === undefined ? parts : [...parts, loosely({ type: "finish", ...last }), ...more]
  )

const answerOf = ({ isTimeless = false }: Wanted): fc.Arbitrary<AnswerScript> =>
  fc.record({
    opening: fc.oneof(
      {
        weight: 8,
        arbitrary: fc.constantFrom<Opening>("at once", "at once", "as an effect", "late")
      },
      {
        weight: 1,
        arbitrary: fc.constantFrom<Opening>(
          "busy",
          "busy",
          "busy",
          "refused",
          "rejected with a text",
          "thrown",
          "dead",
          ...(isTimeless ? [] : (["silent", "silent"] as const))
        )
      }
    ),
    source: fc.constantFrom<SourceKind>("iterator", "generator", "stream"),
    entries: fc.oneof({ weight: 4, arbitrary: calm }, { weight: 1, arbitrary: wild }),
    ending: fc.constantFrom<Ending>("eof", "eof", "eof", "throw", isTimeless ? "eof" : "hang")
  })

const peaceful = [
  "returns",
  "fails",
  "fails with a text",
  "dies",
  "throws",
  "returns nothing",
  "says that it failed",
  "writes",
  "writes much",
  "is strict",
  "tells the model something else",
  "is the client's"
] as const satisfies ReadonlyArray<Behaviour>

const unruly = [
  "ignores interruption",
  "is slow to stop",
  "writes late",
  "hangs",
  "stops the run"
] as const satisfies ReadonlyArray<Behaviour>

const tool = ({ isTimeless = false }: Wanted): fc.Arbitrary<ToolScript> =>
  fc.record({
    behaviour: fc.oneof(
      { weight: 2, arbitrary: fc.constant<Behaviour>("returns") },
      { weight: 4, arbitrary: fc.constantFrom<Behaviour>(...peaceful) },
      { weight: isTimeless ? 0 : 2, arbitrary: fc.constantFrom<Behaviour>(...unruly) }
    ),
    turns: fc.constantFrom(0, 0, 1, 3),
    timeout: sometimes(isTimeless ? 0 : 35, fc.integer({ min: 1, max: 3 }))
  })

const change = ({ isTimeless = false }: Wanted): fc.Arbitrary<StepChange> =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constant<StepChange>("nothing") },
    {
      weight: 8,
      arbitrary: fc.constantFrom<StepChange>(
        "other messages",
        "fewer tools",
        "another tool",
        "another model",
        "is slow"
      )
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom<StepChange>(
        "fails",
        "throws",
        "says nonsense",
        isTimeless ? "fails" : "hangs"
      )
    }
  )

/** Shorter than somebody waits for what hangs. */
const limit = sometimes(40, fc.integer({ min: 1, max: 9 }))

const timeouts = fc
  .record({ firstContent: fc.oneof(limit, fc.constant(2)), betweenChunks: limit, step: limit, run: limit })
  .map(limits => {
    const set = Object.entries(limits).filter(([, limit]) => limit !== undefined)
    return Object.fromEntries(set) as AgentScript["timeouts"]
  })

/** `depth`: how deep agents may stand below it. */
const agentOf = (wanted: Wanted, depth: number): fc.Arbitrary<AgentScript> => {
  const isTop = depth === deepest
  const { isTimeless = false } = wanted
  const anyTool: fc.Arbitrary<ToolScript | AgentScript> =
    depth === 0
      ? tool(wanted)
      : fc.oneof({ weight: 2, arbitrary: tool(wanted) }, { weight: 1, arbitrary: agentOf(wanted, depth - 1) })
  return fc.record({
    models: fc.array(
      fc.record({
        answers: list(answerOf(wanted), isTop ? 2 : 1, isTop ? 4 : 2),
        maxRetries: sometimes(30, fc.nat(2))
      }),
      { minLength: 1, maxLength: isTop ? 3 : 2 }
    ),
    tools: fc.record(Object.fromEntries(toolNames.map(name => [name, anyTool]))),
    maxSteps: fc.constantFrom(1, 2, 3, 4, 4, 5),
    maxRetries: fc.nat(2),
    concurrency: isTimeless ? fc.constant(1) : fc.constantFrom(1, 2, 10),
    timeouts: fc.oneof(
      { weight: 4, arbitrary: fc.constant({}) },
      { weight: isTimeless ? 0 : 1, arbitrary: timeouts }
    ),
    changes: fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: list(change(wanted), 1, 4) }
    )
  })
}

/** Agents below the one at the top. */
const deepest = 2

const stopOf = (kinds: ReadonlyArray<StopKind>): fc.Arbitrary<Stop | undefined> =>
  sometimes(
    60,
    fc.record({
      how: fc.constantFrom(...kinds),
      after: fc.oneof(
        fc.record({ turns: fc.nat(40) }),
        fc.record({ chunks: fc.nat(60) }),
        fc.record({
          first: fc.constantFrom<Moment>(
            "step-start",
            "text-delta",
            "tool-call-delta",
            "tool-call",
            "tool-output",
            "a step below",
            "a step below",
            "a step below",
            "tool-result",
            "tool-error",
            "step-finish"
          )
        })
      )
    })
  )

const when = fc.oneof(fc.constantFrom(0, 0, 1, 2, 5, 12), fc.constant("end" as const))

const reader: fc.Arbitrary<ReaderScript> = fc.record({
  of: fc.constantFrom("chunks", "chunks", "text"),
  by: fc.constantFrom("reader", "iterator"),
  opens: when,
  leaves: fc.oneof(
    { weight: 3, arbitrary: fc.constant(undefined) },
    { weight: 2, arbitrary: fc.record({ items: fc.nat(12) }) },
    { weight: 1, arbitrary: fc.record({ turns: fc.nat(8) }) }
  ),
  pace: fc.constantFrom(0, 0, 1, 3)
})

const store: fc.Arbitrary<StoreScript> = fc.record({
  trouble: fc.constantFrom("none", "none", "none", "none", "none", "slow", "slow", "slow", "fails", "hangs"),
  at: fc.integer({ min: 1, max: 6 })
})

/** A scenario that says in words what it is. */
const told = (scenario: Scenario): Scenario =>
  Object.defineProperty(scenario, fc.toStringMethod, { value: () => tell(scenario), enumerable: false })

export const scenarios = (wanted: Wanted = {}): fc.Arbitrary<Scenario> => {
  const { hasReaders = false, hasThread, stops = [] } = wanted
  return fc
    .record({
      agent: agentOf(wanted, deepest),
      stop: stops.length === 0 ? fc.constant(undefined) : stopOf(stops),
      pace: fc.constantFrom(0, 0, 1, 3),
      includeRawChunks: fc.boolean(),
      maxDepth: fc.constantFrom(8, 8, 8, 8, 1, 0),
      store: hasThread === undefined ? sometimes(40, store) : hasThread ? store : fc.constant(undefined),
      readers: hasReaders ? list(reader, 1, 4) : fc.constant([]),
      questions: hasReaders ? list(fc.record({ value: fc.nat(30), when }), 1, 4) : fc.constant([]),
      replay: hasReaders ? fc.constantFrom(true, true, true, false) : fc.constant(true)
    })
    .map(told)
}

const json = (value: unknown): string =>
  JSON.stringify(value, (_, item: unknown) =>
    item instanceof Error ? `Error ${item.message}` : item instanceof Uint8Array ? [...item] : item
  )

const tellEntry = (entry: Entry): string => {
  if (typeof entry === "string") return entry
  const { type, ...rest } = entry
  return `${type} ${json(rest)}`
}

const tellAnswer = ({ ending, entries, opening, source }: AnswerScript): ReadonlyArray<string> => [
  `answer ${opening}, ${source}, then ${ending}`,
  ...entries.map(entry => `  ${tellEntry(entry)}`)
]

const indented = (lines: ReadonlyArray<string>): ReadonlyArray<string> => lines.map(line => `  ${line}`)

const tellAgent = (agent: AgentScript): ReadonlyArray<string> => {
  const { changes, concurrency, maxRetries, maxSteps, models, timeouts, tools } = agent
  return [
    `maxSteps ${maxSteps}, maxRetries ${maxRetries}, concurrency ${concurrency}, timeouts ${json(timeouts)}, prepareStep ${json(changes)}`,
    ...models.flatMap((model, index) => [
      `model ${index}, maxRetries ${model.maxRetries ?? "as the run"}`,
      ...indented(model.answers.flatMap(tellAnswer))
    ]),
    ...Object.entries(tools).flatMap(([name, tool]) =>
      isAgent(tool)
        ? [`tool ${name} is an agent`, ...indented(tellAgent(tool))]
        : [
            `tool ${name} ${tool.behaviour} after ${tool.turns} turns${tool.timeout === undefined ? "" : `, timeout ${tool.timeout}`}`
          ]
    )
  ]
}

/** A scenario in words. */
export const tell = (scenario: Scenario): string => {
  const { agent, includeRawChunks, maxDepth, pace, questions, readers, replay, stop, store } = scenario
  const lines = [
    "",
    `stop ${json(stop) ?? "never"}, store ${json(store) ?? "none"}, pace ${pace}, raw ${includeRawChunks}, maxDepth ${maxDepth}, replay ${replay}`,
    ...readers.map(one => `reader ${json(one)}`),
    ...questions.map(one => `question ${json(one)}`),
    ...tellAgent(agent)
  ]
  return `${lines.join("\n")}\n`
}
