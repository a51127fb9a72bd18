/** Options, as whoever hands them over wrote them. */
import { InvalidConfiguration } from "./Errors.js"

/** Refuses an option that nothing reads: a misspelt one would be ignored in silence. Throws `InvalidConfiguration`. */
export const refuseUnknown = (what: string, options: object, known: ReadonlyArray<string>): void => {
  for (const field of Object.keys(options)) {
    if (known.includes(field)) continue
    throw new InvalidConfiguration({
      field,
      message: `${what} has no option \`${field}\`. Known options: ${known.join(", ")}.`
    })
  }
}

/** Something that has an id, and the option that it was given as. */
export type Listed = readonly [field: string, value: { readonly id: string }]

/**
 * Throws `InvalidConfiguration` when two different values share an id: what is stored is found by the id, and they would go on with
 * each other's runs and tasks. One that is listed several times is no conflict.
 */
export const refuseSharedIds = (kind: "agents" | "workflows", listed: Iterable<Listed>): void => {
  const known = new Map<string, Listed>()
  for (const [field, value] of listed) {
    const [other, first] = known.get(value.id) ?? [field, value]
    known.set(value.id, [other, first])
    if (first === value) continue
    throw new InvalidConfiguration({
      field,
      message: `\`${other}\` and \`${field}\` are different ${kind} with the same id "${value.id}": each would go on with the stored runs and tasks of the other. Give each its own \`id\`.`
    })
  }
}
