/** Chunks as chat completions and responses of OpenAI, read by its own client. */
import { type Chunk, Conversation } from "eddy"
import { Effect, Either, FastCheck as fc } from "effect"
import OpenAI, { APIError } from "openai"
import { describe, expect, it } from "vitest"
import type { InvalidRequest } from "../../../src/http/mapping/InvalidRequest.js"
import * as OpenAiChat from "../../../src/http/mapping/OpenAiChat.js"
import * as OpenAiChatRequest from "../../../src/http/mapping/OpenAiChatRequest.js"
import * as OpenAiError from "../../../src/http/mapping/OpenAiError.js"
import * as OpenAiResponses from "../../../src/http/mapping/OpenAiResponses.js"
import * as OpenAiResponsesRequest from "../../../src/http/mapping/OpenAiResponsesRequest.js"
import {
  call,
  chunk,
  dataLine,
  done,
  finish,
  mapped,
  reasoning,
  result,
  says,
  sseResponse,
  start,
  stepFinish,
  stepStart,
  streamed,
  tasks,
  text
} from "./kit.js"
import { brokenResponse, untilIdleResponse } from "./randomRuns.js"

type Chunks = ReadonlyArray<Chunk.Chunk>
type Frames = ReadonlyArray<object>

const created = 1_760_000_000

const json = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Response =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } })

const failed = ({ error, headers, status }: OpenAiError.Failure): Response => json(status, { error }, headers)

const whole = (answer: object): Response =>
  "status" in answer && typeof answer.status === "number"
    ? failed(answer as OpenAiError.Failure)
    : json(200, answer)

const eventLine = (frame: object): string =>
  "type" in frame ? `event: ${String(frame.type)}\n${dataLine(frame)}` : dataLine(frame)

/** A server of one function that knows the agent "helper", and what was asked of it. */
const serve = (
  answer: (request: OpenAiChatRequest.OpenAiRequest, count: number) => Chunks,
  change: (frames: Frames) => Frames = frames => frames
) => {
  const asked: Array<OpenAiChatRequest.OpenAiRequest> = []
  const refuse = ({ field, message }: InvalidRequest): Response =>
    failed(OpenAiError.invalidRequest(field, message))
  const chat = (request: OpenAiChatRequest.OpenAiRequest): Response => {
    const options: OpenAiChat.Options = {
      model: request.agentId,
      created,
      clientTools: request.tools.map(({ name }) => name),
      includeUsage: request.includeUsage
    }
    const chunks = answer(request, asked.length)
    if (request.isStream) {
      return sseResponse([": open", ...change(mapped(OpenAiChat.make(options), chunks)).map(dataLine), done])
    }
    const collector = OpenAiChat.collect(options)
    chunks.forEach(collector.push)
    return whole(collector.end())
  }
  const responses = (request: OpenAiChatRequest.OpenAiRequest): Response => {
    const options: OpenAiResponses.Options = {
      model: request.agentId,
      created,
      clientTools: request.tools.map(({ name }) => name)
    }
    const chunks = answer(request, asked.length)
    if (request.isStream) {
      return sseResponse([": open", ...change(mapped(OpenAiResponses.make(options), chunks)).map(eventLine)])
    }
    const collector = OpenAiResponses.collect(options)
    chunks.forEach(collector.push)
    return whole(collector.end())
  }
  const client = new OpenAI({
    apiKey: "none",
    baseURL: "http://kit.test/v1",
    fetch: (url, init) => {
      const body: unknown = JSON.parse(String(init?.body))
      const isChat = String(url).endsWith("/chat/completions")
      const read = isChat ? OpenAiChatRequest.read(body) : OpenAiResponsesRequest.read(body)
      return Promise.resolve(
        Either.match(read, {
          onLeft: refuse,
          onRight: request => {
            if (request.agentId !== "helper") return failed(OpenAiError.modelNotFound(request.agentId))
            asked.push(request)
            return isChat ? chat(request) : responses(request)
          }
        })
      )
    }
  })
  return { client, asked }
}

const user = [{ role: "user" as const, content: "Hi." }]

