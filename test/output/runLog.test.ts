/** The log of a run: whoever reads, whenever, however fast, sees the same chunks; and the writer is held by the furthest. */
import { describe, expect, it } from "@effect/vitest"
import type { Chunk } from "eddy"
import { FastCheck } from "effect"
import * as RunLog from "../../src/output/RunLog.js"
import { chunks } from "../support/readers.js"

const withMetadata = (chunk: Chunk.Chunk): Chunk.Chunk =>
  chunk.type === "text-delta" || chunk.type === "reasoning-delta"
    ? { ...chunk, payload: { ...chunk.payload, providerMetadata: { hand: { at: 1 } } } }
    : chunk

const block = FastCheck.constantFrom("a", "b", "c")

/** Chunks that the log keeps in different ways, blocks of one id and of both types interleaved. */
const chunk: FastCheck.Arbitrary<Chunk.Chunk> = FastCheck.oneof(
  {
    weight: 6,
    arbitrary: FastCheck.tuple(block, FastCheck.string()).map(([id, text]) => chunks.text(id, text))
  },
  {
    weight: 3,
    arbitrary: FastCheck.tuple(block, FastCheck.string()).map(([id, text]) => chunks.reasoning(id, text))
  },
  { weight: 1, arbitrary: block.map(chunks.textStart) },
  { weight: 1, arbitrary: block.map(chunks.textEnd) },
  { weight: 1, arbitrary: block.map(chunks.reasoningStart) },
  { weight: 1, arbitrary: block.map(id => withMetadata(chunks.text(id, "signed"))) },
  { weight: 1, arbitrary: block.map(id => withMetadata(chunks.reasoning(id, "signed"))) },
  { weight: 1, arbitrary: block.map(id => ({ ...chunks.text(id, "by a tool"), from: "USER" as const })) },
  { weight: 1, arbitrary: block.map(id => ({ ...chunks.text(id, "of another run"), runId: "run-2" })) },
  { weight: 1, arbitrary: block.map(chunks.toolCall) }
)

type Move =
  | { readonly _tag: "Append"; readonly batch: ReadonlyArray<Chunk.Chunk> }
  | { readonly _tag: "Open" }
  | { readonly _tag: "Read"; readonly reader: number; readonly count: number }
  | { readonly _tag: "Cancel"; readonly reader: number }

const batch = FastCheck.array(chunk, { maxLength: 6, size: "max" })

const move: FastCheck.Arbitrary<Move> = FastCheck.oneof(
  { weight: 4, arbitrary: batch.map((batch): Move => ({ _tag: "Append", batch })) },
  { weight: 2, arbitrary: FastCheck.constant<Move>({ _tag: "Open" }) },
  {
    weight: 4,
    arbitrary: FastCheck.tuple(FastCheck.nat(9), FastCheck.nat(9)).map(
      ([reader, count]): Move => ({ _tag: "Read", reader, count })
    )
  },
  { weight: 1, arbitrary: FastCheck.nat(9).map((reader): Move => ({ _tag: "Cancel", reader })) }
)

const moves = FastCheck.array(move, { maxLength: 60, size: "max" })

interface Reader {
  readonly cursor: RunLog.Cursor
  readonly seen: Array<Chunk.Chunk>
  hasLeft: boolean
}

const cursorOf = (log: RunLog.RunLog): RunLog.Cursor => {
  const cursor = log.open()
  if (cursor instanceof RunLog.Cursor) return cursor
  throw cursor
}

const open = (log: RunLog.RunLog): Reader => ({ cursor: cursorOf(log), seen: [], hasLeft: false })

const read = (reader: Reader, count: number): number =>
  reader.cursor.drain(count, chunk => reader.seen.push(chunk))

const everything = Number.POSITIVE_INFINITY

/** Plays the moves; a reader is meant by its number among those that were opened. */
const play = (moves: ReadonlyArray<Move>) => {
  const log = RunLog.make("run-1")
  const written: Array<Chunk.Chunk> = []
  const readers: Array<Reader> = []
  for (const move of moves) {
    if (move._tag === "Append") {
      written.push(...structuredClone(move.batch))
      log.append(move.batch)
    } else if (move._tag === "Open") {
      readers.push(open(log))
    } else {
      const reader = readers[move.reader % Math.max(1, readers.length)]
      if (reader === undefined || reader.hasLeft) continue
      if (move._tag === "Read") {
        const before = reader.seen.length
        expect(read(reader, move.count)).toBe(Math.min(move.count, written.length - before))
      } else {
        reader.hasLeft = true
        reader.cursor.close()
      }
    }
  }
  return { log, written, readers }
}

