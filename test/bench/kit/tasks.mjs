// A manager of background tasks made into something to measure: so many calls of one tool, until all were told as completed.
/** The tools: the same promise functions in every system. */
export const atOnce = async ({ n }) => ({ sum: n + 1 })
export const inAMillisecond = ({ n }) => new Promise(resolve => setTimeout(resolve, 1, { sum: n + 1 }))

/** Readers of task events: counts what each has heard, and knows when the last of them has heard everything. */
export class Audience {
  constructor(readers) {
    this.heard = Array.from({ length: readers }, () => ({ running: 0, completed: 0, sum: 0 }))
  }

  /** So many tasks from now on, all of them told to everybody. */
  expect(count) {
    this.count = count
    this.missing = this.heard.length
    for (const seen of this.heard) Object.assign(seen, { running: 0, completed: 0, sum: 0 })
    return new Promise((resolve, reject) => {
      Object.assign(this, { resolve, reject })
    })
  }

  hear(reader, { payload, type }) {
    const seen = this.heard[reader]
    if (type === "background-task-running") seen.running++
    else if (type === "background-task-completed") {
      seen.completed++
      seen.sum += payload.result.sum
      if (seen.completed === this.count && --this.missing === 0) this.resolve()
    } else this.reject(new Error(`a task came to ${type}`))
  }
}

/** The same events for everybody, each task once, with its own result. */
const verify = ({ count, heard }, label) => {
  const sum = (count * (count + 1)) / 2
  for (const seen of heard) {
    if (seen.running !== count || seen.completed !== count || seen.sum !== sum)
      throw new Error(`${label}: a reader heard ${JSON.stringify(seen)} of ${count} tasks`)
  }
}

/** Dispatches calls with the arguments 0, 1, ... all at once; done when every reader has heard that all are completed. */
export const runTasks = async (manager, count, tool) => {
  const { audience, label } = manager
  const heard = audience.expect(count)
  heard.catch(() => {})
  await manager.dispatch(count, tool)
  await heard
  verify(audience, label)
  manager.total = (manager.total ?? 0) + count
}

/** A manager that has run a task: whatever is made when it is first used is there, for everyone alike. */
export const openTasks = async (system, options) => {
  const manager = await system.open({ readers: 1, ...options })
  await runTasks(manager, 1, atOnce)
  return manager
}

/** What was run is in the store, completed. */
export const closeTasks = async manager => {
  const stored = await manager.completed()
  await manager.close()
  if (stored !== manager.total)
    throw new Error(`${manager.label}: ${stored} of ${manager.total} tasks are stored as completed`)
}

/** Tasks of warm-up, the same for everyone. */
const warmUp = 10000
const warmBatch = 1000

/**
 * A new manager for each sample, opened and closed off the clock; `kept` is how many finished tasks its store has when the
 * clock starts: both managers keep them for an hour.
 */
export const taskContender = (system, { count, kept = 0, ...options }) => {
  const prepare = async () => {
    const manager = await openTasks(system, options)
    for (let done = 0; done < kept; done += warmBatch) await runTasks(manager, warmBatch, atOnce)
    return manager
  }
  const once = async amount => {
    const manager = await openTasks(system, options)
    await runTasks(manager, amount, atOnce)
    await closeTasks(manager)
  }
  return {
    warm: async () => {
      for (let done = 0; done < warmUp; done += warmBatch) await once(warmBatch)
    },
    again: () => once(100),
    prepare,
    run: manager => runTasks(manager, count, atOnce),
    after: closeTasks
  }
}
