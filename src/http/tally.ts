/** Counts what is there, of everybody and of each. Plain code. */

/** How many there may be. */
interface Most {
  readonly total: number
  /** Of one; nobody is not one. */
  readonly each: number
}

export class Tally {
  private readonly counts = new Map<string, number>()
  private total = 0

  constructor(private readonly most: Most) {}

  get size(): number {
    return this.total
  }

  /** Whose bound one more would break. */
  full(who: string | undefined): "all" | "own" | undefined {
    if (this.total >= this.most.total) return "all"
    return who !== undefined && (this.counts.get(who) ?? 0) >= this.most.each ? "own" : undefined
  }

  add(who: string | undefined): void {
    this.total++
    if (who !== undefined) this.counts.set(who, (this.counts.get(who) ?? 0) + 1)
  }

  remove(who: string | undefined): void {
    this.total--
    if (who === undefined) return
    const left = (this.counts.get(who) ?? 1) - 1
    if (left > 0) this.counts.set(who, left)
    else this.counts.delete(who)
  }
}
