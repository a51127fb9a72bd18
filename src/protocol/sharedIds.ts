/** What is stored of an agent or a workflow is found by its id: two of one id would go on with each other's runs and tasks. */
import { InvalidConfiguration } from "./Errors.js"

/** Something that has an id, and the option that it was given as. */
export type Listed = readonly [field: string, value: { readonly id: string }]

/** Throws `InvalidConfiguration` when two different values share an id. One that is listed several times is no conflict. */
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
