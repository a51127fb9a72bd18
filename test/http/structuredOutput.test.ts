/** Values that clients ask for: by the routes of agents, `@mastra/client-js` and the helpers of `openai`, over loopback. */
import { createTool } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import OpenAI from "openai"
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod"
import { describe, expect, it } from "vitest"
import { z } from "zod"
import { clientOf, isInstalled, read } from "./clientKit.js"
import { faces } from "./facesKit.js"
import { agentWith, calling, chunksOf, post, saying, served } from "./kit.js"

const { finish } = ScriptedModel

const Person = z.object({ name: z.string(), born: z.number() })

const schema = {
  type: "object",
  properties: { name: { type: "string" }, born: { type: "number" } },
  required: ["name", "born"],
  additionalProperties: false
}

const ada = { name: "Ada", born: 1815 }

const answer = saying(JSON.stringify(ada))

const growing: ScriptedModel.Turn = [
  { type: "text-delta", id: "0", delta: '{ "name": "Ada",' },
  { type: "text-delta", id: "0", delta: ' "born": 1815 }' },
  finish("stop")
]

const wrong = saying('{ "name": 1 }')

const allowed = ["structuredOutput"] as const

const issuesOf = async (
  response: Response
): Promise<readonly [status: number, field: string | undefined]> => {
  const said: { readonly issues?: ReadonlyArray<{ readonly field: string }> } = JSON.parse(
    await response.text()
  )
  return [response.status, said.issues?.[0]?.field]
}

