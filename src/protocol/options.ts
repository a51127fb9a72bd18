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
