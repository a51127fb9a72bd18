/** Scenarios of one answer: text, reasoning, sources, files, raw data, finish reasons, usage. */
import type { Scenario } from "./scenario.js"
import { answer, bare, finish, open, text, usage } from "./script.js"

/** The one difference that nearly every scenario shows. */
const metadata = { metadata: "+response-metadata" }

const partial = (finishReason: unknown) => [answer("r1", text("t1", "partial"), finish(finishReason))]

export const content: ReadonlyArray<Scenario> = [
  {
    id: "01",
    title: "one block of text",
    script: [answer("r1", text("t1", "Hello", ", ", "world"), finish("stop"))],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "Hello"
      text-delta t1 ", "
      text-delta t1 "world"
      text-end t1
      step-finish stop 10+5=15 "Hello, world"
      finish stop 10+5=15 "Hello, world"`,
    peer: "start step-start text-start text-delta×3 text-end step-finish finish",
    differences: metadata
  },
  {
    id: "01b",
    title: "a delta without text",
    script: [answer("r1", text("t1", ""), finish("stop"))],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-end t1
      step-finish stop 10+5=15 ""
      finish stop 10+5=15 ""`,
    peer: "start step-start text-start text-end step-finish finish",
    differences: metadata
  },
  {
    id: "01c",
    title: "provider metadata on every part of a block, also on a delta without text",
    script: [
      answer(
        "r1",
        { type: "text-start", id: "t1", providerMetadata: { p: { s: 1 } } },
        { type: "text-delta", id: "t1", delta: "hi" },
        { type: "text-delta", id: "t1", delta: "", providerMetadata: { p: { sig: "x" } } },
        { type: "text-end", id: "t1", providerMetadata: { p: { e: 2 } } },
        finish("stop", usage(10, 5), { providerMetadata: { p: { fin: true } } })
      )
    ],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1 ~{"p":{"s":1}}
      text-delta t1 "hi"
      text-delta t1 "" ~{"p":{"sig":"x"}}
      text-end t1 ~{"p":{"e":2}}
      step-finish stop 10+5=15 "hi" ~{"p":{"fin":true}}
      finish stop 10+5=15 "hi"`,
    peer: "start step-start text-start text-delta×2 text-end step-finish finish",
    differences: metadata
  },
  {
    id: "01d",
    title: "a delta without a start",
    script: [
      answer(
        "r1",
        { type: "text-delta", id: "t1", delta: "orphan" },
        { type: "text-end", id: "t1" },
        finish("stop")
      )
    ],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "orphan"
      text-end t1
      step-finish stop 10+5=15 "orphan"
      finish stop 10+5=15 "orphan"`,
    peer: "start step-start text-delta text-end step-finish finish",
    differences: { ...metadata, edges: "+text-start" }
  },
  {
    id: "02",
    title: "two blocks, called 0 and 1, with metadata",
    script: [
      answer(
        "r1",
        text("0", "First", "", " block."),
        { type: "text-start", id: "1", providerMetadata: { mock: { k: 1 } } },
        { type: "text-delta", id: "1", delta: "Second block." },
        { type: "text-delta", id: "1", delta: "", providerMetadata: { mock: { sig: "abc" } } },
        { type: "text-end", id: "1", providerMetadata: { mock: { done: true } } },
        finish("stop", usage(10, 5), { providerMetadata: { mock: { final: 1 } } })
      )
    ],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start 0
      text-delta 0 "First"
      text-delta 0 " block."
      text-end 0
      text-start 1 ~{"mock":{"k":1}}
      text-delta 1 "Second block."
      text-delta 1 "" ~{"mock":{"sig":"abc"}}
      text-end 1 ~{"mock":{"done":true}}
      step-finish stop 10+5=15 "First block.Second block." ~{"mock":{"final":1}}
      finish stop 10+5=15 "First block.Second block."`,
    peer: "start step-start text-start text-delta×2 text-end text-start text-delta×2 text-end step-finish finish",
    differences: metadata
  },
  {
    id: "02b",
    title: "two blocks that interleave",
    script: [
      answer(
        "r1",
        { type: "text-start", id: "a" },
        { type: "text-start", id: "b" },
        { type: "text-delta", id: "a", delta: "A1 " },
        { type: "text-delta", id: "b", delta: "B1 " },
        { type: "text-delta", id: "a", delta: "A2" },
        { type: "text-end", id: "a" },
        { type: "text-delta", id: "b", delta: "B2" },
        { type: "text-end", id: "b" },
        finish("stop")
      )
    ],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start a
      text-start b
      text-delta a "A1 "
      text-delta b "B1 "
      text-delta a "A2"
      text-end a
      text-delta b "B2"
      text-end b
      step-finish stop 10+5=15 "A1 B1 A2B2"
      finish stop 10+5=15 "A1 B1 A2B2"`,
    peer: "start step-start text-start×2 text-delta×3 text-end text-delta text-end step-finish finish",
    differences: metadata
  },
  {
    id: "03b",
    title: "two reasoning blocks with item ids, one of them encrypted",
    script: [
      answer(
        "r1",
        {
          type: "reasoning-start",
          id: "rs_1:0",
          providerMetadata: { openai: { itemId: "rs_1", reasoningEncryptedContent: null } }
        },
        { type: "reasoning-delta", id: "rs_1:0", delta: "Part one." },
        {
          type: "reasoning-end",
          id: "rs_1:0",
          providerMetadata: { openai: { itemId: "rs_1", reasoningEncryptedContent: "ENC" } }
        },
        { type: "reasoning-start", id: "rs_1:1", providerMetadata: { openai: { itemId: "rs_1" } } },
        { type: "reasoning-delta", id: "rs_1:1", delta: "Part two." },
        { type: "reasoning-end", id: "rs_1:1", providerMetadata: { openai: { itemId: "rs_1" } } },
        { type: "text-start", id: "msg_1", providerMetadata: { openai: { itemId: "msg_1" } } },
        { type: "text-delta", id: "msg_1", delta: "Done." },
        { type: "text-end", id: "msg_1", providerMetadata: { openai: { itemId: "msg_1" } } },
        finish("stop", usage(10, 5), { providerMetadata: { openai: { responseId: "r1" } } })
      )
    ],
    chunks: `
      start
      step-start
      response-metadata r1
      reasoning-start rs_1:0 ~{"openai":{"itemId":"rs_1","reasoningEncryptedContent":null}}
      reasoning-delta rs_1:0 "Part one."
      reasoning-signature rs_1:0 ENC ~{"openai":{"itemId":"rs_1","reasoningEncryptedContent":"ENC"}}
      reasoning-end rs_1:0 ENC ~{"openai":{"itemId":"rs_1","reasoningEncryptedContent":"ENC"}}
      reasoning-start rs_1:1 ~{"openai":{"itemId":"rs_1"}}
      reasoning-delta rs_1:1 "Part two."
      reasoning-end rs_1:1 ~{"openai":{"itemId":"rs_1"}}
      text-start msg_1 ~{"openai":{"itemId":"msg_1"}}
      text-delta msg_1 "Done."
      text-end msg_1 ~{"openai":{"itemId":"msg_1"}}
      step-finish stop 10+5=15 "Done." ~{"openai":{"responseId":"r1"}}
      finish stop 10+5=15 "Done."`,
    peer: "start step-start reasoning-start reasoning-delta reasoning-end reasoning-start reasoning-delta reasoning-end text-start text-delta text-end step-finish finish",
    differences: { ...metadata, signature: "+reasoning-signature" }
  },
  {
    id: "04",
    title: "sources of both kinds, files as base64 and as bytes",
    script: [
      answer(
        "r1",
        {
          type: "source",
          sourceType: "url",
          id: "s1",
          url: "https://example.com/a",
          title: "A",
          providerMetadata: { mock: { score: 0.9 } }
        },
        { type: "source", sourceType: "url", id: "s2", url: "https://example.com/b" },
        {
          type: "source",
          sourceType: "document",
          id: "s3",
          mediaType: "application/pdf",
          title: "Doc",
          filename: "doc.pdf"
        },
        { type: "file", mediaType: "image/png", data: "iVBORw0KGgo=" },
        {
          type: "file",
          mediaType: "text/plain",
          data: Uint8Array.from([104, 105]),
          providerMetadata: { mock: { f: 1 } }
        },
        text("t1", "See sources."),
        finish("stop")
      )
    ],
    chunks: `
      start
      step-start
      response-metadata r1
      source s1 url "A" https://example.com/a ~{"mock":{"score":0.9}}
      source s2 url "" https://example.com/b
      source s3 document "Doc" application/pdf doc.pdf
      file image/png text iVBORw0KGgo= base64 iVBORw0KGgo=
      file text/plain bytes 104,105 ~{"mock":{"f":1}}
      text-start t1
      text-delta t1 "See sources."
      text-end t1
      step-finish stop 10+5=15 "See sources."
      finish stop 10+5=15 "See sources."`,
    peer: "start step-start source×3 file×2 text-start text-delta text-end step-finish finish",
    differences: metadata
  },
  {
    id: "05",
    title: "raw parts and a part of a type that nobody knows, asked for",
    script: [
      answer(
        "r1",
        { type: "raw", rawValue: { event: "x", n: 1 } },
        text("t1", "Hi"),
        { type: "mystery-part", foo: 1 },
        { type: "raw", rawValue: "a string raw" },
        finish("stop")
      )
    ],
    options: { includeRawChunks: true },
    chunks: `
      start
      step-start
      response-metadata r1
      raw {"event":"x","n":1}
      text-start t1
      text-delta t1 "Hi"
      text-end t1
      raw {"type":"mystery-part","foo":1}
      raw {"value":"a string raw"}
      step-finish stop 10+5=15 "Hi"
      finish stop 10+5=15 "Hi"`,
    peer: "start step-start raw text-start text-delta text-end raw×2 step-finish finish",
    differences: metadata
  },
  {
    id: "06b",
    title: "a provider that tells nothing of its response",
    script: [bare(text("t1", "x"), finish("stop"))],
    chunks: `
      start
      step-start
      text-start t1
      text-delta t1 "x"
      text-end t1
      step-finish stop 10+5=15 "x"
      finish stop 10+5=15 "x"`,
    peer: "start step-start text-start text-delta text-end step-finish finish"
  },
  {
    id: "07b",
    title: "warnings beside the stream",
    script: [
      {
        ...answer("r1", text("t1", "x"), finish("stop")),
        result: { warnings: [{ type: "other", message: "careful" }] }
      }
    ],
    chunks: `
      start
      step-start warns [{"type":"other","message":"careful"}]
      response-metadata r1
      text-start t1
      text-delta t1 "x"
      text-end t1
      step-finish stop 10+5=15 "x"
      finish stop 10+5=15 "x"`,
    peer: "start step-start text-start text-delta text-end step-finish finish",
    differences: metadata
  },
  {
    id: "08-content-filter",
    title: "an answer that a filter ended",
    script: partial("content-filter"),
    options: { maxSteps: 3 },
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "partial"
      text-end t1
      step-finish content-filter 10+5=15 "partial"
      finish content-filter 10+5=15 "partial"`,
    peer: "start step-start text-start text-delta text-end step-finish finish",
    differences: metadata
  },
  {
    id: "08-error",
    title: "an answer that finishes with an error and tells none",
    script: partial("error"),
    options: { maxSteps: 3 },
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "partial"
      text-end t1
      error ModelError: The provider ended its answer with an error and did not say which.
      finish error 10+5=15 "partial"`,
    peer: "start step-start text-start text-delta text-end error step-finish finish",
    differences: { ...metadata, "cut-step": "-step-finish" }
  },
  {
    id: "08-undefined",
    title: "a finish without a reason",
    script: partial(undefined),
    options: { maxSteps: 3 },
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "partial"
      text-end t1
      step-finish other 10+5=15 "partial"
      finish other 10+5=15 "partial"`,
    peer: "start step-start text-start text-delta text-end step-finish step-start text-start text-delta text-end step-finish step-start text-start text-delta text-end step-finish finish",
    differences: {
      ...metadata,
      "calls-decide": "-step-start×2 -text-start×2 -text-delta×2 -text-end×2 -step-finish×2"
    }
  },
  {
    id: "08-unknown",
    title: "a finish whose reason is not known",
    script: partial("unknown"),
    options: { maxSteps: 3 },
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "partial"
      text-end t1
      step-finish other 10+5=15 "partial"
      finish other 10+5=15 "partial"`,
    peer: "start step-start text-start text-delta text-end step-finish step-start text-start text-delta text-end step-finish step-start text-start text-delta text-end step-finish finish",
    differences: {
      ...metadata,
      "calls-decide": "-step-start×2 -text-start×2 -text-delta×2 -text-end×2 -step-finish×2"
    }
  },
  {
    id: "08b",
    title: "an answer of nothing, for some other reason",
    script: [answer("r1", finish("other"))],
    options: { maxSteps: 3, maxRetries: 0 },
    chunks: `
      start
      step-start
      response-metadata r1
      error ModelError: The answer ended before the model said that it was finished: the connection was cut or the provider broke off.
      finish error 10+5=15 ""`,
    peer: "start step-start error step-finish finish",
    differences: { ...metadata, "cut-step": "-step-finish" }
  },
  {
    id: "08c",
    title: "an answer of nothing that just stops",
    script: [answer("r1", finish("stop"))],
    chunks: `
      start
      step-start
      response-metadata r1
      step-finish stop 10+5=15 ""
      finish stop 10+5=15 ""`,
    peer: "start step-start step-finish finish",
    differences: metadata
  },
  {
    id: "08d",
    title: "an answer without a finish",
    script: [answer("r1", text("t1", "partial"))],
    options: { maxSteps: 3 },
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "partial"
      text-end t1
      error ModelError: The answer ended before the model said that it was finished: the connection was cut or the provider broke off.
      finish error ?+?=? "partial"`,
    peer: "start step-start text-start text-delta text-end step-finish finish",
    differences: { ...metadata, "no-finish": "-step-finish +error" }
  },
  {
    id: "08f",
    title: "a block that never ends",
    script: [answer("r1", open("t1", "open"), finish("stop"))],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "open"
      text-end t1
      step-finish stop 10+5=15 "open"
      finish stop 10+5=15 "open"`,
    peer: "start step-start text-start text-delta step-finish finish",
    differences: { ...metadata, edges: "+text-end" }
  },
  {
    id: "08g",
    title: "text behind the finish",
    script: [answer("r1", text("t1", "before"), finish("stop"), text("t2", "after"))],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "before"
      text-end t1
      step-finish stop 10+5=15 "before"
      finish stop 10+5=15 "before"`,
    peer: "start step-start text-start text-delta text-end text-start text-delta text-end step-finish finish",
    differences: { ...metadata, "behind-finish": "-text-start -text-delta -text-end" }
  },
  {
    id: "09b",
    title: "specification V4, with parts that only it has",
    specification: "v4",
    script: [
      answer(
        "r1",
        text("t1", "Hi"),
        { type: "reasoning-file", mediaType: "image/png", data: "AAAA" },
        { type: "custom", kind: "mock.thing" },
        finish(
          { unified: "stop", raw: "end_turn" },
          {
            inputTokens: { total: 11, noCache: 7, cacheRead: 3, cacheWrite: 1 },
            outputTokens: { total: 9, text: 4, reasoning: 5 }
          }
        )
      )
    ],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "Hi"
      text-end t1
      step-finish stop (said end_turn) 11+9=20 reasoning 5 cached 3 "Hi"
      finish stop (said end_turn) 11+9=20 reasoning 5 cached 3 "Hi"`,
    peer: "start step-start text-start text-delta text-end reasoning-file custom step-finish finish",
    differences: { ...metadata, "unknown-parts": "-reasoning-file -custom" }
  },
  {
    id: "09d",
    title: "a finish without usage",
    script: [answer("r1", text("t1", "Hi"), { type: "finish", finishReason: "stop" })],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "Hi"
      text-end t1
      step-finish stop ?+?=? "Hi"
      finish stop ?+?=? "Hi"`,
    peer: "start step-start text-start text-delta text-end step-finish finish",
    differences: metadata
  },
  {
    id: "09e",
    title: "usage without its totals",
    script: [answer("r1", text("t1", "Hi"), finish("stop", { inputTokens: 3 }))],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "Hi"
      text-end t1
      step-finish stop 3+?=? "Hi"
      finish stop 3+?=? "Hi"`,
    peer: "start step-start text-start text-delta text-end step-finish finish",
    differences: metadata
  },
  {
    id: "10",
    title: "generate",
    script: [answer("r1", text("t1", "Hello from generate"), finish("stop"))],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "Hello from generate"
      text-end t1
      step-finish stop 10+5=15 "Hello from generate"
      finish stop 10+5=15 "Hello from generate"`
  }
]
