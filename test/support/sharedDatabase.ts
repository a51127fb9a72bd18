/** What holds when two processes use one database: two layers stand for them, each with connections and a group of its own. */
import { expect } from "@effect/vitest"
import { RunStore, TaskStore, ThreadStore } from "eddy"
import { Context, Effect, Layer, Option, type Scope } from "effect"
import { taskOf } from "./taskOf.js"

/** What a database is behind. */
export type Stores = ThreadStore.ThreadStore | TaskStore.TaskStore | RunStore.RunStore

/** The ports of one process. */
export interface Process {
  readonly threads: Context.Tag.Service<ThreadStore.ThreadStore>
  readonly tasks: Context.Tag.Service<TaskStore.TaskStore>
  readonly runs: Context.Tag.Service<RunStore.RunStore>
}

/** Begins a process, which ends with the scope. */
export const start = <E>(layer: Layer.Layer<Stores, E>): Effect.Effect<Process, E, Scope.Scope> =>
  Effect.map(Layer.build(Layer.fresh(layer)), context => ({
    threads: Context.get(context, ThreadStore.ThreadStore),
    tasks: Context.get(context, TaskStore.TaskStore),
    runs: Context.get(context, RunStore.RunStore)
  }))

export const say = (id: string): ThreadStore.NewMessage => ({
  id,
  message: { role: "user", content: [{ type: "text", text: id }] }
})

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

const everywhere = { concurrency: "unbounded" } as const

interface Case {
  readonly name: string
  readonly run: (one: Process, other: Process) => Effect.Effect<void, unknown>
}

const appends: Case = {
  name: "appends of both to one thread leave no gap, and nothing between the messages of one",
  run: Effect.fnUntraced(function* (one, other) {
    yield* one.threads.open({ id: "t", resourceId: "r" })
    const calls = [one, other].flatMap(({ threads }, who) =>
      numbers(30).map(call => {
        const messages = numbers(3).map(number => say(`${who}.${call}.${number}`))
        return threads.append("t", messages)
      })
    )
    const told = yield* Effect.all(calls, everywhere)
    const all = yield* other.threads.messages("t")
    expect(all.map(({ sequence }) => sequence)).toEqual(numbers(180))
    for (const messages of told) {
      const first = messages[0]?.sequence ?? 0
      expect(all.slice(first - 1, first + 2)).toEqual(messages)
    }
  })
}

const blocks: Case = {
  name: "messages of a run of each stand together, in the order in which the runs started",
  run: Effect.fnUntraced(function* (one, other) {
    yield* one.threads.open({ id: "t", resourceId: "r" })
    expect(yield* other.threads.startRun("t", "A")).toBe(1)
    expect(yield* one.threads.startRun("t", "B")).toBe(2)
    const calls = numbers(20).flatMap(number => [
      one.threads.append("t", [{ ...say(`B${number}`), runId: "B" }]),
      other.threads.append("t", [{ ...say(`A${number}`), runId: "A" }])
    ])
    yield* Effect.all(calls, everywhere)
    const runs = (yield* one.threads.messages("t")).map(({ runId }) => runId)
    expect(runs).toEqual([...numbers(20).map(() => "A"), ...numbers(20).map(() => "B")])
    const started = numbers(10).flatMap(number => [
      one.threads.startRun("t", `one ${number}`),
      other.threads.startRun("t", `other ${number}`)
    ])
    const given = yield* Effect.all(started, everywhere)
    expect([...given].sort((left, right) => left - right)).toEqual(numbers(20).map(number => number + 2))
  })
}

const opens: Case = {
  name: "one of both makes a thread, and both get that one",
  run: Effect.fnUntraced(function* (one, other) {
    for (const id of numbers(10)) {
      const opened = yield* Effect.all(
        [one, other].map(({ threads }, who) =>
          threads.open({ id: `${id}`, resourceId: "r", title: `${who}` })
        ),
        everywhere
      )
      expect(opened[0]).toEqual(opened[1])
    }
  })
}

