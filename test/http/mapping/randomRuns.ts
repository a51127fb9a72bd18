/** Chunks of whole responses at random: in order, and as no run should tell them. */
import type { Chunk } from "eddy"
import { FastCheck as fc } from "effect"
import {
  call,
  chunk,
  data,
  finish,
  reasoning,
  result,
  start,
  stepFinish,
  stepStart,
  streamed,
  tasks,
  text,
  written
} from "./kit.js"

type Chunks = ReadonlyArray<Chunk.Chunk>

/** One of several lists at each place: each keeps its own order. */
const interleaved = (lists: ReadonlyArray<Chunks>, picks: ReadonlyArray<number>): Chunks => {
  const left = lists.map(list => [...list])
  const merged: Array<Chunk.Chunk> = []
  for (let index = 0; left.some(list => list.length > 0); index++) {
    const open = left.filter(list => list.length > 0)
    const next = open[(picks[index % picks.length] ?? 0) % open.length]?.shift()
    if (next !== undefined) merged.push(next)
  }
  return merged
}

type Outcome = "result" | "error" | "denied" | "isError" | "background"

interface Plan {
  readonly texts: ReadonlyArray<string>
  readonly hasReasoning: boolean
  readonly hasFile: boolean
  readonly calls: ReadonlyArray<{
    readonly isStreamed: boolean
    readonly outcome: Outcome
    readonly writes: boolean
    readonly delegates: boolean
  }>
  readonly picks: ReadonlyArray<number>
}

const plan: fc.Arbitrary<Plan> = fc.record({
  texts: fc.array(fc.constantFrom("", "Hello there. ", "😀 ok", "a b c d"), { maxLength: 3 }),
  hasReasoning: fc.boolean(),
  hasFile: fc.boolean(),
  calls: fc.array(
    fc.record({
      isStreamed: fc.boolean(),
      outcome: fc.constantFrom<Outcome>("result", "error", "denied", "isError", "background"),
      writes: fc.boolean(),
      delegates: fc.boolean()
    }),
    { maxLength: 3 }
  ),
  picks: fc.array(fc.nat(5), { minLength: 1, maxLength: 5 })
})

const ways = ["stop", "error", "aborted", "tripwire", "approval", "suspended", "mid-text"] as const

type Way = (typeof ways)[number]

interface RunPlan {
  readonly steps: ReadonlyArray<Plan>
  readonly way: Way
}

const runPlan: fc.Arbitrary<RunPlan> = fc.record({
  steps: fc.array(plan, { minLength: 1, maxLength: 3 }),
  way: fc.constantFrom(...ways, "stop", "stop", "stop")
})

/** A run of an agent below, as its caller passes it on. */
const delegated = (toolCallId: string, runId: string): Chunks => {
  const inner = `${runId}-${toolCallId}`
  return [
    start(inner),
    stepStart(inner),
    ...text("below ", "0", inner),
    call("c0", "dig", inner),
    chunk("tool-output", { toolCallId: "c0", output: start(`${inner}-deep`) }, inner),
    data("data-note", { n: 1 }, {}, inner),
    result("c0", 1, inner, "dig"),
    stepFinish(inner, { calls: ["c0"] }),
    finish("stop", inner)
  ].map(chunk => written(toolCallId, chunk, runId))
}

const outcomeOf = (id: string, outcome: Outcome, runId: string): Chunks => {
  switch (outcome) {
    case "result":
      return [result(id, { ok: true }, runId)]
    case "isError":
      return [
        chunk("tool-result", { toolCallId: id, toolName: "work", result: "secret", isError: true }, runId)
      ]
    case "error":
      return [chunk("tool-error", { toolCallId: id, toolName: "work", error: new Error("secret") }, runId)]
    case "denied":
      return [
        chunk(
          "tool-output-denied",
          { toolCallId: id, toolName: "work", approval: { approved: false } },
          runId
        )
      ]
    case "background":
      return [tasks(`task-${runId}-${id}`, id, runId).started, result(id, "acknowledged", runId)]
  }
}

const stepOf = ({ calls, hasFile, hasReasoning, picks, texts }: Plan, at: number, runId: string) => {
  const ids = calls.map((_, index) => `c${at}-${index}`)
  const content = interleaved(
    [
      ...texts.map((said, index) => text(said, `t${at}-${index}`, runId)),
      ...(hasReasoning ? [reasoning("hm", `r${at}`, runId)] : []),
      ...(hasFile
        ? [
            [
              chunk("file", { data: new Uint8Array([1, 2]), mimeType: "image/png" }, runId),
              chunk("source", { id: `s${at}`, sourceType: "url", title: "", url: "https://kit.test" }, runId),
              chunk("source", { id: `d${at}`, sourceType: "document", title: "" }, runId)
            ]
          ]
        : []),
      ...calls.map(({ isStreamed }, index) => {
        const id = ids[index] ?? ""
        return isStreamed ? streamed(id, "work", runId) : [call(id, "work", runId)]
      })
    ],
    picks
  )
  const outcomes = interleaved(
    calls.map(({ delegates, outcome, writes }, index) => {
      const id = ids[index] ?? ""
      return [
        ...(writes ? [written(id, { percent: 50 }, runId), data("data-x", 1, { id: "x" }, runId)] : []),
        ...(delegates ? delegated(id, runId) : []),
        ...outcomeOf(id, outcome, runId)
      ]
    }),
    picks
  )
  // A step lists its calls in the order in which they were made.
  const made = content.flatMap(chunk => (chunk.type === "tool-call" ? [chunk.payload.toolCallId] : []))
  return { content, outcomes, ids: made }
}

