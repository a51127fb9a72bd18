/** Contents of spans: always JSON, never longer than allowed, the newest messages first to be told. */
import { describe, expect, it } from "@effect/vitest"
import type { Message } from "eddy"
import { FastCheck as fc } from "effect"
import { contentOf, messagesContent, promptContent } from "../../src/agent/telemetry/contents.js"
import { shown } from "../../src/agent/telemetry/failures.js"
import { finishReason, providerName } from "../../src/agent/telemetry/names.js"
import { InvalidToolArguments, ModelError } from "../../src/protocol/Errors.js"

const limits = fc.integer({ min: 256, max: 2000 })

const strange = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withSet: true,
  withNullPrototype: true
})

const texts = fc.oneof(
  fc.string({ unit: "binary", maxLength: 600 }),
  fc.constant('\ud800 \u0000 "\\'.repeat(90))
)

const messages: fc.Arbitrary<ReadonlyArray<Message.Message>> = fc.array(
  fc.oneof(
    fc.record({ role: fc.constant("system" as const), content: texts }),
    fc.record({
      role: fc.constant("user" as const),
      content: fc.array(fc.record({ type: fc.constant("text" as const), text: texts }), { maxLength: 3 })
    }),
    fc.record({
      role: fc.constant("assistant" as const),
      content: fc.array(
        fc.record({
          type: fc.constant("tool-call" as const),
          toolCallId: texts,
          toolName: texts,
          input: strange
        }),
        { maxLength: 3 }
      )
    })
  )
)

describe("contents", () => {
  it("of any value are JSON of at most the limit, and whole when there is room", () => {
    fc.assert(
      fc.property(fc.oneof(strange, texts, fc.array(texts)), limits, (value, limit) => {
        const { isTruncated, text } = contentOf(value, limit)
        expect(text.length).toBeLessThanOrEqual(limit)
        expect(text.isWellFormed()).toBe(true)
        JSON.parse(text)
        expect(contentOf(value, 10_000_000).isTruncated).toBe(false)
        if (!isTruncated) expect(text).toBe(contentOf(value, 10_000_000).text)
      })
    )
  })

  it("of messages are the newest, in their order", () => {
    fc.assert(
      fc.property(messages, limits, (all, limit) => {
        const { isTruncated, text } = messagesContent(all, limit)
        expect(text.length).toBeLessThanOrEqual(limit)
        const told: ReadonlyArray<{ readonly role?: string }> = JSON.parse(text)
        expect(told.length > 0).toBe(all.length > 0)
        if (!isTruncated) expect(told.map(({ role }) => role)).toEqual(all.map(({ role }) => role))
        else expect(told.length).toBeLessThanOrEqual(all.length)
      })
    )
  })

  it("of many short messages leave out the oldest", () => {
    const said = Array.from(
      { length: 100 },
      (_, at): Message.Message => ({ role: "system", content: `${at}` })
    )
    const { isTruncated, text } = messagesContent(said, 256)
    expect(isTruncated).toBe(true)
    const told: ReadonlyArray<unknown> = JSON.parse(text)
    expect(told.at(-1)).toEqual({ role: "system", parts: [{ type: "text", content: "99" }] })
    expect(told.length).toBeGreaterThan(2)
  })

  it("of a prompt are its instructions, and what follows", () => {
    const { input, instructions } = promptContent(
      [
        { role: "system", content: "Be brief." },
        { role: "user", content: [{ type: "text", text: "Hi" }] },
        { role: "system", content: "Later." }
      ],
      1000
    )
    expect(instructions?.text).toBe('[{"type":"text","content":"Be brief."}]')
    expect(JSON.parse(input.text)).toMatchObject([{ role: "user" }, { role: "system" }])
    expect(promptContent([], 1000)).toMatchObject({ instructions: undefined, input: { text: "[]" } })
  })

  it("of files are their names, and no signature", () => {
    const url = new URL("https://files.test/a.png?signature=secret#x")
    const { text } = messagesContent(
      [
        {
          role: "user",
          content: [
            { type: "file", data: url, mediaType: "image/png" },
            { type: "file", data: "QUJD", mediaType: "application/pdf" }
          ]
        }
      ],
      1000
    )
    expect(JSON.parse(text)[0].parts).toEqual([
      { type: "uri", modality: "image", mime_type: "image/png", uri: "https://files.test/a.png" },
      { type: "file", modality: "application", mime_type: "application/pdf", characters: 4 }
    ])
  })
})

describe("names", () => {
  it.each([
    ["openai.responses", "openai"],
    ["anthropic.messages", "anthropic"],
    ["google.generative-ai", "gcp.gemini"],
    ["google.vertex.chat", "gcp.vertex_ai"],
    ["azure.chat", "azure.ai.openai"],
    ["amazon-bedrock", "aws.bedrock"],
    ["xai.chat", "x_ai"],
    ["my.own", "my.own"],
    ["constructor", "constructor"]
  ])("of the provider %s is %s", (provider, name) => {
    expect(providerName(provider)).toBe(name)
  })

  it("of reasons are those of the conventions", () => {
    expect(["stop", "tool-calls", "content-filter", "aborted"].map(finishReason)).toEqual([
      "stop",
      "tool_call",
      "content_filter",
      "aborted"
    ])
  })
})

describe("a failure", () => {
  it("is shown without its cause", () => {
    const cause = new Error("authorization: secret")
    const told = shown(
      new ModelError({ reason: "request", provider: "p", modelId: "m", message: "Refused.", cause }),
      true
    )
    expect(told.message).toBe("Refused.")
    expect(told.cause).toBeUndefined()
    expect(`${told.name} ${told.stack}`).not.toContain("secret")
  })

  it("quotes arguments when contents are told", () => {
    const error = new InvalidToolArguments({
      toolName: "look",
      message: 'Invalid arguments: actual "secret"'
    })
    expect(shown(error, true).message).toContain("secret")
    expect(`${shown(error, false).message} ${shown(error, false).stack}`).not.toContain("secret")
  })
})
