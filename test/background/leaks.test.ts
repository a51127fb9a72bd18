/** What is done with is let go of: a manager that runs for months holds no more than the tasks that are on their way. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { breathe, dispatch, executor, hanging, type Process, pass, start } from "./kit.js"

setFlagsFromString("--expose-gc")
const gc: () => void = runInNewContext("gc")

const used = (): number => {
  gc()
  return process.memoryUsage().heapUsed
}

/** Each tool holds half a megabyte. */
const heavy = (run: Effect.Effect<unknown, unknown>) => {
  const held = Array.from({ length: 65_536 }, (_, index) => index + 0.5)
  return executor(() => (held.length === 0 ? Effect.never : run))
}

const ways = {
  completed: (running: Process, id: string) => dispatch(running, id, heavy(Effect.succeed(1))),
  failed: (running: Process, id: string) => dispatch(running, id, heavy(Effect.fail("x"))),
  "taking too long": (running: Process, id: string) =>
    Effect.zipRight(dispatch(running, id, heavy(Effect.never), { timeoutMs: 5 }), pass(5)),
  cancelled: (running: Process, id: string) =>
    Effect.flatMap(dispatch(running, id, heavy(Effect.never)), ({ taskId }) =>
      running.background.cancel(taskId)
    ),
  "told to a thread": (running: Process, id: string) =>
    Effect.flatMap(
      dispatch(running, id, heavy(Effect.succeed(1)), { threadId: "thread" }),
      ({ stored }) => stored
    )
}

for (const [name, way] of Object.entries(ways)) {
  it.scoped(`tasks that are done with, ${name}`, () =>
    Effect.gen(function* () {
      const running = yield* start({ globalConcurrency: 50, perAgentConcurrency: 50 })
      yield* running.threads.open({ id: "thread", resourceId: "user" })
      yield* way(running, "first")
      yield* breathe
      const before = used()
      for (let index = 0; index < 30; index++) yield* way(running, `${index}`)
      yield* breathe
      expect(used() - before).toBeLessThan(4_000_000)
    })
  )
}

it.scoped("tasks that run are held, as this test sees", () =>
  Effect.gen(function* () {
    const running = yield* start({ globalConcurrency: 50, perAgentConcurrency: 50 })
    yield* dispatch(running, "first", hanging())
    const before = used()
    for (let index = 0; index < 30; index++) yield* dispatch(running, `${index}`, heavy(Effect.never))
    expect(used() - before).toBeGreaterThan(10_000_000)
  })
)