const chatText = async (client: OpenAI) => {
  const stream = await client.chat.completions.create({ model: "helper", messages: user, stream: true })
  const told = { text: "", reason: "", ids: new Set<string>(), error: undefined as APIError | undefined }
  try {
    for await (const { choices, id } of stream) {
      told.ids.add(id)
      told.text += choices[0]?.delta.content ?? ""
      told.reason = choices[0]?.finish_reason ?? told.reason
    }
  } catch (error) {
    if (!(error instanceof APIError)) throw error
    told.error = error
  }
  return told
}

const errorOf = async (run: () => PromiseLike<unknown>): Promise<APIError> => {
  try {
    await run()
  } catch (error) {
    if (error instanceof APIError) return error
    throw error
  }
  throw new Error("No error")
}

const task = tasks("t1", "c1")

/** A tool of the server, a task of it, and an answer to that in another turn. */
const busy = [
  start(),
  stepStart(),
  ...reasoning("hm"),
  ...text("On it."),
  ...streamed("c1"),
  task.started,
  result("c1", "acknowledged"),
  stepFinish("r1", { calls: ["c1"] }),
  finish(),
  task.completed(3),
  ...says("Three.", "r2")
]

const locate = {
  type: "function" as const,
  function: { name: "locate", description: "Where?", parameters: { type: "object" } }
}

const asksClient = [
  start(),
  stepStart(),
  ...text("One moment."),
  ...streamed("c1", "locate"),
  call("c2", "locate"),
  stepFinish("r1", { calls: ["c1", "c2"], isClients: true }),
  finish("tool-calls", "r1", { stoppedBy: "client-tool" })
]

const waits = [
  start(),
  stepStart(),
  ...text("May I?"),
  call("c1"),
  chunk("tool-call-approval", { toolCallId: "c1", toolName: "work", args: {} }),
  finish("suspended")
]

const fails = [
  start(),
  stepStart(),
  ...text("Hel"),
  chunk("error", { error: new Error("secret") }),
  finish("error")
]

