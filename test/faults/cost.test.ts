/** What long answers cost: work that grows with the answer, and not with its square. */
import { Agent } from "eddy/promise"
import { describe, expect, it } from "vitest"
import { refuseUnhandledRejections } from "../support/readers.js"
import * as Kit from "./kit.js"

refuseUnhandledRejections()

/** Milliseconds of this process, whatever else the machine does, for three runs at once of this answer. */
const timeOf = async (parts: ReadonlyArray<Kit.Part>): Promise<number> => {
  const begun = process.cpuUsage()
  await Promise.all(
    [1, 2, 3].map(async () => {
      const { model } = Kit.played(call => (call === 0 ? [...parts, Kit.finish()] : [Kit.finish()]))
      const output = await new Agent({ id: "long", model }).stream("go")
      let read = 0
      for await (const chunk of output.fullStream) if (chunk.type.endsWith("-delta")) read++
      const { reasoning = "", text, toolCalls } = await output.getFullOutput()
      const written = toolCalls.map(({ payload }) => String(payload.args?.["text"]))
      expect(read).toBeGreaterThan(6000)
      // What stands around the arguments is no letter of theirs.
      expect([text, reasoning, ...written].join("").length).toBeGreaterThanOrEqual((read - 2) * 9)
    })
  )
  return process.cpuUsage(begun).user / 1000
}

/** The fastest of some: a collection of garbage may fall into any of them. */
const bestOf = async (parts: ReadonlyArray<Kit.Part>): Promise<number> => {
  const times: Array<number> = []
  for (let time = 0; time < 3; time++) times.push(await timeOf(parts))
  return Math.min(...times)
}

const answers: ReadonlyArray<readonly [what: string, answer: (deltas: number) => ReadonlyArray<Kit.Part>]> = [
  ["text", deltas => Array.from({ length: deltas }, () => Kit.says("9 letters"))],
  [
    "two blocks that take turns",
    deltas => Array.from({ length: deltas }, (_, index) => Kit.says("9 letters", String(index % 2)))
  ],
  [
    "reasoning and text that take turns",
    deltas =>
      Array.from({ length: deltas }, (_, index) =>
        index % 2 === 0 ? Kit.thinks("9 letters") : Kit.says("9 letters")
      )
  ],
  [
    "arguments",
    deltas => [
      ...Kit.writes("c", "write", '{"text":"', ...Array.from({ length: deltas }, () => "9 letters"), '"}'),
      Kit.written("c")
    ]
  ]
]

/** Work that grows with the answer takes four times as long, work that grows with its square sixteen times. */
describe("an answer of four times as many deltas takes far less than sixteen times as long", () => {
  it.each(answers)("%s", async (_, answer) => {
    await timeOf(answer(6500))
    const once = await bestOf(answer(6500))
    const fourTimes = await bestOf(answer(26_000))
    expect(fourTimes / once).toBeLessThan(8)
  })
})
