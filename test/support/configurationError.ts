import { InvalidConfiguration } from "../../src/protocol/Errors.js"

/** What making something refuses; fails when it refuses nothing. */
export const configurationError = (make: () => unknown): InvalidConfiguration => {
  try {
    make()
  } catch (cause) {
    if (cause instanceof InvalidConfiguration) return cause
    throw cause
  }
  throw new Error("Nothing was thrown")
}