describe("a chat completion", () => {
  it("is text, however many turns, and shows no tool of the server", async () => {
    const { client } = serve(() => busy)
    const streamed = await chatText(client)
    expect(streamed).toMatchObject({ text: "On it.\n\nThree.", reason: "stop", error: undefined })
    expect([...streamed.ids]).toStrictEqual(["chatcmpl-r1"])
    const answer = await client.chat.completions.create({ model: "helper", messages: user })
    expect(answer).toMatchObject({
      id: "chatcmpl-r1",
      object: "chat.completion",
      created,
      model: "helper",
      choices: [{ finish_reason: "stop", message: { role: "assistant", content: "On it.\n\nThree." } }],
      usage: { prompt_tokens: 6, completion_tokens: 4, total_tokens: 10 }
    })
    expect(answer.choices[0]?.message.tool_calls).toBeUndefined()
  })

  it("tells what was used when it is asked to, and never what is not known", async () => {
    const { client } = serve(() => busy)
    const usages: Array<unknown> = []
    const stream = await client.chat.completions.create({
      model: "helper",
      messages: user,
      stream: true,
      stream_options: { include_usage: true }
    })
    for await (const { choices, usage } of stream) if (choices.length === 0) usages.push(usage)
    expect(usages).toStrictEqual([{ prompt_tokens: 6, completion_tokens: 4, total_tokens: 10 }])
    const unknown = mapped(OpenAiChat.make({ model: "helper", created, includeUsage: true }), [
      start(),
      chunk("finish", {
        stepResult: { reason: "stop", isContinued: false },
        output: { text: "", usage: {} },
        metadata: {},
        messages: { all: [], user: [], nonUser: [] },
        response: { messages: [], uiMessages: [] }
      })
    ])
    expect(JSON.stringify(unknown)).not.toContain("usage")
  })

  it("leaves calls of its tools to the client, and takes what they came to", async () => {
    const { asked, client } = serve((_, count) => (count === 1 ? asksClient : says("Bern.", "r2")))
    const runner = client.chat.completions.stream({ model: "helper", messages: user, tools: [locate] })
    const { choices } = await runner.finalChatCompletion()
    const message = choices[0]?.message
    expect(choices[0]?.finish_reason).toBe("tool_calls")
    expect(message?.tool_calls).toMatchObject([
      { id: "c1", type: "function", function: { name: "locate", arguments: '{"n":1}' } },
      { id: "c2", type: "function", function: { name: "locate", arguments: '{"n":1}' } }
    ])
    const answer = await client.chat.completions.create({
      model: "helper",
      tools: [locate],
      messages: [
        { role: "system", content: "Be brief." },
        ...user,
        ...(message === undefined ? [] : [message]),
        { role: "tool", tool_call_id: "c1", content: "Bern" },
        { role: "tool", tool_call_id: "c2", content: [{ type: "text", text: "CH" }] }
      ]
    })
    expect(answer.choices[0]?.message.content).toBe("Bern.")
    expect(asked[1]).toMatchObject({
      instructions: ["Be brief."],
      tools: [{ name: "locate", description: "Where?", inputSchema: { type: "object" } }]
    })
    const prompt = await Effect.runPromise(Conversation.fromInput(asked[1]?.messages ?? []))
    expect(prompt.map(({ role }) => role)).toStrictEqual(["user", "assistant", "tool"])
    expect(prompt[2]).toMatchObject({
      content: [
        { toolCallId: "c1", toolName: "locate", output: { value: "Bern" } },
        { toolCallId: "c2", output: { value: "CH" } }
      ]
    })
  })

  it("that fails, that is aborted and that breaks off is an error, whole or not", async () => {
    const ways: ReadonlyArray<Chunks> = [
      fails,
      [start(), stepStart(), chunk("abort", {}), finish("aborted")],
      [start(), stepStart(), ...text("Hel")],
      []
    ]
    for (const chunks of ways) {
      const { client } = serve(() => chunks)
      const { error } = await chatText(client)
      expect(error).toMatchObject({ type: "server_error" })
      const thrown = await errorOf(() => client.chat.completions.create({ model: "helper", messages: user }))
      expect(thrown.status).toBe(500)
      expect(`${error?.message} ${thrown.message}`).not.toContain("secret")
    }
  })

  it("that would wait for a decision is a conflict", async () => {
    const { asked, client } = serve(() => waits)
    const { error, text } = await chatText(client)
    expect(text).toBe("May I?")
    expect(error).toMatchObject({ code: "run_suspended" })
    const thrown = await errorOf(() => client.chat.completions.create({ model: "helper", messages: user }))
    expect(thrown).toMatchObject({ status: 409, code: "run_suspended" })
    // The client repeats a conflict unless it is told not to, and the run with it.
    expect(asked).toHaveLength(2)
    expect(thrown.message).toContain('"work" (c1)')
  })

  it("says why it ended", async () => {
    const ways = [
      [finish("length"), "length"],
      [finish("tool-calls", "r1", { stoppedBy: "max-steps" }), "length"],
      [finish("content-filter"), "content_filter"],
      [finish("tripwire"), "content_filter"],
      [finish("other"), "stop"]
    ] as const
    for (const [end, reason] of ways) {
      const { client } = serve(() => [...says("Hi.").slice(0, -1), end])
      expect(await chatText(client)).toMatchObject({ text: "Hi.", reason })
    }
  })

  it("of an agent that is not there, or of a body that is none, is refused", async () => {
    const { client } = serve(() => busy)
    const missing = await errorOf(() => client.chat.completions.create({ model: "nobody", messages: user }))
    expect(missing).toMatchObject({ status: 404, code: "model_not_found", param: "model" })
    const several = await errorOf(() =>
      client.chat.completions.create({ model: "helper", messages: user, n: 2 })
    )
    expect(several).toMatchObject({ status: 400, param: "n", type: "invalid_request_error" })
    const empty = await errorOf(() => client.chat.completions.create({ model: "helper", messages: [] }))
    expect(empty).toMatchObject({ status: 400, param: "messages" })
    const mute = [{ role: "system" as const, content: "Obey." }]
    const silent = await errorOf(() => client.chat.completions.create({ model: "helper", messages: mute }))
    expect(silent).toMatchObject({ status: 400, param: "messages" })
  })

  it("reads files and settings", () => {
    const request = OpenAiChatRequest.read({
      model: "helper",
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "Look." },
            { type: "image_url", image_url: { url: "data:image/png;base64,AQI=" } },
            { type: "input_audio", input_audio: { data: "AQI=", format: "wav" } },
            { type: "file", file: { file_data: "data:application/pdf;base64,AQI=", filename: "a.pdf" } }
          ]
        }
      ],
      max_tokens: 5,
      temperature: 0,
      stop: "END",
      tool_choice: { type: "function", function: { name: "locate" } }
    })
    expect(Either.getOrThrow(request)).toMatchObject({
      messages: [
        {
          content: [
            { type: "text" },
            { mediaType: "image/png" },
            { mediaType: "audio/wav" },
            { mediaType: "application/pdf", filename: "a.pdf" }
          ]
        }
      ],
      settings: { maxOutputTokens: 5, temperature: 0, stopSequences: ["END"] },
      toolChoice: { type: "tool", toolName: "locate" }
    })
  })
})

