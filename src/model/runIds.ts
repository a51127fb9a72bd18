/**
 * Ids within one run. A provider that calls every block "0" does not get away with it: the second "0" of a run becomes
 * "0:2".
 */

/** An id or a name of a provider's; `undefined` for a blank one, which some send where they have none. */
export const unlessBlank = (text: string | undefined): string | undefined =>
  text === undefined || text.trim() === "" ? undefined : text

/** A call whose result the provider owes. */
interface OwedCall {
  readonly id: string
  readonly toolName: string
}

/** Hands out ids that are unique in a run and as near to the wanted ones as can be. */
export class RunIds {
  private readonly taken = new Map<string, number>()
  private sinceMark: Array<string> = []
  private owing: Map<string, OwedCall> | undefined

  /** Calls that the provider executes and has not told the result of, by the id that it uses: a later answer may tell it. */
  get owed(): Map<string, OwedCall> {
    this.owing ??= new Map()
    return this.owing
  }

  /** No result of this call is waited for. */
  disown(id: string): void {
    for (const [sourceId, owed] of this.owing ?? []) if (owed.id === id) this.owed.delete(sourceId)
  }

  unique(wanted: string): string {
    const { taken } = this
    const count = (taken.get(wanted) ?? 0) + 1
    taken.set(wanted, count)
    if (this.sinceMark.length === 0) this.sinceMark = [wanted]
    else this.sinceMark.push(wanted)
    if (count === 1) return wanted
    const candidate = `${wanted}:${count}`
    return this.unique(taken.has(candidate) ? wanted : candidate)
  }

  /** What is taken from here on may be given back. */
  mark(): void {
    this.sinceMark = []
  }

  /** Gives back what was taken since {@link mark}: nobody has seen it. */
  rollBack(): void {
    for (const id of this.sinceMark) {
      const count = this.taken.get(id) ?? 0
      if (count > 1) this.taken.set(id, count - 1)
      else this.taken.delete(id)
    }
    this.sinceMark = []
  }
}

export const make = (): RunIds => new RunIds()
