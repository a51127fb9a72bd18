/** libSQL on a file: several processes, the end of one, and what it says of what it cannot open. */

import { spawn } from "node:child_process"
import { copyFile, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { createClient } from "@libsql/client"
import { LibSqlStore } from "eddy"
import { Eddy, LibSQLStore } from "eddy/promise"
import { Deferred, Effect, Exit, Fiber, Option } from "effect"
import { freshFile, freshFolder } from "../support/databases.js"
import { keepsExactly, say, sharedCases, start } from "../support/sharedDatabase.js"
import { taskOf } from "../support/taskOf.js"

const open = (url: string) => start(LibSqlStore.layer({ url }))

const refused = (options: LibSqlStore.Options) =>
  Effect.flip(Effect.scoped(start(LibSqlStore.layer(options))))

/** Lines of what another process says, one after the other, and its end. */
const other = (script: string, ...args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const path = fileURLToPath(new URL(`../support/${script}`, import.meta.url))
      return spawn(process.execPath, ["--import", "tsx", path, ...args], {
        stdio: ["pipe", "pipe", "inherit"]
      })
    }),
    child => Effect.sync(() => child.kill("SIGKILL"))
  )

describe("two processes on one file", () => {
  for (const { name, run } of sharedCases) {
    it.scopedLive(name, () =>
      Effect.gen(function* () {
        const url = yield* freshFile
        const [one, other] = yield* Effect.all([open(url), open(url)], { concurrency: "unbounded" })
        yield* run(one, other)
      })
    )
  }

  it.scopedLive("a writer waits for the lock of another, and readers do not", () =>
    Effect.gen(function* () {
      const url = yield* freshFile
      const { tasks } = yield* open(url)
      yield* tasks.create(taskOf("first"), "me")
      const client = yield* Effect.acquireRelease(
        Effect.sync(() => createClient({ url })),
        client => Effect.sync(() => client.close())
      )
      const lock = yield* Effect.promise(() => client.transaction("write"))
      const created = yield* Effect.fork(tasks.create(taskOf("second"), "me"))
      for (let round = 0; round < 100; round++) {
        expect(Option.isSome(yield* tasks.get("first"))).toBe(true)
      }
      expect(created.unsafePoll()).toBeNull()
      expect(yield* tasks.get("second")).toEqual(Option.none())
      yield* Effect.promise(() => lock.rollback())
      yield* Fiber.join(created)
      expect(Option.isSome(yield* tasks.get("second"))).toBe(true)
    })
  )

  it.scopedLive("nothing that was announced is lost when one of them is killed while both write", () =>
    Effect.gen(function* () {
      const url = yield* freshFile
      const { tasks } = yield* open(url)
      const announced: Array<string> = []
      const enough = yield* Deferred.make<void>()
      const child = yield* other("tasksForEver.ts", url)
      let rest = ""
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        const lines = (rest + text).split("\n")
        rest = lines.pop() ?? ""
        announced.push(...lines)
        if (announced.length > 300) Deferred.unsafeDone(enough, Exit.void)
      })
      const ended = Effect.async<void>(resume => {
        child.once("close", () => resume(Effect.void))
      })
      const end = yield* Effect.fork(ended)
      const mine: Array<string> = []
      const writing = yield* Effect.fork(
        Effect.forever(
          Effect.suspend(() => {
            const id = `mine ${mine.length}`
            return Effect.map(tasks.create({ ...taskOf(id), status: "running" }, "me"), () => mine.push(id))
          })
        )
      )
      yield* Effect.raceFirst(Deferred.await(enough), Fiber.join(end))
      child.kill("SIGKILL")
      yield* Fiber.join(end)
      yield* Fiber.interrupt(writing)
      expect(announced.length).toBeGreaterThan(300)
      expect(mine.length).toBeGreaterThan(20)
      const places = yield* tasks.places([...announced, ...mine])
      expect(places).toHaveLength(announced.length + mine.length)
      expect(new Set(places.map(({ status }) => status))).toEqual(new Set(["running"]))
    })
  )
})

