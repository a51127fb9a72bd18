/** How models are told what their answer is to be: the AI SDK by its option, `@effect/ai` in the prompt. */
import { createOpenAI } from "@ai-sdk/openai"
import { describe, expect, it } from "@effect/vitest"
import { Agent } from "eddy"
import { EffectAi } from "eddy/effect-ai"
import { Agent as PromiseAgent } from "eddy/promise"
import { Effect } from "effect"
import { z } from "zod"
import { ends, oneByOne, serviceOf, text } from "./effectAiKit.js"

const schema = z.object({ a: z.number().optional(), b: z.array(z.object({ c: z.string().default("x") })) })

describe("the format of an answer", () => {
  it("reaches a provider package, closed as strict providers want it", async () => {
    const bodies: Array<unknown> = []
    const openai = createOpenAI({
      apiKey: "none",
      fetch: async (_, init) => {
        bodies.push(JSON.parse(String(init?.body)))
        return new Response("{}", { status: 400 })
      }
    })
    for (const model of [openai.chat("gpt-4o"), openai.responses("gpt-5")]) {
      const agent = new PromiseAgent({ id: "a", model })
      const output = await agent.stream("go", { structuredOutput: { schema }, onError: () => undefined })
      await output.getFullOutput()
      expect(output.status).toBe("failed")
    }
    const expected = {
      type: "object",
      properties: {
        a: { type: "number" },
        b: {
          type: "array",
          items: {
            type: "object",
            properties: { c: { type: "string", default: "x" } },
            additionalProperties: false
          }
        }
      },
      required: ["b"],
      additionalProperties: false
    }
    expect(bodies).toMatchObject([
      { response_format: { type: "json_schema", json_schema: { schema: expected } } },
      { text: { format: { type: "json_schema", schema: expected } } }
    ])
  })

  it.effect("stands in the prompt where a request has no place for it", () =>
    Effect.gen(function* () {
      const answer = oneByOne(...text('{"b":', "[]}"), ends())
      const { requests, service } = yield* serviceOf(answer)
      const agent = Agent.make({ id: "a", instructions: "Be brief.", model: EffectAi.fromService(service) })
      const { object } = yield* Agent.generate(agent, "go", { structuredOutput: { schema } })
      expect(object).toEqual({ b: [] })
      const roles = requests[0]?.prompt.content.map(({ role }) => role)
      expect(roles).toEqual(["system", "system", "user"])
      expect(JSON.stringify(requests[0]?.prompt)).toContain("must match this JSON Schema")
    })
  )
})