describe("a response", () => {
  it("is text, as a stream of numbered events and whole", async () => {
    const { client } = serve(() => busy)
    const numbers: Array<number> = []
    const runner = client.responses.stream({ model: "helper", input: "Hi." })
    runner.on("event", event => void numbers.push(event.sequence_number))
    const final = await runner.finalResponse()
    expect(numbers).toStrictEqual(numbers.map((_, index) => index))
    expect(final).toMatchObject({ id: "resp_r1", status: "completed", output_text: "On it.\n\nThree." })
    const answer = await client.responses.create({ model: "helper", input: "Hi." })
    expect(answer.output).toStrictEqual(JSON.parse(JSON.stringify(answer.output)))
    expect(answer).toMatchObject({
      object: "response",
      created_at: created,
      model: "helper",
      output_text: "On it.\n\nThree.",
      output: [{ type: "message", role: "assistant", status: "completed" }],
      usage: { input_tokens: 6, output_tokens: 4, total_tokens: 10 }
    })
  })

  it("leaves calls of its tools to the client, and takes what they came to", async () => {
    const { asked, client } = serve((_, count) => (count === 1 ? asksClient : says("Bern.", "r2")))
    const tools = [
      { type: "function" as const, name: "locate", parameters: { type: "object" }, strict: false }
    ]
    const runner = client.responses.stream({
      model: "helper",
      input: "Where?",
      tools,
      instructions: "Be brief."
    })
    const { output } = await runner.finalResponse()
    expect(output).toMatchObject([
      { type: "message", content: [{ text: "One moment." }] },
      { type: "function_call", call_id: "c1", name: "locate", arguments: '{"n":1}', status: "completed" },
      { type: "function_call", call_id: "c2", name: "locate", arguments: '{"n":1}', status: "completed" }
    ])
    const calls = output.flatMap(item => (item.type === "function_call" ? [item] : []))
    const answer = await client.responses.create({
      model: "helper",
      tools,
      input: [
        { role: "user", content: "Where?" },
        ...calls.map(({ arguments: text, call_id, name }) => ({
          type: "function_call" as const,
          arguments: text,
          call_id,
          name
        })),
        ...calls.map(({ call_id }) => ({ type: "function_call_output" as const, call_id, output: "Bern" }))
      ]
    })
    expect(answer.output_text).toBe("Bern.")
    expect(asked[0]?.instructions).toStrictEqual(["Be brief."])
    const prompt = await Effect.runPromise(Conversation.fromInput(asked[1]?.messages ?? []))
    const results = prompt.flatMap(({ content, role }) => (role === "tool" ? content : []))
    expect(results).toMatchObject([
      { toolCallId: "c1", toolName: "locate", output: { value: "Bern" } },
      { toolCallId: "c2", toolName: "locate", output: { value: "Bern" } }
    ])
  })

  it("that fails says so in its last event, and never completes", async () => {
    const ways: ReadonlyArray<readonly [Chunks, string, number]> = [
      [fails, "server_error", 500],
      [[start(), stepStart(), ...text("Hel")], "server_error", 500],
      [waits, "run_suspended", 409]
    ]
    for (const [chunks, code, status] of ways) {
      const { client } = serve(() => chunks)
      const final = await client.responses.stream({ model: "helper", input: "Hi." }).finalResponse()
      expect(final).toMatchObject({ status: "failed", error: { code } })
      const thrown = await errorOf(() => client.responses.create({ model: "helper", input: "Hi." }))
      expect(thrown.status).toBe(status)
      expect(`${JSON.stringify(final)} ${thrown.message}`).not.toContain("secret")
    }
  })

  it("that was cut off is incomplete", async () => {
    const { client } = serve(() => [...says("Hi.").slice(0, -1), finish("length")])
    const answer = await client.responses.create({ model: "helper", input: "Hi." })
    expect(answer).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" }
    })
  })

  it("goes on with nothing that is not in the request", async () => {
    const { client } = serve(() => busy)
    for (const more of [{ previous_response_id: "resp_1" }, { conversation: "c" }]) {
      const thrown = await errorOf(() => client.responses.create({ model: "helper", input: "Hi.", ...more }))
      expect(thrown).toMatchObject({ status: 400, param: Object.keys(more)[0] })
    }
  })
})