const deletes: Case = {
  name: "a thread that one deletes while the other appends leaves no messages",
  run: Effect.fnUntraced(function* (one, other) {
    for (const id of numbers(10)) {
      const name = `deleted ${id}`
      yield* one.threads.open({ id: name, resourceId: "r" })
      const appended = numbers(10).map(number => Effect.ignore(one.threads.append(name, [say(`${number}`)])))
      yield* Effect.all([...appended, other.threads.delete(name)], everywhere)
      expect(yield* one.threads.get(name)).toEqual(Option.none())
      expect(yield* one.threads.messages(name)).toEqual([])
      yield* one.threads.open({ id: name, resourceId: "r" })
      expect(yield* other.threads.messages(name)).toEqual([])
    }
  })
}

const outcome = (value: string) => ({
  type: "tool-result" as const,
  toolCallId: "call",
  toolName: "look",
  output: { type: "text" as const, value }
})

const crossing: Case = {
  name: "outcomes and appends of both to many threads, in any order, are all done",
  run: Effect.fnUntraced(function* (one, other) {
    const ids = numbers(12).map(id => `crossing ${id}`)
    for (const id of ids) {
      yield* one.threads.open({ id, resourceId: "r" })
      yield* one.threads.append(id, [{ id: "tool", message: { role: "tool", content: [outcome("old")] } }])
    }
    const work = (process: Process, ids: ReadonlyArray<string>, who: string) =>
      ids.flatMap(id => [
        process.threads.replaceOutcome(id, outcome(who)),
        process.threads.append(id, [
          say(who),
          { id: "tool2", message: { role: "tool", content: [outcome("x")] } }
        ])
      ])
    yield* Effect.all([...work(one, ids, "a"), ...work(other, [...ids].reverse(), "b")], everywhere)
    for (const id of ids) {
      const messages = yield* one.threads.messages(id)
      expect(messages.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4])
      expect(messages.map(({ id }) => id).sort()).toEqual(["a", "b", "tool", "tool2"])
      const text = JSON.stringify(messages)
      expect([text.includes('"value":"a"'), text.includes('"value":"b"')]).toContain(true)
    }
  })
}

const claims: Case = {
  name: "one of both gets a task that both want",
  run: Effect.fnUntraced(function* (one, other) {
    const ids = numbers(40).map(id => `claimed ${id}`)
    yield* Effect.forEach(ids, id => one.tasks.create(taskOf(id), "nobody"), everywhere)
    const claim = ({ tasks }: Process, owner: string, ids: ReadonlyArray<string>) =>
      Effect.forEach(
        ids,
        id =>
          Effect.map(tasks.update(id, { statuses: ["pending"] }, { status: "running", owner }), got =>
            got ? [id] : []
          ),
        everywhere
      )
    const [mine, yours] = yield* Effect.all(
      [claim(one, "one", ids), claim(other, "other", [...ids].reverse())],
      everywhere
    )
    const got = [...mine.flat(), ...yours.flat()]
    expect([...got].sort()).toEqual([...ids].sort())
    for (const id of mine.flat()) {
      expect(Option.map(yield* other.tasks.get(id), ({ owner }) => owner)).toEqual(Option.some("one"))
    }
  })
}

const creations: Case = {
  name: "one of both makes a task of an id, and the other is told",
  run: Effect.fnUntraced(function* (one, other) {
    for (const id of numbers(10)) {
      const made = yield* Effect.all(
        [one, other].map(({ tasks }, who) =>
          Effect.match(tasks.create(taskOf(`made ${id}`), `${who}`), {
            onFailure: () => 0,
            onSuccess: () => 1
          })
        ),
        everywhere
      )
      expect(made.reduce((sum, count) => sum + count, 0)).toBe(1)
    }
  })
}

const inherits: Case = {
  name: "each task that is left goes to one heir only",
  run: Effect.fnUntraced(function* (one, other) {
    for (const round of numbers(5)) {
      const heirs = numbers(4).map(number => `heir ${round} ${number}`)
      const ids = numbers(30).map(id => `left ${round} ${id}`)
      yield* Effect.forEach(ids, id => one.tasks.create(taskOf(id), `gone ${round}`), everywhere)
      const inherited = yield* Effect.forEach(
        heirs,
        (heir, index) => {
          const { tasks } = index % 2 === 0 ? one : other
          // Those who live say so first: what they have inherited is not left.
          return Effect.zipRight(tasks.renewLease(heir, "1 day"), tasks.inherit(heir))
        },
        everywhere
      )
      const got = inherited.flatMap((tasks, index) =>
        tasks.map(({ owner, task }) => {
          expect(owner).toBe(heirs[index])
          return task.id
        })
      )
      expect(got.filter(id => id.startsWith(`left ${round} `)).sort()).toEqual([...ids].sort())
      expect(new Set(got).size).toBe(got.length)
    }
  })
}