describe.each(faces)("structured output, served with %s", (_, serve) => {
  it("is an object beside the text, and its growth in a stream", async () => {
    const { api, model } = await serve([answer, growing], allowed)
    const path = `${api}/agents/helper`
    const structuredOutput = { schema }
    const whole = await post(`${path}/generate`, { messages: "Who?", structuredOutput })
    expect(await whole.json()).toMatchObject({ object: ada, text: JSON.stringify(ada) })
    expect(model.requests[0]?.responseFormat).toEqual({ type: "json", schema })
    const response = await post(`${path}/stream`, { messages: "Who?", structuredOutput })
    const objects = chunksOf(await response.text()).flatMap(chunk =>
      chunk.type === "object" && "object" in chunk ? [chunk.object] : []
    )
    expect(objects.at(0)).toEqual({ name: "Ada" })
    expect(objects.at(-1)).toEqual(ada)
  })

  it("says what is wrong with a value, or gives what the client has in its place", async () => {
    const { api } = await serve([wrong, wrong, wrong, wrong], allowed)
    const path = `${api}/agents/helper`
    const ask = (more: object) => ({ messages: "Who?", structuredOutput: { schema, ...more } })
    const refused = await post(`${path}/generate`, ask({}))
    expect([refused.status, await refused.json()]).toMatchObject([
      424,
      { error: "The answer has no valid value.", issues: [{ field: "structuredOutput" }] }
    ])
    const warned = await post(`${path}/generate`, ask({ errorStrategy: "warn" }))
    expect(warned.status).toBe(200)
    expect(await warned.json()).not.toHaveProperty("object")
    const fallback = await post(`${path}/generate`, ask({ errorStrategy: "fallback", fallbackValue: ada }))
    expect(await fallback.json()).toMatchObject({ object: ada })
    const streamed = chunksOf(await (await post(`${path}/stream`, ask({}))).text())
    expect(streamed.at(-1)?.payload["output"]).toMatchObject({
      objectError: { name: "StructuredOutputError" }
    })
  })

  it("is refused by field", async () => {
    const { api } = await serve([], allowed)
    const refused = async (structuredOutput: unknown) =>
      issuesOf(await post(`${api}/agents/helper/generate`, { messages: "Who?", structuredOutput }))
    expect(await refused("text")).toEqual([400, "structuredOutput"])
    expect(await refused({})).toEqual([400, "structuredOutput.schema"])
    expect(await refused({ schema: { type: "nothing" } })).toEqual([400, "structuredOutput.schema"])
    expect(await refused({ schema: { $ref: "https://example.com" } })).toEqual([
      400,
      "structuredOutput.schema"
    ])
    expect(await refused({ schema, model: "openai/gpt-5" })).toEqual([400, "structuredOutput.model"])
    expect(await refused({ schema, instructions: "Lie." })).toEqual([400, "structuredOutput.instructions"])
    expect(await refused({ schema, errorStrategy: "none" })).toEqual([400, "structuredOutput.errorStrategy"])
    const closed = await serve([], [])
    const response = await post(`${closed.api}/agents/helper/generate`, {
      messages: "Who?",
      structuredOutput: { schema }
    })
    expect(await issuesOf(response)).toEqual([400, "structuredOutput"])
  })

  it("is what the helpers of openai parse", async () => {
    const { api, model } = await serve([answer, growing, answer, growing], allowed)
    const client = new OpenAI({ baseURL: `${api}/v1`, apiKey: "none" })
    const messages = [{ role: "user" as const, content: "Who?" }]
    const chat = { model: "helper", messages, response_format: zodResponseFormat(Person, "person") }
    const parsed = await client.chat.completions.parse(chat)
    expect(parsed.choices[0]?.message.parsed).toEqual(ada)
    expect(model.requests[0]?.responseFormat).toMatchObject({ type: "json", schema: { type: "object" } })
    const streamed = await client.chat.completions.stream(chat).finalChatCompletion()
    expect(streamed.choices[0]?.message.parsed).toEqual(ada)
    const responding = { model: "helper", input: "Who?", text: { format: zodTextFormat(Person, "person") } }
    expect((await client.responses.parse(responding)).output_parsed).toEqual(ada)
    expect((await client.responses.stream(responding).finalResponse()).output_parsed).toEqual(ada)
  })

  it("is any object for clients of openai that have no schema, and text when it is not valid", async () => {
    const { api, model } = await serve([answer, saying("No.")], allowed)
    const client = new OpenAI({ baseURL: `${api}/v1`, apiKey: "none" })
    const messages = [{ role: "user" as const, content: "Who?" }]
    const create = (type: "json_object" | "text") =>
      client.chat.completions.create({ model: "helper", messages, response_format: { type } })
    const { choices } = await create("json_object")
    expect(JSON.parse(choices[0]?.message.content ?? "")).toEqual(ada)
    expect(model.requests[0]?.responseFormat).toBeUndefined()
    expect(JSON.stringify(model.requests[0]?.messages)).toContain("JSON")
    expect((await create("json_object")).choices[0]?.message.content).toBe("No.")
  })

  it("is refused by the fields of openai", async () => {
    const { api } = await serve([], allowed)
    const list = { name: "list", schema: { type: "array", items: { type: "string" } } }
    const ask = (url: string, format: object) => {
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" })
      return client.post("/chat/completions", {
        body: { model: "helper", messages: [{ role: "user", content: "Who?" }], response_format: format }
      })
    }
    const at = { status: 400, param: "response_format" }
    await expect(ask(api, { type: "json_schema", json_schema: list })).rejects.toMatchObject(at)
    const closed = await serve([], [])
    await expect(ask(closed.api, { type: "json_object" })).rejects.toMatchObject(at)
    const responses = new OpenAI({ baseURL: `${closed.api}/v1`, apiKey: "none" }).responses
    const text = { format: { type: "json_object" as const } }
    await expect(responses.create({ model: "helper", input: "Who?", text })).rejects.toMatchObject({
      status: 400,
      param: "text.format"
    })
  })

  it.skipIf(!isInstalled)("is what @mastra/client-js gives, unmodified", async () => {
    const { url } = await serve([answer, growing], allowed)
    const agent = (await clientOf(url)).getAgent("helper")
    const options = { structuredOutput: { schema: Person } }
    expect(await agent.generate("Who?", options)).toMatchObject({ object: ada })
    const chunks = await read(await agent.stream("Who?", options))
    expect(chunks.findLast(({ type }) => type === "object")).toMatchObject({ object: ada })
    expect(chunks.at(-1)?.payload["output"]).toMatchObject({ object: ada })
  })
})

it("a value is asked for again with a decision, and is missed there too", async () => {
  const pay = createTool({ id: "pay", requireApproval: true, execute: async () => "paid" })
  const turns = [calling("pay"), answer, calling("pay"), wrong]
  const { api } = await served({ helper: agentWith(turns, { tools: { pay } }) }, { clientOptions: allowed })
  const structuredOutput = { schema }
  const decide = async () => {
    const path = `${api}/agents/helper`
    const first = chunksOf(
      await (await post(`${path}/stream`, { messages: "Pay.", structuredOutput })).text()
    )
    const call = { runId: first[0]?.runId, toolCallId: "c1", structuredOutput }
    return post(`${path}/approve-tool-call-generate`, call)
  }
  expect(await (await decide()).json()).toMatchObject({ object: ada })
  expect(await issuesOf(await decide())).toEqual([424, "structuredOutput"])
})
