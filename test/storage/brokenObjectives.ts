/** What a driver may do wrong with objectives. */
import { Effect, Option } from "effect"
import type { Encoded, Objectives } from "../../src/storage/threadRows.js"

type Mutation = (driver: Encoded) => Partial<Encoded>

const unkept: Objectives = {
  get: () => Effect.succeedNone,
  replace: () => Effect.succeed(false)
}

/** Some operations changed, over those of the driver. */
const changed =
  (change: (objectives: Objectives, driver: Encoded) => Partial<Objectives>): Mutation =>
  driver => {
    const objectives = driver.objectives ?? unkept
    return { objectives: { ...objectives, ...change(objectives, driver) } }
  }

const changedContent = (change: (content: string) => string): Mutation =>
  changed(({ get }) => ({
    get: (...given) =>
      Effect.map(
        get(...given),
        Option.map(content => (content === null ? null : change(content)))
      )
  }))

const resourceOf = (driver: Encoded, threadId: string) =>
  Effect.map(driver.get(threadId), Option.match({ onNone: () => "", onSome: ({ resourceId }) => resourceId }))

export const mutationsOfObjectives: Readonly<Record<string, Mutation>> = {
  "keeps no objective": changed(() => ({ replace: () => Effect.succeed(true) })),
  "says that nobody's objective was replaced": changed(({ replace }) => ({
    replace: (...given) => Effect.as(replace(...given), false)
  })),
  "replaces whatever objective is there": changed(({ get, replace }) => ({
    // The other fibers come between.
    get: (...given) => Effect.zipLeft(get(...given), Effect.yieldNow()),
    replace: (threadId, resourceId, _, content) =>
      Effect.flatMap(get(threadId, resourceId), present =>
        Option.isNone(present) ? Effect.succeed(false) : replace(threadId, resourceId, present.value, content)
      )
  })),
  "sets the first objective over another": changed(({ get, replace }) => ({
    get: (...given) => Effect.zipLeft(get(...given), Effect.yieldNow()),
    replace: (threadId, resourceId, expected, content) =>
      Effect.flatMap(get(threadId, resourceId), present =>
        replace(threadId, resourceId, expected ?? Option.getOrNull(present), content)
      )
  })),
  "takes no objective away": changed(({ replace }) => ({
    replace: (threadId, resourceId, expected, content) =>
      content === null ? Effect.succeed(true) : replace(threadId, resourceId, expected, content)
  })),
  "gives the objective to every resource": changed(({ get, replace }, driver) => ({
    get: threadId => Effect.flatMap(resourceOf(driver, threadId), resourceId => get(threadId, resourceId)),
    replace: (threadId, _, expected, content) =>
      Effect.flatMap(resourceOf(driver, threadId), resourceId =>
        replace(threadId, resourceId, expected, content)
      )
  })),
  "shows the objective to every resource": changed(({ get }, driver) => ({
    get: threadId => Effect.flatMap(resourceOf(driver, threadId), resourceId => get(threadId, resourceId))
  })),
  "lets every resource change the objective": changed(({ get, replace }, driver) => ({
    get: (threadId, resourceId) =>
      Effect.flatMap(resourceOf(driver, threadId), owner =>
        Effect.map(get(threadId, owner), found => (owner === resourceId ? found : Option.as(found, null)))
      ),
    replace: (threadId, _, __, content) =>
      Effect.gen(function* () {
        const owner = yield* resourceOf(driver, threadId)
        return yield* replace(threadId, owner, Option.getOrNull(yield* get(threadId, owner)), content)
      })
  })),
  "keeps one objective for all threads of a resource": driver => {
    const objectives = driver.objectives ?? unkept
    const first = new Map<string, string>()
    const threadOf = (threadId: string, resourceId: string): string => {
      const known = first.get(resourceId) ?? threadId
      first.set(resourceId, known)
      return known
    }
    return {
      objectives: {
        get: (threadId, resourceId) => objectives.get(threadOf(threadId, resourceId), resourceId),
        replace: (threadId, resourceId, ...given) =>
          objectives.replace(threadOf(threadId, resourceId), resourceId, ...given)
      }
    }
  },
  "leaves the objective of a deleted thread": driver => {
    const objectives = driver.objectives ?? unkept
    const left = new Map<string, string | null>()
    return {
      delete: id =>
        Effect.gen(function* () {
          const owner = yield* resourceOf(driver, id)
          left.set(id, Option.getOrNull(yield* objectives.get(id, owner)))
          return yield* driver.delete(id)
        }),
      objectives: {
        ...objectives,
        get: (threadId, resourceId) =>
          Effect.map(
            objectives.get(threadId, resourceId),
            Option.map(content => content ?? left.get(threadId) ?? null)
          )
      }
    }
  },
  "deletes the objective with an append": driver => {
    const objectives = driver.objectives ?? unkept
    return {
      append: (id, messages, now) =>
        Effect.gen(function* () {
          const owner = yield* resourceOf(driver, id)
          const present = Option.getOrNull(yield* objectives.get(id, owner))
          if (present !== null) yield* objectives.replace(id, owner, present, null)
          return yield* driver.append(id, messages, now)
        })
    }
  },
  "makes the thread of an objective": driver => {
    const objectives = driver.objectives ?? unkept
    return {
      objectives: {
        ...objectives,
        get: (id, resourceId) =>
          Effect.zipRight(
            driver.open({ id, resourceId, title: null, metadata: null, createdAt: 0, updatedAt: 0 }),
            objectives.get(id, resourceId)
          )
      }
    }
  },
  "touches the thread of an objective": changed(({ replace }, driver) => ({
    replace: (threadId, ...given) =>
      Effect.zipLeft(
        replace(threadId, ...given),
        driver.update(threadId, { title: undefined, metadata: undefined, updatedAt: 3000 })
      )
  })),
  "drops NUL of objectives": changedContent(content => content.replaceAll("\\u0000", "")),
  "cuts long objectives": changed(({ replace }) => ({
    replace: (threadId, resourceId, expected, content) =>
      replace(
        threadId,
        resourceId,
        expected,
        content === null
          ? null
          : JSON.stringify(
              JSON.parse(content, (key, value) => (key === "objective" ? value.slice(0, 65_535) : value))
            )
      )
  })),
  "trims objectives": changedContent(content =>
    JSON.stringify(JSON.parse(content, (_, value) => (typeof value === "string" ? value.trim() : value)))
  ),
  "normalizes objectives": changedContent(content => content.normalize("NFC")),
  "compares resources of objectives without case": driver => {
    const objectives = driver.objectives ?? unkept
    const resources = new Map<string, string>()
    const known = (threadId: string, resourceId: string): string => {
      const owner = resources.get(threadId) ?? resourceId
      return owner.toLowerCase() === resourceId.toLowerCase() ? owner : resourceId
    }
    return {
      open: thread => {
        resources.set(thread.id, thread.resourceId)
        return driver.open(thread)
      },
      objectives: {
        get: (id, resourceId) => objectives.get(id, known(id, resourceId)),
        replace: (id, resourceId, ...given) => objectives.replace(id, known(id, resourceId), ...given)
      }
    }
  }
}