const ending = (way: Way, runId: string): Chunks => {
  switch (way) {
    case "stop":
      return [finish("stop", runId)]
    case "error":
    case "mid-text":
      return [chunk("error", { error: new Error("secret") }, runId), finish("error", runId)]
    case "aborted":
      return [chunk("abort", { reason: "stopped" }, runId), finish("aborted", runId)]
    case "tripwire":
      return [chunk("tripwire", { reason: "blocked" }, runId), finish("tripwire", runId)]
    case "approval":
    case "suspended":
      return [
        chunk(
          way === "approval" ? "tool-call-approval" : "tool-call-suspended",
          { toolCallId: "last", toolName: "work", args: {} },
          runId
        ),
        finish("suspended", runId)
      ]
  }
}

const runOf = ({ steps, way }: RunPlan, runId: string): Chunks => {
  const last = steps.length - 1
  return [
    start(runId),
    ...steps.flatMap((step, at) => {
      const { content, ids, outcomes } = stepOf(step, at, runId)
      if (at < last || way === "stop" || way === "tripwire") {
        const isContinued = at < last
        return [stepStart(runId), ...content, ...outcomes, stepFinish(runId, { calls: ids, isContinued })]
      }
      const cut = way === "mid-text" ? text("cut off", "cut", runId) : []
      if (way === "approval" || way === "suspended") {
        // The run is stored before it says what waits: the step is over by then.
        const end = stepFinish(runId, { calls: [...ids, "last"], isContinued: false })
        return [stepStart(runId), ...content, call("last", "work", runId), ...outcomes, end]
      }
      return [stepStart(runId), ...content, ...cut, ...outcomes]
    }),
    ...ending(way, runId)
  ]
}

const taskEvents = (chunks: Chunks): Chunks =>
  chunks.flatMap(started => {
    if (started.type !== "background-task-started") return []
    const { taskId, toolCallId } = started.payload
    const events = tasks(taskId, toolCallId, started.runId)
    const below = delegated(toolCallId, started.runId).flatMap(chunk =>
      chunk.type === "tool-output" ? [events.output(chunk.payload.output)] : []
    )
    switch (taskId.length % 3) {
      case 0:
        return [events.running, events.output("50 %"), events.completed({ found: 1 })]
      case 1:
        return [events.running, events.suspended, events.resumed, ...below, events.failed("secret")]
      default:
        return [events.running, ...below, events.cancelled]
    }
  })

export interface RandomResponse {
  readonly chunks: Chunks
  /** How the last run ended. */
  readonly way: Way
}

/** One run in order. */
export const wellFormedRun: fc.Arbitrary<RandomResponse> = fc
  .record({ run: runPlan })
  .map(({ run }) => ({ chunks: runOf(run, "r1"), way: run.way }))

/** Runs one after the other, and what happens to their tasks in between. */
export const untilIdleResponse: fc.Arbitrary<RandomResponse> = fc
  .record({
    runs: fc.array(runPlan, { minLength: 1, maxLength: 3 }),
    picks: fc.array(fc.nat(5), { minLength: 1 })
  })
  .map(({ picks, runs }) => {
    const told: Array<Chunk.Chunk> = []
    let events: Chunks = []
    for (const [index, plan] of runs.entries()) {
      const isLast = index === runs.length - 1
      // A turn that fails is the last one.
      const run = runOf(isLast ? plan : { ...plan, way: "stop" }, `r${index + 1}`)
      told.push(...interleaved([run, events], picks))
      events = taskEvents(run)
    }
    told.push(...events)
    return { chunks: told, way: runs.at(-1)?.way ?? "stop" }
  })

/** The same with chunks left out, told twice and in the wrong order. */
export const brokenResponse: fc.Arbitrary<Chunks> = fc
  .record({
    response: untilIdleResponse,
    faults: fc.array(
      fc.record({ kind: fc.constantFrom("drop", "twice", "move"), at: fc.nat(200), to: fc.nat(200) }),
      { minLength: 1, maxLength: 12 }
    )
  })
  .map(({ faults, response }) => {
    const chunks = [...response.chunks]
    for (const { at, kind, to } of faults) {
      const place = at % chunks.length
      const [one] = chunks.splice(place, 1)
      if (one === undefined || chunks.length === 0) break
      if (kind === "twice") chunks.splice(place, 0, one, one)
      if (kind === "move") chunks.splice(to % chunks.length, 0, one)
    }
    return chunks
  })

/** All text of a response, as it came. */
export const allText = (chunks: Chunks): string =>
  chunks.flatMap(chunk => (chunk.type === "text-delta" ? [chunk.payload.text] : [])).join("")

/** The same, block by block: what two blocks say at the same time stands in two parts. */
export const textByBlock = (chunks: Chunks): string => {
  const blocks = new Map<string, string>()
  for (const chunk of chunks) {
    if (chunk.type !== "text-start" && chunk.type !== "text-delta") continue
    const key = `${chunk.runId} ${chunk.payload.id}`
    blocks.set(key, (blocks.get(key) ?? "") + (chunk.type === "text-delta" ? chunk.payload.text : ""))
  }
  return [...blocks.values()].join("")
}
