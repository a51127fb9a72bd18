/** Ids under which clients decide. */
import { FastCheck as fc } from "effect"
import { expect, it } from "vitest"
import { decisionId, readDecisionId } from "../../../src/http/mapping/decisionId.js"

it("names run and call, and is read again whatever they are called", () => {
  const id = fc.oneof(
    fc.string({ minLength: 1 }),
    fc.stringOf(fc.constantFrom(":", "%", "3", "A", "a"), { minLength: 1 })
  )
  fc.assert(
    fc.property(id, id, (runId, toolCallId) => {
      expect(readDecisionId(decisionId(runId, toolCallId))).toStrictEqual({ runId, toolCallId })
    })
  )
})

it("stays as it is for the ids that there are", () => {
  expect(decisionId("run-1", "functions.work:0")).toBe("run-1::functions.work:0")
})
