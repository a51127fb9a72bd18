/**
 * Processes that are killed while they decide about calls, and the ones that come after them: each executes a call at most once,
 * none again whose outcome was told, and nothing waits for ever.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { LibSqlStore, RunStore, ThreadStore } from "eddy"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { endLeases } from "./leases.js"
import { build } from "./library.js"

const worker = fileURLToPath(new URL("approvalWorker.mjs", import.meta.url))

let library: Awaited<ReturnType<typeof build>>
let folder: string

beforeAll(async () => {
  library = await build()
  folder = await mkdtemp(join(tmpdir(), "eddy-approvals-"))
}, 60_000)

afterAll(async () => {
  await library.remove()
  await rm(folder, { recursive: true, force: true })
})

const runs = 7
const callsOfRun = ["a", "b", "c"]

interface Line {
  readonly word: string
  readonly id: string
  readonly by: string
}

describe("processes that are killed while they decide", () => {
  it("execute a call at most once each, and leave nothing that waits for ever", async () => {
    const url = `file:${join(folder, "runs.db")}`
    const journal = join(folder, "journal.log")
    await writeFile(journal, "")
    const start = (count: number): ChildProcess =>
      spawn(process.execPath, [worker, library.folder, url, journal, String(count)], {
        stdio: ["ignore", "pipe", "inherit"]
      })
    const linesOf = async (): Promise<ReadonlyArray<Line>> =>
      (await readFile(journal, "utf8")).split("\n").flatMap(line => {
        const [word = "", id = "", by = ""] = line.split(" ")
        return word === "" ? [] : [{ word, id, by }]
      })
    const first = start(runs)
    expect(await once(first, "exit")).toEqual([0, null])

    const kills = 4
    /** Calls whose outcome had been told when a process was killed. */
    const settled = new Map<string, number>()
    const executionsOf = (lines: ReadonlyArray<Line>, call: string): number =>
      lines.filter(({ id, word }) => word === "executed" && id === call).length
    let killed = 0
    for (let place = 1; place <= kills; place++) {
      await endLeases({ store: "libsql", url })
      const child = start(0)
      const ended = once(child, "exit")
      // At any moment of its work, and not of a clock.
      await hasTold(child, 1 + Math.floor(Math.random() * 8))
      await sleep(Math.random() * 8)
      child.kill("SIGKILL")
      const [, signal] = await ended
      if (signal === "SIGKILL") killed++
      const lines = await linesOf()
      for (const { id, word } of lines) {
        if (word !== "told") continue
        const known = settled.get(id)
        if (known === undefined) settled.set(id, executionsOf(lines, id))
        else expect([id, executionsOf(lines, id)]).toEqual([id, known])
      }
    }
    expect(killed).toBeGreaterThan(1)
    // Two that live at the same time share what is left: no call is executed by both.
    const before = (await linesOf()).length
    await endLeases({ store: "libsql", url })
    const both = [start(0), start(0)].map(child => once(child, "exit"))
    expect(await Promise.all(both)).toEqual([
      [0, null],
      [0, null]
    ])
    const lines = await linesOf()
    const shared = lines.slice(before).flatMap(({ id, word }) => (word === "executed" ? [id] : []))
    expect(new Set(shared).size).toBe(shared.length)

    const calls = Array.from({ length: runs }).flatMap((_, run) => callsOfRun.map(id => `r${run}/${id}`))
    const executed = lines.filter(({ word }) => word === "executed")
    // Each process has claimed a call once, and none is left out.
    expect(new Set(executed.map(({ by, id }) => `${id} ${by}`)).size).toBe(executed.length)
    expect(new Set(executed.map(({ id }) => id))).toEqual(new Set(calls))
    expect(lines.filter(({ word }) => word === "failed")).toEqual([])
    for (const [id, count] of settled) expect([id, executionsOf(lines, id)]).toEqual([id, count])
    // What was told was told once.
    const told = lines.filter(({ word }) => word === "told").map(({ id }) => id)
    expect(new Set(told).size).toBe(told.length)
    // One leg of each run ends it, or its process has died there.
    const ends = lines.filter(({ by, word }) => word === "finish" && by === "stop").map(({ id }) => id)
    expect(new Set(ends).size).toBe(ends.length)

    const { left, threads } = await Effect.runPromise(
      Effect.gen(function* () {
        const stored = yield* ThreadStore.ThreadStore
        const messages = yield* Effect.forEach(Array.from({ length: runs }), (_, run) =>
          stored.messages(`thread-r${run}`)
        )
        return { left: (yield* (yield* RunStore.RunStore).list()).total, threads: messages }
      }).pipe(Effect.provide(LibSqlStore.layer({ url })), Effect.scoped)
    )
    expect(left).toBe(0)
    const outcomes = threads.flatMap((messages, run) =>
      messages.flatMap(({ message }) =>
        message.role === "tool"
          ? message.content.map(({ output, toolCallId }) => [`r${run}/${toolCallId}`, output])
          : []
      )
    )
    expect(outcomes).toEqual(calls.map(key => [key, { type: "json", value: { key } }]))
  }, 60_000)
})

/** Until it has told so many things, or has ended. */
const hasTold = async (child: ChildProcess, lines: number): Promise<void> => {
  if (child.stdout === null) throw new Error("The process has no output.")
  let told = 0
  for await (const data of child.stdout) {
    told += String(data).split("\n").length - 1
    if (told >= lines) return
  }
}
