/** Transcripts of what servers do that no specification has, each written for these tests. */
import {
  anthropicEnd,
  anthropicStart,
  block,
  chatCall,
  chatChunk,
  chatUsage,
  data,
  done,
  event,
  geminiChunk,
  signatures,
  textBlock
} from "./transcripts.js"

const usage = (completion: number): object => ({
  usage: { prompt_tokens: 9, completion_tokens: completion, total_tokens: 9 + completion }
})

const weather = (city: string): object => ({ name: "weather", arguments: JSON.stringify({ city }) })

const start = chatChunk({ role: "assistant", content: "" })

/** OpenAI's chat completions, as others send them. */
export const chatQuirks = {
  /** A finish reason and an error in one chunk, after comments. */
  errorBesideChoices: [
    ": RELAY WORKING\n\n",
    ": RELAY WORKING\n\n",
    chatChunk({ role: "assistant", content: "Bis hier" }),
    chatChunk({ content: "" }, "error", { error: { code: 502, message: "The upstream ran dry." } }),
    done
  ].join(""),
  /** Reasoning under one name, under both, under the other; figures that grow with every chunk. */
  reasoningNames: [
    chatChunk({ role: "assistant", content: "" }, null, usage(0)),
    chatChunk({ reasoning_content: "Erst 🌊, " }, null, usage(3)),
    chatChunk({ reasoning: "dann ⛵, ", reasoning_content: "dann ⛵, " }, null, usage(5)),
    chatChunk({ reasoning: "zuletzt ⚓." }, null, usage(8)),
    chatChunk({ content: "\n\nAlso " }, null, usage(10)),
    chatChunk({ content: "ja." }, "stop", usage(12)),
    data({ id: "chatcmpl-river", model: "brook-1", created: 1_780_000_000, choices: [], ...usage(12) }),
    done
  ].join(""),
  /** A byte order mark, `data:` without a blank, an event over two lines, fields nobody knows, line ends of every kind. */
  lineEnds: [
    "\uFEFFevent: message\r\nid: 7\r\nretry: 100\r\n",
    chatChunk({ role: "assistant", content: "ä" }).replace("data: ", "data:").replaceAll("\n", "\r\n"),
    chatChunk({ content: "☕" }).replace(',"choices"', ',\r\ndata: "choices"').replaceAll("\n\n", "\r\n\r\n"),
    ": a comment\r\nnobody: knows\r\n",
    chatChunk({ content: "🦊" }).replaceAll("\n", "\r"),
    chatChunk({}, "stop"),
    done
  ].join(""),
  comments: [
    ": warming up\n\n:\n\n",
    start,
    chatChunk({ content: "Hal" }),
    ": still here\n\n:still\n",
    chatChunk({ content: "lo" }),
    chatChunk({}, "stop"),
    done
  ].join(""),
  /** An event whose data is empty. */
  emptyData: [
    start,
    chatChunk({ content: "Hallo" }),
    "event: ping\ndata:\n\n",
    chatChunk({}, "stop"),
    done
  ].join(""),
  /** Indexes that start at 1, are used twice, have gaps or are missing; ids that are blank or missing. */
  identities: [
    chatChunk({ role: "assistant", content: "Vier." }),
    chatCall(1, { id: "call_a", type: "function", function: { name: "weather", arguments: '{"city":' } }),
    chatCall(1, { function: { arguments: '"Å"}' } }),
    chatCall(1, { id: "call_b", type: "function", function: { name: "weather", arguments: '{"city":' } }),
    chatCall(1, { id: "", function: { arguments: '"Ä"}' } }),
    chatChunk({
      tool_calls: [{ id: "call_c", type: "function", function: { name: "tide", arguments: '{"port"' } }]
    }),
    chatChunk({ tool_calls: [{ function: { arguments: ':"Ö"}' } }] }),
    chatCall(6, { type: "function", function: { name: "tide", arguments: '{"port":' } }),
    chatCall(6, { id: " ", function: { arguments: '"Ü"}' } }),
    chatChunk({}, "tool_calls"),
    done
  ].join(""),
  /** Whole calls, both of index 0, and a reason to finish that denies them. */
  wholeCalls: [
    chatCall(0, { id: "call_1", type: "function", function: weather("Tromsø") }),
    chatCall(0, { id: "call_2", type: "function", function: weather("Malmö") }),
    chatChunk({ content: "" }, "stop"),
    done
  ].join(""),
  /** The name comes with every piece of the arguments. */
  repeatedName: [
    chatChunk({ role: "assistant", content: null }),
    chatCall(0, { id: "call_1", type: "function", function: { name: "weather", arguments: "{" } }),
    chatCall(0, { function: { name: "weather", arguments: '"city":' } }),
    chatCall(0, { function: { name: "weather", arguments: '"Oulu"}' } }),
    chatChunk({}, "tool_calls", usage(6)),
    done
  ].join(""),
  /** Blanks after complete arguments, two reasons to finish, a chunk that says nothing. */
  doubleFinish: [
    chatCall(0, { id: "call_1", type: "function", function: weather("Oulu") }),
    chatCall(0, { function: { arguments: "" } }),
    chatCall(0, { function: { arguments: " \n" } }),
    chatChunk({}, "tool_calls"),
    chatChunk({}, "stop", usage(6)),
    data({ id: "", model: "", created: 0, choices: [{ index: 0, finish_reason: null }] }),
    done
  ].join(""),
  /** Whole calls without ids, all of index 0. */
  noIds: [
    ...["Oulu", "Turku", "Oulu"].map(city => chatCall(0, { type: "function", function: weather(city) })),
    chatChunk({}, "stop"),
    done
  ].join(""),
  /** Complete, but without the mark that nothing follows. */
  noDone: [start, chatChunk({ content: "Hallo" }), chatChunk({}, "stop"), chatUsage].join("")
}

