import { Agent } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { expect, it } from "vitest"
import { collect, delta, finish, flush } from "../support/readers.js"
it("kept log: a text loop behind much reasoning ends", async () => {
  for (let count = 60; count < 140; count++) {
    const model = ScriptedModel.make([[
      ...Array.from({ length: count }, (_, i) => ({ type: "reasoning-delta" as const, id: "r", delta: `${i}` })),
      delta("a", "x"), finish("stop")]])
    const output = await new Agent({ id: "a", model }).stream("x")
    await flush(20)
    const r = await Promise.race([collect(output.textStream), new Promise(r => setTimeout(() => r("hang"), 200))])
    if (r === "hang") { console.log("HANG at", count); await output.cancel() } else expect(r).toEqual(["x"])
  }
}, 60000)
