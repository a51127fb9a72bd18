/**
 * Processes that are killed at random moments, and the ones that come after them: nothing that settled is lost or run again,
 * nothing is stuck, suspended tasks resume, and every outcome reaches its thread.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { LibSqlStore, PostgresStore, type Task, TaskStore, ThreadStore } from "eddy"
import { Effect, type Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { freshSchema, postgresUrl } from "../support/databases.js"
import { build } from "./library.js"

const worker = fileURLToPath(new URL("worker.mjs", import.meta.url))

let library: Awaited<ReturnType<typeof build>>
let folder: string

beforeAll(async () => {
  library = await build()
  folder = await mkdtemp(join(tmpdir(), "eddy-recovery-"))
}, 60_000)

afterAll(async () => {
  await library.remove()
  await rm(folder, { recursive: true, force: true })
})

interface World {
  readonly store: "libsql" | "postgres"
  readonly url: string
  readonly journal: string
}

const start = (world: World, name: string, turns: number, mode: "work" | "drain"): ChildProcess =>
  spawn(
    process.execPath,
    [worker, library.folder, world.store, world.url, world.journal, name, String(turns), mode],
    { stdio: ["ignore", "pipe", "inherit"] }
  )

/** Until it has told so many things: that it has taken over what was left, and what it did since. */
const hasTold = async (child: ChildProcess, lines: number): Promise<void> => {
  if (child.stdout === null) throw new Error("The process has no output.")
  let told = 0
  for await (const data of child.stdout) {
    told += String(data).split("\n").length - 1
    if (told >= lines) return
  }
}

const kill = async (child: ChildProcess): Promise<void> => {
  const ended = once(child, "exit")
  child.kill("SIGKILL")
  await ended
}

type Stores = TaskStore.TaskStore | ThreadStore.ThreadStore

const layerOf = ({ store, url }: World): Layer.Layer<Stores, unknown> =>
  store === "libsql" ? LibSqlStore.layer({ url }) : PostgresStore.layer({ url })

const ask = <A, E>(world: World, effect: Effect.Effect<A, E, Stores>): Promise<A> =>
  Effect.runPromise(Effect.scoped(Effect.provide(effect, layerOf(world))))

const tasksOf = (world: World): Promise<ReadonlyArray<Task.Task>> =>
  ask(
    world,
    Effect.flatMap(TaskStore.TaskStore, store => store.list({ perPage: 100_000 }))
  ).then(({ tasks }) => tasks)

const linesOf = async (world: World, word: string): Promise<ReadonlyArray<string>> =>
  (await readFile(world.journal, "utf8"))
    .split("\n")
    .map(line => line.split(" "))
    .filter(([first]) => first === word)
    .map(([, id = ""]) => id)

const isSettled = ({ status }: Task.Task): boolean => !["pending", "running", "suspended"].includes(status)

const countsOf = (ids: ReadonlyArray<string>): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}

/** What a conversation says about each call: what it came to. */
const outcomesIn = async (world: World, threadId: string): Promise<ReadonlyMap<string, unknown>> => {
  const messages = await ask(
    world,
    Effect.flatMap(ThreadStore.ThreadStore, store => store.messages(threadId))
  )
  return new Map(
    messages.flatMap(({ message }) =>
      message.role === "tool" ? message.content.map(part => [part.toolCallId, part.providerOptions]) : []
    )
  )
}

/** Every settled task has its outcome in its thread, and every call an outcome. */
const expectDelivered = async (world: World, tasks: ReadonlyArray<Task.Task>): Promise<void> => {
  const threads = new Set(tasks.flatMap(({ threadId }) => threadId ?? []))
  for (const threadId of threads) {
    const outcomes = await outcomesIn(world, threadId)
    const ours = tasks.filter(task => task.threadId === threadId)
    const expected = ours.map(({ id, status, toolCallId }) => [
      toolCallId,
      { eddy: { backgroundTask: { taskId: id, status } } }
    ])
    const found = ours.map(({ toolCallId }) => [toolCallId, outcomes.get(toolCallId)])
    expect(found).toEqual(expected)
  }
}

