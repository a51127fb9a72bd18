/**
 * Two processes on one store whose clocks differ: neither takes over what the other one works on, and what a dead one has left is
 * taken over when its lease ends by the clock of the store, not by theirs.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { LibSqlStore, PostgresStore, TaskStore } from "eddy"
import { Effect, Exit, Scope } from "effect"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { freshSchema, postgresUrl } from "../support/databases.js"
import { endLeases, type Storage } from "./leases.js"
import { build } from "./library.js"

const worker = fileURLToPath(new URL("clockWorker.mjs", import.meta.url))

const scope = Effect.runSync(Scope.make())

let library: Awaited<ReturnType<typeof build>>
let folder: string

beforeAll(async () => {
  library = await build()
  folder = await mkdtemp(join(tmpdir(), "eddy-clocks-"))
}, 60_000)

afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  await library.remove()
  await rm(folder, { recursive: true, force: true })
})

interface Line {
  readonly word: string
  readonly key: string
  readonly by: string
}

type Work = "tasks" | "workflow" | "approval"

/** Two processes that work on the same: the first one's clock is right, the other's is ahead. */
class Pair {
  private readonly children: Array<ChildProcess> = []

  private constructor(
    readonly storage: Storage,
    private readonly journal: string,
    private readonly work: Work
  ) {}

  static async make(store: Storage["store"], work: Work, ahead: number): Promise<Pair> {
    const journal = join(folder, `${store}-${work}-${ahead}.log`)
    await writeFile(journal, "")
    const url =
      store === "libsql"
        ? `file:${journal}.db`
        : await Effect.runPromise(Effect.provideService(freshSchema, Scope.Scope, scope))
    return new Pair({ store, url }, journal, work)
  }

  start(name: "A" | "B", ahead: number): ChildProcess {
    const { store, url } = this.storage
    const given = [worker, library.folder, store, url, this.journal, name, String(ahead), this.work]
    const child = spawn(process.execPath, given, { stdio: ["ignore", "inherit", "inherit"] })
    this.children.push(child)
    return child
  }

  /** Lets the first process finish what it holds of this batch. */
  readonly open = (batch: string): Promise<void> => writeFile(`${this.journal}.${batch}`, "")

  async lines(word: string): Promise<ReadonlyArray<Line>> {
    return (await readFile(this.journal, "utf8"))
      .split("\n")
      .map(line => line.split(" "))
      .flatMap(([first, key = "", by = ""]) => (first === word ? [{ word, key, by }] : []))
  }

  /** Waits until the journal has so many lines of a word, and of a process. */
  readonly until = (word: string, by: string, count: number, timeout = 45_000): Promise<void> =>
    vi.waitFor(
      async () =>
        expect((await this.lines(word)).filter(line => line.by === by).length).toBeGreaterThanOrEqual(count),
      { timeout, interval: 25 }
    )

  readonly begunBy = async (by: string): Promise<ReadonlyArray<string>> =>
    (await this.lines("begun"))
      .filter(line => line.by === by)
      .map(({ key }) => key)
      .sort()

  static readonly kill = async (child: ChildProcess): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, "exit")
    child.kill("SIGKILL")
    await ended
  }

  readonly end = async (): Promise<void> => {
    await Promise.all(this.children.map(Pair.kill))
  }
}

const withPair = async (
  store: Storage["store"],
  work: Work,
  ahead: number,
  test: (pair: Pair) => Promise<void>
): Promise<void> => {
  const pair = await Pair.make(store, work, ahead)
  try {
    await test(pair)
  } finally {
    await pair.end()
  }
}

const stores = [
  { store: "libsql", isThere: true },
  { store: "postgres", isThere: postgresUrl !== undefined }
] as const

const bothWays = (ahead: number) =>
  stores.flatMap(({ isThere, store }) =>
    isThere ? [ahead, -ahead].map(milliseconds => [store, milliseconds] as const) : []
  )

describe.concurrent("of two processes on one store", () => {
  it.each(bothWays(30_000))(
    "neither takes over tasks of the other while it lives: %s, %i ms ahead",
    (store, ahead) =>
      withPair(store, "tasks", ahead, async pair => {
        const first = pair.start("A", 0)
        await pair.until("begun", "A", 3)
        pair.start("B", ahead)
        // Longer than the lease.
        await pair.until("busy", "B", 10)
        await pair.open("one")
        await pair.until("begun", "A", 5)
        expect(await pair.begunBy("A")).toEqual(["one-a", "one-b", "one-c", "two-a", "two-b"])
        expect(await pair.begunBy("B")).toEqual([])
        const { url } = pair.storage
        const layer = store === "libsql" ? LibSqlStore.layer({ url }) : PostgresStore.layer({ url })
        const { tasks } = await Effect.runPromise(
          Effect.flatMap(TaskStore.TaskStore, tasks => tasks.list({ status: "completed" })).pipe(
            Effect.provide(layer),
            Effect.scoped
          )
        )
        expect(tasks.map(({ attempt, toolCallId }) => [toolCallId, attempt]).sort()).toEqual([
          ["one-a", 1],
          ["one-b", 1],
          ["one-c", 1]
        ])
        await Pair.kill(first)
        // A lease of three seconds, whatever the clocks are.
        await pair.until("done", "B", 2, 25_000)
        expect(await pair.begunBy("B")).toEqual(["two-a", "two-b"])
      }),
    150_000
  )

  it.each(bothWays(30_000))(
    "neither takes over the run of a workflow while it goes on: %s, %i ms ahead",
    (store, ahead) =>
      withPair(store, "workflow", ahead, async pair => {
        const first = pair.start("A", 0)
        await pair.until("begun", "A", 1)
        pair.start("B", ahead)
        await pair.until("busy", "B", 5)
        expect(await pair.begunBy("B")).toEqual([])
        await Pair.kill(first)
        // A lease of 15 seconds.
        await pair.until("done", "B", 1, 25_000)
      }),
    150_000
  )

  // A claim on a call lasts 60 seconds.
  it.each(bothWays(90_000))(
    "neither decides about a call that the other one executes: %s, %i ms ahead",
    (store, ahead) =>
      withPair(store, "approval", ahead, async pair => {
        const first = pair.start("A", 0)
        await pair.until("begun", "A", 1)
        pair.start("B", ahead)
        await pair.until("busy", "B", 5)
        expect(await pair.begunBy("B")).toEqual([])
        await Pair.kill(first)
        await endLeases(pair.storage)
        await pair.until("done", "B", 1, 10_000)
      }),
    150_000
  )
})