describe("a file", () => {
  it.scopedLive("holds everything when it is opened again", () =>
    Effect.gen(function* () {
      const url = yield* freshFile
      const before = yield* Effect.scoped(
        Effect.gen(function* () {
          const { runs, tasks, threads } = yield* open(url)
          const thread = yield* threads.open({ id: "t", resourceId: "r" })
          const messages = yield* threads.append("t", [say("a"), say("b")])
          yield* tasks.create(taskOf("task"), "me")
          const run = yield* runs.save({ runId: "run", agentId: "a", snapshot: { at: 1 } }, undefined)
          return { thread, messages, run, task: yield* tasks.get("task") }
        })
      )
      const { runs, tasks, threads } = yield* open(url)
      expect(yield* threads.messages("t")).toEqual(before.messages)
      expect((yield* threads.list()).total).toBe(1)
      expect(yield* runs.get("run")).toEqual(before.run)
      expect(yield* tasks.get("task")).toEqual(before.task)
      expect((yield* threads.append("t", [say("c")]))[0]?.sequence).toBe(3)
    })
  )

  it.scopedLive("keeps every character and number exactly", () =>
    Effect.flatMap(Effect.flatMap(freshFile, open), keepsExactly)
  )

  it.scopedLive("lets others have their turn, however often it is asked", () =>
    Effect.gen(function* () {
      const { tasks } = yield* Effect.flatMap(freshFile, open)
      let isDue = false
      setTimeout(() => {
        isDue = true
      }, 0)
      for (let count = 0; count < 2000 && !isDue; count++) yield* tasks.dropLease("nobody")
      expect(isDue).toBe(true)
    })
  )

  it.scopedLive("may be the memory of the process", () =>
    Effect.gen(function* () {
      const { tasks } = yield* open(":memory:")
      yield* tasks.create(taskOf("a"), "me")
      expect(Option.isSome(yield* tasks.get("a"))).toBe(true)
    })
  )

  it.scopedLive("is what a container keeps its conversations in, and takes into the file itself", () =>
    Effect.gen(function* () {
      const folder = yield* freshFolder
      const url = `file:${join(folder, "eddy.db")}`
      const store = new LibSQLStore({ id: "storage", url })
      expect(store.id).toBe("storage")
      expect(new LibSQLStore({ url }).id).toBe("libsql")
      const thread = yield* Effect.scoped(
        Effect.flatMap(open(url), ({ threads }) => threads.open({ id: "t", resourceId: "r" }))
      )
      yield* Effect.promise(async () => {
        const container = new Eddy({ storage: store })
        expect(await container.threads.get("t")).toEqual(thread)
        await container.shutdown()
      })
      const copied = join(folder, "copy.db")
      yield* Effect.promise(() => copyFile(join(folder, "eddy.db"), copied))
      const { threads } = yield* open(`file:${copied}`)
      expect(yield* threads.get("t")).toEqual(Option.some(thread))
    })
  )

  it.scopedLive("is refused in words when its folder is not there, or it is no database", () =>
    Effect.gen(function* () {
      const folder = yield* freshFolder
      const missing = yield* refused({ url: `file:${join(folder, "nowhere", "eddy.db")}` })
      expect(missing).toMatchObject({ _tag: "StorageError", operation: "Storage.open" })
      expect(missing.message).toContain("nowhere/eddy.db")
      expect(missing.message).toContain("folder")
      const file = join(folder, "text.db")
      yield* Effect.promise(() => writeFile(file, "This is no database, however long it is. ".repeat(100)))
      const text = yield* refused({ url: `file:${file}` })
      expect(text).toMatchObject({ _tag: "StorageError", operation: "Storage.open" })
      expect(text.message).toContain("text.db")
    })
  )
})

describe("a server", () => {
  it.scopedLive("that lets nobody in is asked once, and told in words without the token", () =>
    Effect.gen(function* () {
      const tokens: Array<string | undefined> = []
      const server = createServer((request, response) => {
        tokens.push(request.headers.authorization)
        response.writeHead(401).end()
      })
      yield* Effect.acquireRelease(
        Effect.async<void>(resume => {
          server.listen(0, "127.0.0.1", () => resume(Effect.void))
        }),
        () => Effect.sync(() => server.close())
      )
      const address = server.address()
      const port = typeof address === "object" ? address?.port : undefined
      const error = yield* refused({ url: `http://127.0.0.1:${port}`, authToken: "secret" })
      expect(error).toMatchObject({ _tag: "StorageError", operation: "Storage.migrate" })
      expect(error.message).not.toContain("secret")
      // For the version of its protocol, for the version of the tables, and for the first of them.
      expect(new Set(tokens)).toEqual(new Set(["Bearer secret"]))
      expect(tokens.length).toBeLessThan(5)
    })
  )
})

describe("options of libSQL", () => {
  const wrong: ReadonlyArray<readonly [field: string, options: LibSqlStore.Options]> = [
    ["url", { url: "" }],
    ["url", { url: "file:" }],
    ["url", { url: "postgres://user:secret@localhost/db" }],
    ["authToken", { url: "file:a.db", authToken: "" }],
    ["ulr", Object.assign({ url: "file:a.db" }, { ulr: "file:b.db" })]
  ]
  for (const [field, options] of wrong) {
    it.effect(`${JSON.stringify(options)} is refused`, () =>
      Effect.gen(function* () {
        const error = yield* refused(options)
        expect(error).toMatchObject({ _tag: "InvalidConfiguration", field })
        expect(error.message).not.toContain("secret")
        expect(() => new LibSQLStore(options)).toThrow(expect.objectContaining({ field }))
      })
    )
  }
})