describe("readers", () => {
  it.prop("all see the same, from the first chunk on", [moves], ([moves]) => {
    const { log, readers, written } = play(moves)
    log.close()
    for (const reader of [...readers, open(log)]) {
      if (reader.hasLeft) {
        expect(reader.seen).toStrictEqual(written.slice(0, reader.seen.length))
        continue
      }
      expect(reader.cursor.isDone()).toBe(reader.seen.length === written.length)
      read(reader, everything)
      expect(reader.seen).toStrictEqual(written)
      expect(reader.cursor.isDone()).toBe(true)
      expect(reader.cursor.next()).toBeUndefined()
    }
  })

  it("blocks interleaved by id, with empty and with signed deltas, come as they were written", () => {
    const written = [
      chunks.textStart("a"),
      chunks.reasoningStart("a"),
      chunks.text("a", "one"),
      chunks.reasoning("a", "two"),
      chunks.text("b", ""),
      chunks.text("b", "three"),
      withMetadata(chunks.text("a", "four")),
      chunks.text("b", "five"),
      chunks.text("a", "six")
    ]
    const log = RunLog.make("run-1")
    const early = open(log)
    for (const chunk of written) {
      log.append([chunk])
      read(early, 1)
    }
    const late = open(log)
    read(late, everything)
    expect(early.seen).toStrictEqual(written)
    expect(late.seen).toStrictEqual(written)
  })

  it("a delta that one of them changes is unchanged for the others", () => {
    const log = RunLog.make("run-1")
    const first = open(log)
    const second = open(log)
    log.append([chunks.textStart("a"), chunks.text("a", "said")])
    read(first, everything)
    for (const chunk of first.seen) {
      if (chunk.type === "text-delta") Object.assign(chunk.payload, { id: "z", text: "forged" })
    }
    const third = open(log)
    for (const reader of [second, third]) {
      read(reader, everything)
      expect(reader.seen).toStrictEqual([chunks.textStart("a"), chunks.text("a", "said")])
    }
  })

  it("one that waits is called once: by a chunk, or by the end", () => {
    const log = RunLog.make("run-1")
    const cursor = cursorOf(log)
    let calls = 0
    const called = () => {
      calls++
    }
    cursor.wait(called)
    expect(calls).toBe(0)
    log.append([chunks.start, chunks.stepStart()])
    log.append([chunks.text("a", "x")])
    expect(calls).toBe(1)
    cursor.wait(called)
    log.close()
    log.close()
    expect(calls).toBe(2)
  })
})

describe("demand", () => {
  /** Writes batches as long as there is demand; the chunks written in all. */
  const writeWhileWanted = (log: RunLog.RunLog, size: number, limit = 5000): number => {
    let count = 0
    while (log.hasDemand() && count < limit) {
      log.append(Array.from({ length: size }, (_, index) => chunks.text(index % 2 === 0 ? "a" : "b", "x")))
      count += size
    }
    return count
  }

  it.prop(
    "the writer is at most so many chunks and one batch beyond the furthest reader",
    [
      FastCheck.array(FastCheck.nat(40), { minLength: 1, maxLength: 30, size: "max" }),
      FastCheck.integer({ min: 1, max: 70 })
    ],
    ([speeds, size]) => {
      const log = RunLog.make("run-1")
      const readers = [open(log), open(log), open(log)]
      let written = 0
      for (const [turn, count] of speeds.entries()) {
        written += writeWhileWanted(log, size)
        const reader = readers[turn % readers.length]
        if (reader !== undefined) read(reader, count)
        const furthest = Math.max(...readers.map(({ seen }) => seen.length))
        expect(written).toBeLessThanOrEqual(furthest + RunLog.ahead + size)
      }
    }
  )

  it.prop(
    "a reader that reads on never waits in vain",
    [FastCheck.integer({ min: 1, max: 70 })],
    ([size]) => {
      const log = RunLog.make("run-1")
      const reader = open(log)
      for (let round = 0; round < 5; round++) {
        writeWhileWanted(log, size)
        let resumed = 0
        log.onDemand(() => {
          resumed++
        })
        expect(resumed).toBe(0)
        // One by one: it is woken in time, once.
        while (read(reader, 1) > 0);
        expect(resumed).toBe(1)
      }
    }
  )

  it("nobody reads: 64 and no more", () => {
    const log = RunLog.make("run-1")
    let resumed = 0
    expect(RunLog.ahead).toBe(64)
    for (let count = 0; count < 64; count++) {
      expect(log.hasDemand()).toBe(true)
      log.append([chunks.toolCall(`${count}`)])
    }
    expect(log.hasDemand()).toBe(false)
    log.onDemand(() => {
      resumed++
    })
    log.open()
    expect(resumed).toBe(0)
    log.wantAll()
    expect(resumed).toBe(1)
    expect(writeWhileWanted(log, 1)).toBe(5000)
  })

  it("a writer that forgets is not called", () => {
    const log = RunLog.make("run-1")
    writeWhileWanted(log, 1)
    let resumed = 0
    log.onDemand(() => {
      resumed++
    })()
    log.wantAll()
    expect(resumed).toBe(0)
    log.onDemand(() => {
      resumed++
    })
    expect(resumed).toBe(1)
  })

  it("the last reader that leaves lets the run go on; another one does not", () => {
    const log = RunLog.make("run-1")
    const [first, second] = [open(log), open(log)]
    writeWhileWanted(log, 8)
    read(first, 3)
    first.cursor.close()
    expect(writeWhileWanted(log, 8)).toBeLessThanOrEqual(16)
    second.cursor.close()
    expect(writeWhileWanted(log, 8)).toBe(5000)
  })

  it("a slow reader does not hold one that is ahead of it", () => {
    const log = RunLog.make("run-1")
    const fast = open(log)
    const slow = open(log)
    read(slow, 1)
    for (let round = 0; round < 20; round++) {
      writeWhileWanted(log, 8)
      expect(read(fast, everything)).toBeGreaterThan(0)
    }
    read(slow, everything)
    expect(slow.seen).toStrictEqual(fast.seen)
  })
})
