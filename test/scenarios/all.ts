/** Every scenario that is replayed, in the order of its number. */
import { content } from "./content.js"
import { failures } from "./failures.js"
import { readers } from "./readers.js"
import type { Scenario } from "./scenario.js"
import { toolCalls } from "./toolCalls.js"

export const scenarios: ReadonlyArray<Scenario> = [...content, ...toolCalls, ...failures, ...readers].sort(
  (left, right) => (left.id < right.id ? -1 : 1)
)