describe("random responses", () => {
  const options = { model: "helper", created }
  const squeezed = (said: string): string => said.replaceAll("\n\n", "")

  it("are read by the client in every way", async () => {
    await fc.assert(
      fc.asyncProperty(untilIdleResponse, async ({ chunks, way }) => {
        const { client } = serve(() => chunks)
        const isAnswered = way === "stop" || way === "tripwire"
        const said = chunks.flatMap(one => (one.type === "text-delta" ? [one.payload.text] : [])).join("")
        const streamed = await chatText(client)
        expect(streamed.error === undefined).toBe(isAnswered)
        expect(squeezed(streamed.text)).toBe(said)
        const final = await client.responses.stream({ model: "helper", input: "Hi." }).finalResponse()
        expect(final.status === "failed").toBe(!isAnswered)
        expect(squeezed(final.output_text)).toBe(said)
        const frames = JSON.stringify([
          mapped(OpenAiChat.make(options), chunks),
          mapped(OpenAiResponses.make(options), chunks)
        ])
        expect(frames).not.toContain("secret")
        expect(frames).not.toContain('"tool_calls"')
      }),
      { numRuns: 40 }
    )
  })

  it("are read when they are broken, too", async () => {
    await fc.assert(
      fc.asyncProperty(brokenResponse, async chunks => {
        const { client } = serve(() => chunks)
        await chatText(client)
        await client.responses.stream({ model: "helper", input: "Hi." }).finalResponse()
      }),
      { numRuns: 40 }
    )
  })
})

describe("the checks notice", () => {
  const isType = (frame: object, type: string): boolean => "type" in frame && frame.type === type
  const without = (type: string) => (frames: Frames) => frames.filter(frame => !isType(frame, type))
  const mutations: Readonly<Record<string, (frames: Frames) => Frames>> = {
    "the beginning is missing": without("response.created"),
    "an item is not opened": without("response.output_item.added"),
    "a part is not opened": without("response.content_part.added"),
    "the text is missing": frames =>
      frames.filter(
        frame => !/text\.|part\.done|item\.done|completed/.test("type" in frame ? String(frame.type) : "")
      ),
    "the end is missing": without("response.completed")
  }

  for (const [name, mutate] of Object.entries(mutations)) {
    it(`of a response that ${name}`, async () => {
      const { client } = serve(() => busy, mutate)
      const read = async () => {
        const { output_text, status } = await client.responses
          .stream({ model: "helper", input: "Hi." })
          .finalResponse()
        return { output_text, status }
      }
      const whole = { output_text: "On it.\n\nThree.", status: "completed" }
      await expect(read().then(told => expect(told).toStrictEqual(whole))).rejects.toThrow()
    })
  }

  it("of a chat completion whose end is missing or whose text has another name", async () => {
    const cut = serve(
      () => busy,
      frames => frames.slice(0, -1)
    )
    expect((await chatText(cut.client)).reason).toBe("")
    const renamed = serve(
      () => busy,
      frames => JSON.parse(JSON.stringify(frames).replaceAll('"content"', '"contents"'))
    )
    expect((await chatText(renamed.client)).text).toBe("")
  })
})
