/** Stores that fail, hang, or do what they are asked and fail all the same, when a test says so. */
import { Errors } from "eddy"
import { Effect } from "effect"
import type { Stores } from "./kit.js"

export type Fault = "fails" | "hangs" | "dies" | "loses its answer"

type Operation = Exclude<keyof Stores["tasks"], never>

export interface Faulty extends Stores {
  /** What is wrong with which operation from now on; `all` with every one. */
  readonly faults: Map<Operation | "all", Fault>
  /** What was asked, with a fault or without. */
  readonly asked: Array<Operation>
}

const failure = (operation: string) => new Errors.StorageError({ operation, message: `${operation} failed` })

/** A store with faults over a store that has none. */
export const faulty = (shared: Stores): Faulty => {
  const faults: Faulty["faults"] = new Map()
  const asked: Faulty["asked"] = []
  const ask = <A>(operation: Operation, done: Effect.Effect<A, Errors.StorageError>) =>
    Effect.suspend(() => {
      asked.push(operation)
      const fault = faults.get(operation) ?? faults.get("all")
      if (fault === undefined) return done
      if (fault === "fails") return Effect.fail(failure(operation))
      if (fault === "dies") return Effect.die(new Error(`${operation} died`))
      if (fault === "hangs") return Effect.never
      return Effect.zipRight(done, Effect.fail(failure(operation)))
    })
  const { tasks } = shared
  return {
    faults,
    asked,
    threads: shared.threads,
    tasks: {
      create: (task, owner) => ask("create", tasks.create(task, owner)),
      update: (id, expected, change) => ask("update", tasks.update(id, expected, change)),
      get: id => ask("get", tasks.get(id)),
      list: options => ask("list", tasks.list(options)),
      places: ids => ask("places", tasks.places(ids)),
      delivered: id => ask("delivered", tasks.delivered(id)),
      owned: owner => ask("owned", tasks.owned(owner)),
      deleteSettled: (statuses, age) => ask("deleteSettled", tasks.deleteSettled(statuses, age)),
      renewLease: (owner, duration) => ask("renewLease", tasks.renewLease(owner, duration)),
      dropLease: owner => ask("dropLease", tasks.dropLease(owner)),
      inherit: heir => ask("inherit", tasks.inherit(heir))
    }
  }
}
