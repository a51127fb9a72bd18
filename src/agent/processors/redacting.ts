/**
 * Redacts a text that comes in pieces, wherever it is cut: what comes out is what the whole text would give. Holds back no more
 * than the end of a text that may be the beginning of something. Pure.
 */
import type { Finder, Stretch } from "./personalData.js"

/** What is said instead of a stretch of a kind. */
export type Replace = (kind: string, found: string) => string

/** Characters that a pattern may look back at, behind what is settled. */
const context = 64

const earliest = (
  finders: ReadonlyArray<Finder>,
  text: string,
  from: number
): { readonly kind: string; readonly stretch: Stretch } | undefined => {
  let found: { readonly kind: string; readonly stretch: Stretch } | undefined
  for (const { find, kind } of finders) {
    const stretch = find(text, from)
    if (stretch !== undefined && (found === undefined || stretch.start < found.stretch.start)) {
      found = { kind, stretch }
    }
  }
  return found
}

/** Up to where a text is settled, whatever follows. */
const settledOf = (finders: ReadonlyArray<Finder>, text: string): number => {
  const end = finders.reduce((least, { tail }) => Math.min(least, tail(text)), text.length)
  // Between the halves of a surrogate pair nothing ends.
  const unit = text.charCodeAt(end)
  return end > 0 && unit >= 0xdc00 && unit <= 0xdfff ? end - 1 : end
}

export class Redacting {
  /** What was settled last, as it was said. */
  private before = ""
  private pending = ""

  constructor(
    private readonly finders: ReadonlyArray<Finder>,
    private readonly replace: Replace
  ) {}

  /** The next piece; gives what may be told. */
  push(piece: string): string {
    this.pending += piece
    return this.settle(false)
  }

  /** The text is over; gives what was held back. */
  end(): string {
    return this.settle(true)
  }

  private settle(isEnd: boolean): string {
    const { before, finders, replace } = this
    const text = before + this.pending
    const settled = isEnd ? text.length : settledOf(finders, text)
    let place = before.length
    let told = ""
    while (place < settled) {
      const found = earliest(finders, text, place)
      if (found === undefined || found.stretch.start >= settled) {
        told += text.slice(place, settled)
        place = settled
      } else {
        const { end, start } = found.stretch
        told += text.slice(place, start) + replace(found.kind, text.slice(start, end))
        place = end
      }
    }
    this.before = text.slice(Math.max(0, place - context), place)
    this.pending = text.slice(place)
    return told
  }
}

/** The whole text, redacted. */
export const redacted = (finders: ReadonlyArray<Finder>, replace: Replace, text: string): string => {
  const redacting = new Redacting(finders, replace)
  return redacting.push(text) + redacting.end()
}