const killAgainAndAgain = async (world: World, kills: number): Promise<void> => {
  await writeFile(world.journal, "")
  // A settled task, as it was when it was seen first, and how often it had been begun then.
  const settled = new Map<string, { readonly task: Task.Task; readonly begun: number }>()
  for (let round = 0; round < kills; round++) {
    const child = start(world, `r${round}`, 3, "work")
    // At any moment of its work, and not of a clock: how far it has come by then depends on the machine.
    await hasTold(child, 1 + Math.floor(Math.random() * 25))
    await sleep(Math.random() * 10)
    await kill(child)
    if (round % 5 !== 4) continue
    const begun = countsOf(await linesOf(world, "begun"))
    for (const task of await tasksOf(world)) {
      const known = settled.get(task.id)
      if (known !== undefined) expect(task).toEqual(known.task)
      else if (isSettled(task)) settled.set(task.id, { task, begun: begun.get(task.id) ?? 0 })
    }
  }
  const last = start(world, "last", 0, "drain")
  expect(await once(last, "exit")).toEqual([0, null])
  const tasks = await tasksOf(world)
  const byId = new Map(tasks.map(task => [task.id, task]))
  const begun = countsOf(await linesOf(world, "begun"))
  for (const [id, before] of settled) {
    expect(byId.get(id)).toEqual(before.task)
    expect(begun.get(id) ?? 0).toBe(before.begun)
  }
  // Whatever was acknowledged is there, and nothing is stuck.
  const dispatched = await linesOf(world, "dispatched")
  expect(dispatched.filter(id => !byId.has(id))).toEqual([])
  expect(tasks.filter(task => !isSettled(task))).toEqual([])
  expect(tasks.length).toBeGreaterThan(kills)
  const asked = tasks.filter(({ toolName }) => toolName === "asking")
  expect(asked.filter(({ status }) => status !== "completed")).toEqual([])
  expect(tasks.filter(({ status, toolName }) => toolName === "slow" && status !== "completed")).toEqual([])
  await expectDelivered(world, tasks)
}

describe.concurrent("processes that are killed", () => {
  it.each(["one", "other"])(
    "25 times on %s libSQL file",
    async name => {
      const url = `file:${join(folder, `${name}.db`)}`
      await killAgainAndAgain({ store: "libsql", url, journal: join(folder, `${name}.log`) }, 25)
    },
    180_000
  )

  it.skipIf(postgresUrl === undefined)(
    "10 times on PostgreSQL",
    () =>
      Effect.runPromise(
        Effect.scoped(
          Effect.flatMap(freshSchema, url =>
            Effect.promise(() =>
              killAgainAndAgain({ store: "postgres", url, journal: join(folder, "postgres.log") }, 10)
            )
          )
        )
      ),
    180_000
  )
})

describe("two processes on one store", () => {
  it("never run one task twice, and one goes on with what the other has left", async () => {
    const world: World = {
      store: "libsql",
      url: `file:${join(folder, "shared.db")}`,
      journal: join(folder, "shared.log")
    }
    await writeFile(world.journal, "")
    const [one, other] = [start(world, "one", 10, "work"), start(world, "other", 10, "work")]
    await vi.waitFor(async () => expect(await linesOf(world, "dispatched")).toHaveLength(100), {
      timeout: 20_000,
      interval: 50
    })
    const begunAlive = countsOf(await linesOf(world, "begun"))
    expect(begunAlive.size).toBeGreaterThan(20)
    const toolOf = new Map((await tasksOf(world)).map(({ id, toolName }) => [id, toolName]))
    // As long as both live, only a task that failed is begun again.
    for (const [id, count] of begunAlive) {
      if (toolOf.get(id) !== "failing") expect([id, count]).toEqual([id, 1])
    }
    await kill(one)
    const last = start(world, "last", 0, "drain")
    expect(await once(last, "exit")).toEqual([0, null])
    await kill(other)
    const tasks = await tasksOf(world)
    expect(tasks).toHaveLength(100)
    await expectDelivered(world, tasks)
  }, 60_000)
})
