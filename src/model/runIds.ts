/**
 * Ids within one run. A provider that calls every block "0" does not get away with it: the second "0" of a run becomes
 * "0:2".
 */

/** Hands out ids that are unique in a run and as near to the wanted ones as can be. */
export interface RunIds {
  readonly unique: (wanted: string) => string
  /** Calls that the provider executes and has not told the result of, by the id that it uses: a later answer may tell it. */
  readonly owed: Map<string, string>
  /** What is taken from here on may be given back. */
  readonly mark: () => void
  /** Gives back what was taken since {@link mark}: nobody has seen it. */
  readonly rollBack: () => void
}

export const make = (): RunIds => {
  const taken = new Map<string, number>()
  let sinceMark: Array<string> = []
  const unique = (wanted: string): string => {
    const count = (taken.get(wanted) ?? 0) + 1
    taken.set(wanted, count)
    sinceMark.push(wanted)
    if (count === 1) return wanted
    const candidate = `${wanted}:${count}`
    return taken.has(candidate) ? unique(wanted) : unique(candidate)
  }
  const giveBack = (id: string): void => {
    const count = taken.get(id) ?? 0
    if (count > 1) taken.set(id, count - 1)
    else taken.delete(id)
  }
  return {
    unique,
    owed: new Map(),
    mark: () => {
      sinceMark = []
    },
    rollBack: () => {
      sinceMark.forEach(giveBack)
      sinceMark = []
    }
  }
}
