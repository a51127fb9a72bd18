/** What a tool of a test fails with. */
import { Data } from "effect"

export class Broken extends Data.TaggedError("Broken")<{ readonly message: string }> {}