const runs: Case = {
  name: "one of both saves a run that both have read",
  run: Effect.fnUntraced(function* (one, other) {
    yield* one.runs.save({ runId: "r", agentId: "a", snapshot: 0 }, undefined)
    for (const revision of numbers(20)) {
      const saved = yield* Effect.all(
        [one, other].map(({ runs }, who) => runs.save({ runId: "r", agentId: "a", snapshot: who }, revision)),
        everywhere
      )
      expect(saved.filter(Option.isSome)).toHaveLength(1)
      expect(yield* one.runs.get("r")).toEqual(Option.firstSomeOf(saved))
    }
  })
}

/** Each needs a database of its own. */
export const sharedCases: ReadonlyArray<Case> = [
  appends,
  blocks,
  opens,
  deletes,
  crossing,
  claims,
  creations,
  inherits,
  runs
]

/** Every character of the first plane that is none of a pair, and some behind it. */
const characters = Array.from({ length: 0x10000 }, (_, code) => code)
  .filter(code => code < 0xd800 || code > 0xdfff)
  .map(code => String.fromCharCode(code))
  .concat("\u{1f600}", "\u{10ffff}", "\u0000", "\u001a", "\u001a0", "\u001a1", "\u0000\u001a\u0000")
  .join("")

/** What is stored comes back as it was, whatever characters and numbers it is made of. */
export const keepsExactly = Effect.fnUntraced(function* (process: Process) {
  const id = `id \u0000 \u001a0 ${characters.slice(0, 300)}`
  const values = [
    0,
    -1.5,
    1e21,
    5e-324,
    Number.MAX_SAFE_INTEGER,
    "",
    null,
    true,
    characters,
    [[[]]],
    { "": {} }
  ]
  const metadata = { [characters.slice(0, 200)]: values }
  const thread = yield* process.threads.open({ id, resourceId: "\u0000", title: characters, metadata })
  expect(thread).toMatchObject({ id, resourceId: "\u0000", title: characters })
  expect(yield* process.threads.get(id)).toEqual(Option.some(thread))
  expect((yield* process.threads.list({ resourceId: "\u0000" })).threads).toEqual([thread])
  expect((yield* process.threads.list({ resourceId: "" })).total).toBe(0)
  const [message] = yield* process.threads.append(id, [
    {
      ...say("\u0000m"),
      runId: "\u001a",
      message: { role: "user", content: [{ type: "text", text: characters }] }
    }
  ])
  expect(yield* process.threads.messages(id)).toEqual([message])
  const times = [Number.MAX_SAFE_INTEGER, 8_640_000_000_000_000]
  const task = {
    ...taskOf(`task ${id}`),
    args: metadata,
    attempt: Number.MAX_SAFE_INTEGER,
    createdAt: new Date(Math.min(...times)),
    timeoutMs: Number.MAX_SAFE_INTEGER
  }
  yield* process.tasks.create(task, "owner\u0000")
  yield* process.tasks.update(
    task.id,
    { statuses: ["pending"], owner: "owner\u0000" },
    { status: "failed", completedAt: new Date(0), error: { message: characters } }
  )
  const stored = Option.map(yield* process.tasks.get(task.id), ({ owner, task }) => ({ owner, task }))
  const failed = { ...task, status: "failed", completedAt: new Date(0), error: { message: characters } }
  expect(stored).toEqual(Option.some({ owner: "owner\u0000", task: failed }))
  const run = yield* process.runs.save({ runId: id, agentId: "a\u0000", snapshot: values }, undefined)
  expect(Option.map(run, ({ snapshot }) => snapshot)).toEqual(Option.some(JSON.parse(JSON.stringify(values))))
  expect(yield* process.runs.get(id)).toEqual(run)
  expect(yield* process.runs.delete(id)).toBe(true)
})
