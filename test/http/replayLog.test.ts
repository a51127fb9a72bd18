/** The log of a run that is served: its bounds, and who holds its writer. */
import type { Chunk } from "eddy"
import * as FastCheck from "effect/FastCheck"
import { describe, expect, it } from "vitest"
import { ahead, type Entry, type LogReader, ReplayLog } from "../../src/http/replayLog.js"

const entryOf = (index: number, size = 10): Entry => {
  const chunk: Chunk.Chunk = {
    type: "text-delta",
    runId: "r",
    from: "AGENT",
    payload: { id: "t", text: String(index) }
  }
  return { chunk, json: `${index}`.padEnd(size, " ") }
}

const fill = (log: ReplayLog, count: number, size?: number): void => {
  for (let index = 0; index < count; index++) log.append(entryOf(log.next, size))
}

const numbers = (reader: LogReader, limit = 1000): ReadonlyArray<number> =>
  reader.take(limit).map(({ json }) => Number(json))

const bounds = { maxChunks: 100, maxBytes: 100_000 }

describe("the log of a run that is served", () => {
  it("gives every reader what follows its place", () => {
    const log = new ReplayLog(bounds)
    fill(log, 5)
    expect(numbers(log.read(0))).toEqual([0, 1, 2, 3, 4])
    expect(numbers(log.read(3))).toEqual([3, 4])
    expect(numbers(log.read(5))).toEqual([])
  })

  it("keeps as many chunks and bytes as it may", () => {
    const log = new ReplayLog(bounds)
    fill(log, 250)
    expect([log.first, log.next]).toEqual([150, 250])
    const small = new ReplayLog({ maxChunks: 1000, maxBytes: 1000 })
    fill(small, 250)
    expect([small.first, small.bytes]).toEqual([150, 1000])
    expect(small.read(149).isTooLate).toBe(true)
    expect(small.read(150).isTooLate).toBe(false)
  })

  it("keeps the last chunk, however large", () => {
    const log = new ReplayLog(bounds)
    fill(log, 1, 1_000_000)
    expect(numbers(log.read(0))).toEqual([0])
  })

  it("holds the writer by the reader that is furthest, and lets go of nothing that it has not read", () => {
    const log = new ReplayLog({ maxChunks: 64, maxBytes: 1_000_000 })
    const fast = log.read(0)
    const slow = log.read(0)
    fill(log, ahead)
    expect(log.hasRoom()).toBe(false)
    let isWoken = false
    log.onRoom(() => {
      isWoken = true
    })
    expect(numbers(fast, 10)).toHaveLength(10)
    expect(isWoken).toBe(true)
    fill(log, 10)
    expect(log.hasRoom()).toBe(false)
    expect(numbers(fast)).toHaveLength(64)
    fill(log, 60)
    expect(slow.isTooLate).toBe(true)
    expect(numbers(fast)).toHaveLength(60)
  })

  it("holds the writer by bytes that nobody has read", () => {
    const log = new ReplayLog({ maxChunks: 1000, maxBytes: 4000 })
    const reader = log.read(0)
    fill(log, 1, 999)
    expect(log.hasRoom()).toBe(true)
    fill(log, 1, 999)
    expect(log.hasRoom()).toBe(false)
    reader.take(10)
    expect(log.hasRoom()).toBe(true)
  })

  it("is held by nobody when its reader has left, when it has ended, and when it is released", () => {
    const ends: ReadonlyArray<(log: ReplayLog, reader: LogReader) => void> = [
      (_, reader) => reader.close(),
      log => log.close({ _tag: "Told" }),
      log => log.release()
    ]
    for (const end of ends) {
      const log = new ReplayLog(bounds)
      const reader = log.read(0)
      fill(log, ahead)
      let isWoken = false
      log.onRoom(() => {
        isWoken = true
      })
      expect(isWoken).toBe(false)
      end(log, reader)
      expect(isWoken).toBe(true)
    }
  })

  it("wakes readers that wait, once", () => {
    const log = new ReplayLog(bounds)
    const reader = log.read(0)
    let count = 0
    reader.wait(() => count++)
    fill(log, 1)
    log.wake()
    log.wake()
    expect(count).toBe(1)
    const forget = reader.wait(() => count++)
    forget()
    log.close({ _tag: "Told" })
    expect([count, reader.isDone]).toEqual([1, false])
    reader.take(1)
    expect(reader.isDone).toBe(true)
  })

  it("is a window onto what was written, for any interleaving", () => {
    const step = FastCheck.oneof(
      FastCheck.record({ write: FastCheck.integer({ min: 1, max: 40 }) }),
      FastCheck.record({
        read: FastCheck.integer({ min: 1, max: 40 }),
        by: FastCheck.integer({ min: 0, max: 2 })
      }),
      FastCheck.record({ leave: FastCheck.integer({ min: 0, max: 2 }) })
    )
    FastCheck.assert(
      FastCheck.property(FastCheck.array(step, { maxLength: 60 }), steps => {
        const log = new ReplayLog({ maxChunks: 70, maxBytes: 2000 })
        const readers = [log.read(0), log.read(0), log.read(0)]
        for (const step of steps) {
          if ("write" in step) {
            for (let count = 0; count < step.write && log.hasRoom(); count++) fill(log, 1)
          } else if ("leave" in step) {
            readers[step.leave]?.close()
          } else {
            const reader = readers[step.by]
            if (reader === undefined || reader.isClosed || reader.isTooLate) continue
            const from = reader.index
            const read = numbers(reader, step.read)
            expect(read).toEqual(read.map((_, place) => from + place))
          }
          expect(log.bytes).toBe((log.next - log.first) * 10)
          // What the furthest reader has not read stands beside the bounds.
          expect(log.next - log.first).toBeLessThanOrEqual(70 + ahead)
        }
      })
    )
  })
})
