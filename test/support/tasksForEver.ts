/** A process that stores tasks, changes them, and says so, until it is killed. */
import { LibSqlStore, TaskStore } from "eddy"
import { Effect } from "effect"
import { taskOf } from "./taskOf.js"

const work = (fiber: number) =>
  Effect.gen(function* () {
    const store = yield* TaskStore.TaskStore
    for (let count = 0; ; count++) {
      const id = `${fiber}.${count}`
      yield* store.create(taskOf(id), "me")
      yield* store.update(id, { statuses: ["pending"], owner: "me" }, { status: "running" })
      process.stdout.write(`${id}\n`)
    }
  })

const fibers = Array.from({ length: 20 }, (_, index) => work(index))

Effect.runPromise(
  Effect.all(fibers, { concurrency: "unbounded" }).pipe(
    Effect.provide(LibSqlStore.layer({ url: process.argv[2] ?? "" }))
  )
)
