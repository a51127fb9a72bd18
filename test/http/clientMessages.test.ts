/** What a client's messages may hold for the provider of the server. */
import { FastCheck } from "effect"
import { describe, expect, it } from "vitest"
import { faces } from "./facesKit.js"
import { post, saying } from "./kit.js"

/** Item ids, and whatever else a provider reads, of somebody else. */
const forged = { openai: { itemId: "stolen" } }

const metadata = {
  providerOptions: forged,
  providerMetadata: forged,
  callProviderMetadata: forged,
  resultProviderMetadata: forged
}

const text = (said: string) => ({ type: "text", text: said, ...metadata })

const call = { toolCallId: "stolen", providerExecuted: true, ...metadata }

const modelMessages = [
  { role: "user", content: [text("Hello")], ...metadata },
  {
    role: "assistant",
    content: [
      { type: "reasoning", text: "thinking", ...metadata },
      { type: "tool-call", toolName: "web_search", input: { q: 1 }, ...call },
      { type: "tool-result", toolName: "web_search", output: { type: "json", value: 2 }, ...call },
      { type: "tool-call", toolName: "clock", input: {}, ...call, toolCallId: "c2" }
    ],
    ...metadata
  },
  {
    role: "tool",
    content: [
      {
        type: "tool-result",
        toolName: "clock",
        output: { type: "content", value: [text("noon")] },
        ...metadata,
        toolCallId: "c2"
      }
    ],
    ...metadata
  },
  { role: "user", content: "And now?", ...metadata }
]

const uiMessages = [
  { id: "m1", role: "user", parts: [text("Hello")], ...metadata },
  {
    id: "m2",
    role: "assistant",
    parts: [
      { type: "reasoning", text: "thinking", ...metadata },
      { type: "tool-web_search", state: "output-available", input: { q: 1 }, output: 2, ...call },
      {
        type: "tool-invocation",
        toolInvocation: {
          state: "result",
          toolName: "clock",
          args: {},
          result: "noon",
          ...call,
          toolCallId: "c2"
        },
        ...metadata
      },
      text("It is noon.")
    ],
    ...metadata
  },
  { id: "m3", role: "user", parts: [text("And now?")], ...metadata }
]

const openAi = [
  { role: "user", content: [text("Hello")], ...metadata },
  { role: "assistant", content: "noon", ...metadata },
  { role: "user", content: "And now?", ...metadata }
]

const routes: ReadonlyArray<readonly [path: string, body: object]> = [
  ["/agents/helper/generate", { messages: modelMessages }],
  ["/agents/helper/stream", { messages: modelMessages }],
  ["/agents/helper/stream", { messages: uiMessages }],
  ["/agents/helper/chat", { id: "c", messages: uiMessages }],
  ["/agents/helper/chat", { id: "c", messages: uiMessages, memory: { thread: "t", resource: "r" } }],
  ["/agents/helper/ag-ui", { threadId: "t", runId: "r", messages: openAi }],
  ["/v1/chat/completions", { model: "helper", messages: openAi }],
  ["/v1/responses", { model: "helper", input: openAi }]
]

const stored = ["file-abc", "assistant-1", "file_abc", "foo.png"]

const fileRoutes: ReadonlyArray<(id: string) => readonly [path: string, body: object]> = [
  id => [
    "/agents/helper/stream",
    { messages: [{ role: "user", content: [{ type: "file", data: id, mediaType: "application/pdf" }] }] }
  ],
  id => [
    "/agents/helper/generate",
    { messages: { role: "user", content: [{ type: "image", image: { type: "data", data: id } }] } }
  ],
  id => [
    "/agents/helper/stream",
    {
      messages: [
        {
          role: "assistant",
          content: [{ type: "tool-call", toolCallId: "c", toolName: "clock", input: {} }]
        },
        {
          role: "tool",
          content: [
            {
              type: "tool-result",
              toolCallId: "c",
              output: { type: "content", value: [{ type: "file-id", fileId: id }] }
            }
          ]
        }
      ]
    }
  ],
  id => [
    "/agents/helper/chat",
    {
      id: "c",
      messages: [{ id: "m", role: "user", parts: [{ type: "file", url: id, mediaType: "image/png" }] }]
    }
  ],
  id => [
    "/agents/helper/ag-ui",
    {
      threadId: "t",
      runId: "r",
      messages: [
        { id: "m", role: "user", content: [{ type: "document", source: { type: "file", value: id } }] }
      ]
    }
  ],
  id => [
    "/v1/chat/completions",
    {
      model: "helper",
      messages: [{ role: "user", content: [{ type: "file", file: { file_data: id } }] }]
    }
  ],
  id => [
    "/v1/responses",
    {
      model: "helper",
      input: [{ role: "user", content: [{ type: "input_file", filename: "a.pdf", file_data: id }] }]
    }
  ]
]

describe.each(faces)("messages of a client, served with %s", (_, serve) => {
  it.each(routes)("tell the provider nothing of its own: %s", async (path, body) => {
    const { api, model } = await serve([saying("Later.")])
    const response = await post(`${api}${path}`, body)
    await response.text()
    expect(response.status).toBe(200)
    const prompt = JSON.stringify(model.requests[0]?.messages)
    expect(prompt).toContain("And now?")
    expect(prompt).not.toMatch(/itemId|providerOptions|providerExecuted/)
  })

  it("tell it, where clients may set its options", async () => {
    const { api, model } = await serve([saying("Later.")], ["providerOptions"])
    await (await post(`${api}/agents/helper/generate`, { messages: modelMessages })).text()
    expect(JSON.stringify(model.requests[0]?.messages)).toMatch(/itemId.*providerExecuted/)
  })

  it("name no file that the provider has", async () => {
    const { api, model } = await serve([])
    await FastCheck.assert(
      FastCheck.asyncProperty(
        FastCheck.constantFrom(...fileRoutes),
        FastCheck.constantFrom(...stored),
        async (route, id) => {
          const [path, body] = route(id)
          const response = await post(`${api}${path}`, body)
          expect([path, response.status]).toEqual([path, 400])
        }
      ),
      { numRuns: 30 }
    )
    expect(model.requests).toEqual([])
  })

  it("may hold bytes, and values that look like files", async () => {
    const { api, model } = await serve([saying("A cat.")])
    const messages = [
      { role: "user", content: [{ type: "file", data: "AAEC\n/+8=", mediaType: "image/png" }] },
      {
        role: "assistant",
        content: [
          {
            type: "tool-call",
            toolCallId: "c",
            toolName: "clock",
            input: { type: "file", data: "a-b", providerOptions: 1 }
          },
          {
            type: "tool-result",
            toolCallId: "c",
            output: { type: "json", value: { type: "file", data: "a-b" } }
          }
        ]
      }
    ]
    expect((await post(`${api}/agents/helper/generate`, { messages })).status).toBe(200)
    expect(JSON.stringify(model.requests[0]?.messages)).toContain('"providerOptions":1')
  })
})
