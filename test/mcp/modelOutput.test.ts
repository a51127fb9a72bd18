/** What the model is told of a result. */
import { Message } from "eddy"
import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { modelOutputOf } from "../../src/mcp/modelOutput.js"

const text = (value: string) => ({ type: "text", text: value })

const image = { type: "image", data: "aW1n", mimeType: "image/png" }

const cases: ReadonlyArray<readonly [what: string, result: unknown, output: Message.ToolResultOutput]> = [
  ["texts as one text", { content: [text("a"), text("b")] }, { type: "text", value: "a\nb" }],
  ["no content as no text", { content: [] }, { type: "text", value: "" }],
  ["a result without content likewise", {}, { type: "text", value: "" }],
  ["content that is no list likewise", { content: "a" }, { type: "text", value: "" }],
  [
    "structured content as JSON, without the text that repeats it",
    { content: [text('{"a":1}')], structuredContent: { a: 1 } },
    { type: "json", value: { a: 1 } }
  ],
  [
    "an image as an image, and what is empty not at all",
    { content: [text("a"), text(""), image] },
    { type: "content", value: [text("a"), { type: "image-data", data: "aW1n", mediaType: "image/png" }] }
  ],
  [
    "structured content beside an image",
    { content: [text("repeats"), image], structuredContent: { a: 1 } },
    {
      type: "content",
      value: [text('{"a":1}'), { type: "image-data", data: "aW1n", mediaType: "image/png" }]
    }
  ],
  [
    "sound as a file",
    { content: [{ type: "audio", data: "c25k", mimeType: "audio/wav" }] },
    { type: "content", value: [{ type: "file-data", data: "c25k", mediaType: "audio/wav" }] }
  ],
  [
    "a resource of text as its text",
    { content: [{ type: "resource", resource: { uri: "file:///a", text: "inside" } }] },
    { type: "text", value: "inside" }
  ],
  [
    "a resource of bytes as a file",
    { content: [{ type: "resource", resource: { uri: "file:///a", blob: "YmxvYg==" } }] },
    {
      type: "content",
      value: [{ type: "file-data", data: "YmxvYg==", mediaType: "application/octet-stream" }]
    }
  ],
  [
    "a link as its name, its address and what it is",
    { content: [{ type: "resource_link", uri: "https://a.b/c", name: "C", description: "A letter" }] },
    { type: "text", value: "C: https://a.b/c\nA letter" }
  ],
  [
    "blocks of unknown kinds and of wrong shapes as their JSON",
    { content: [{ type: "hologram", at: 1 }, { type: "image" }, { type: "resource", resource: 1 }, 7] },
    {
      type: "text",
      value: '{"type":"hologram","at":1}\n{"type":"image"}\n{"type":"resource","resource":1}\n7'
    }
  ],
  [
    "an error as its texts",
    { content: [text("no"), image, text("disk")], isError: true, structuredContent: {} },
    { type: "error-text", value: "no\ndisk" }
  ],
  [
    "an error without text as its JSON",
    { content: [], isError: true },
    { type: "error-json", value: { content: [], isError: true } }
  ],
  ["half a surrogate as a replacement", { content: [text("a\uD83D")] }, { type: "text", value: "a\uFFFD" }],
  ["what is no result as its JSON", ["a"], { type: "json", value: ["a"] }],
  ["nothing as null", undefined, { type: "json", value: null }]
]

describe("the model is told", () => {
  it.each(cases)("%s", (_, result, output) => {
    expect(modelOutputOf(result)).toStrictEqual(output)
    expect(Schema.is(Message.ToolResultOutput)(modelOutputOf(result))).toBe(true)
  })
})
