/**
 * Where ids come from. A `Context.Reference`: it works without being provided, and a test provides a counter.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"

/** What an id names; it becomes the id's prefix. @since 0.1.0 @category models */
export type IdKind = "run" | "message" | "call" | "source" | "task" | "owner"

/** An engine keeps a UUID as the twenty pieces that it was made of, until somebody looks into it. */
const whole = (id: string): string => {
  id.at(0)
  return id
}

/**
 * Makes ids that are unique across processes: the kind, a hyphen and a random UUID.
 *
 * @since 0.1.0
 * @category references
 */
export class IdGenerator extends Context.Reference<IdGenerator>()("eddy/IdGenerator", {
  defaultValue: (): { readonly next: (kind: IdKind) => string } => ({
    next: kind => whole(`${kind}-${crypto.randomUUID()}`)
  })
}) {}

/** Counts from 1 per kind: `run-1`, `run-2`, `message-1`. For tests. @since 0.1.0 @category layers */
export const layerSequential: Layer.Layer<never> = Layer.sync(IdGenerator, () => {
  const counts = new Map<IdKind, number>()
  return {
    next: kind => {
      const count = (counts.get(kind) ?? 0) + 1
      counts.set(kind, count)
      return `${kind}-${count}`
    }
  }
})