export const anthropicQuirks = {
  /** Events of a type that is new. */
  unknownEvents: [
    anthropicStart,
    event("weather_report", { report: "☀️" }),
    textBlock(0, "Ich sehe ", "nach 👀."),
    event("weather_report", { report: "🌧️" }),
    block(
      1,
      { type: "tool_use", id: "toolu_1", name: "weather", input: {} },
      { type: "input_json_delta", partial_json: "" },
      { type: "input_json_delta", partial_json: '{"city": "Sofia \\uD83C' },
      { type: "input_json_delta", partial_json: '\\uDF09"}' }
    ),
    block(
      2,
      { type: "tool_use", id: "toolu_2", name: "tide", input: {} },
      { type: "input_json_delta", partial_json: "" }
    ),
    anthropicEnd("tool_use")
  ].join(""),
  /** A signature in two deltas. */
  tornSignature: [
    anthropicStart,
    block(
      0,
      { type: "thinking", thinking: "", signature: "" },
      { type: "thinking_delta", thinking: "Hm." },
      { type: "signature_delta", signature: signatures.anthropic.slice(0, 11) },
      { type: "signature_delta", signature: signatures.anthropic.slice(11) }
    ),
    block(
      1,
      { type: "tool_use", id: "toolu_1", name: "weather", input: {} },
      { type: "input_json_delta", partial_json: '{"city": "Bern"}' }
    ),
    anthropicEnd("tool_use")
  ].join(""),
  /** A block of a type that is new: what it says would be lost. */
  unknownBlock: [anthropicStart, block(0, { type: "song", song: "🎶" }), anthropicEnd("end_turn")].join("")
}

const call = (city: string, more: object = {}): object => ({
  functionCall: { name: "weather", args: { city } },
  ...more
})

export const geminiQuirks = {
  /** Signatures on a text, on one of two calls without ids, and on a text that is empty. */
  signatures: [
    geminiChunk([{ text: "Zwei Fragen.", thought: true }], 0),
    geminiChunk([{ text: "Ich " }], 2),
    geminiChunk([{ text: "frage.", thoughtSignature: signatures.googleText }], 4),
    geminiChunk([call("Bern", { thoughtSignature: signatures.google })], 14),
    geminiChunk([call("Chur")], 22),
    geminiChunk([{ text: "", thoughtSignature: signatures.openai }], 22, { finishReason: "STOP" })
  ].join(""),
  /** An answer that ends with an error which is no error object, and holds nothing. */
  malformedCall: data({
    candidates: [{ content: {}, finishReason: "MALFORMED_FUNCTION_CALL", index: 0 }],
    usageMetadata: { promptTokenCount: 120, totalTokenCount: 120 },
    modelVersion: "beck-4"
  })
}
