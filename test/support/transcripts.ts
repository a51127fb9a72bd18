/**
 * Transcripts of providers' streams, written for these tests: text outside ASCII, surrogate pairs, parallel calls,
 * signatures, failures in the middle. Named by the API they come from.
 */

export const data = (json: unknown): string => `data: ${JSON.stringify(json)}\n\n`

/** An event with a name, as OpenAI's Responses API and Anthropic send them. */
export const event = (type: string, fields: object): string => `event: ${type}\n${data({ type, ...fields })}`

const withCrLf = (text: string): string => text.replaceAll("\n", "\r\n")

export const chatChunk = (delta: object, finish: string | null = null, more: object = {}): string =>
  data({
    id: "chatcmpl-river",
    object: "chat.completion.chunk",
    created: 1_780_000_000,
    model: "brook-1",
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...more
  })

export const chatUsage = data({
  id: "chatcmpl-river",
  object: "chat.completion.chunk",
  created: 1_780_000_000,
  model: "brook-1",
  choices: [],
  usage: {
    prompt_tokens: 21,
    completion_tokens: 13,
    total_tokens: 34,
    prompt_tokens_details: { cached_tokens: 8 },
    completion_tokens_details: { reasoning_tokens: 5 }
  }
})

export const done = "data: [DONE]\n\n"

export const chatCall = (index: number, call: object): string =>
  chatChunk({ tool_calls: [{ index, ...call }] })

const chatText = [
  ": warming up\n\n",
  chatChunk({ role: "assistant", content: "" }),
  chatChunk({ content: "Größe " }),
  chatChunk({ content: "日本 👩‍🚀" }),
  chatChunk({ content: " – ok ✓" }),
  chatChunk({}, "stop"),
  chatUsage,
  done
].join("")

/** Up to the second of the four bytes of the last fox. */
const untilHalfAFox = (text: string): Uint8Array => {
  const before = new TextEncoder().encode(text.slice(0, text.lastIndexOf("🦊")))
  return new TextEncoder().encode(text).subarray(0, before.length + 2)
}

/** OpenAI's chat completions, and what others made of them. */
export const chat = {
  text: chatText,
  /** The same with CR LF as line ends. */
  textCrLf: withCrLf(chatText),
  /** Two calls whose arguments come in turns; one has an escaped surrogate pair and a raw one. */
  parallelCalls: [
    chatChunk({ role: "assistant", content: null }),
    chatCall(0, { id: "call_nord", type: "function", function: { name: "weather", arguments: "" } }),
    chatCall(1, { id: "call_süd", type: "function", function: { name: "tide", arguments: "" } }),
    chatCall(0, { function: { arguments: '{"city":"Malm' } }),
    chatCall(1, { function: { arguments: '{"port":' } }),
    chatCall(0, { function: { arguments: 'ö \\uD83C\\uDF0A"' } }),
    chatCall(1, { function: { arguments: '"⚓ Kiel 🛟"}' } }),
    chatCall(0, { function: { arguments: "}" } }),
    chatChunk({}, "tool_calls"),
    chatUsage,
    done
  ].join(""),
  reasoning: [
    chatChunk({ role: "assistant", content: "" }),
    chatChunk({ reasoning_content: "Erst denken 🤔, " }),
    chatChunk({ reasoning_content: "dann reden." }),
    chatChunk({ content: "Also: 42." }),
    chatChunk({}, "stop"),
    chatUsage,
    done
  ].join(""),
  reasoningThenCalls: [
    chatChunk({ role: "assistant", content: null }),
    chatChunk({ reasoning_content: "Erst denken 🤔." }),
    chatCall(0, {
      id: "call_nord",
      type: "function",
      function: { name: "weather", arguments: '{"city":"Malmö 🌊"}' }
    }),
    chatChunk({}, "tool_calls"),
    chatUsage,
    done
  ].join(""),
  /** An error object where a chunk should be, and then silence. */
  errorInTheMiddle: [
    chatChunk({ role: "assistant", content: "Bis hier" }),
    data({ error: { message: "The engine ran dry.", type: "server_error", param: null, code: 503 } }),
    done
  ].join(""),
  /** Broken off inside a character, inside an event. */
  truncated: untilHalfAFox(
    chatChunk({ role: "assistant", content: "Halb " }) + chatChunk({ content: "Es war einmal 🦊" })
  ),
  /** Ends between two events, in the middle of a call's arguments. */
  truncatedCall: [
    chatChunk({ role: "assistant", content: null }),
    chatCall(0, {
      id: "call_halb",
      type: "function",
      function: { name: "weather", arguments: '{"city":"Mal' }
    })
  ].join(""),
  /** Nothing but the end. */
  empty: done
}

const responseOf = (status: string, more: object = {}): object => ({
  id: "resp_river",
  object: "response",
  created_at: 1_780_000_000,
  status,
  model: "brook-2",
  service_tier: "default",
  output: [],
  ...more
})

const responsesStart = [
  event("response.created", { response: responseOf("in_progress"), sequence_number: 0 }),
  event("response.in_progress", { response: responseOf("in_progress"), sequence_number: 1 })
].join("")

const responsesUsage = {
  input_tokens: 44,
  input_tokens_details: { cached_tokens: 16 },
  output_tokens: 30,
  output_tokens_details: { reasoning_tokens: 12 },
  total_tokens: 74
}

const responsesEnd = event("response.completed", {
  response: responseOf("completed", { usage: responsesUsage, incomplete_details: null })
})

const responsesText = (index: number, ...deltas: ReadonlyArray<string>): string => {
  const at = { item_id: "msg_river", output_index: index, content_index: 0 }
  const item = { id: "msg_river", type: "message", role: "assistant" }
  const text = deltas.join("")
  const part = { type: "output_text", text, annotations: [] }
  return [
    event("response.output_item.added", {
      output_index: index,
      item: { ...item, status: "in_progress", content: [] }
    }),
    event("response.content_part.added", { ...at, part: { ...part, text: "" } }),
    ...deltas.map(delta => event("response.output_text.delta", { ...at, delta, logprobs: [] })),
    event("response.output_text.done", { ...at, text, logprobs: [] }),
    event("response.content_part.done", { ...at, part }),
    event("response.output_item.done", {
      output_index: index,
      item: { ...item, status: "completed", content: [part] }
    })
  ].join("")
}

const responsesCall = (
  index: number,
  callId: string,
  name: string,
  ...deltas: ReadonlyArray<string>
): string => {
  const id = `fc_${index}`
  const item = { id, type: "function_call", call_id: callId, name }
  const written = deltas.join("")
  return [
    event("response.output_item.added", {
      output_index: index,
      item: { ...item, status: "in_progress", arguments: "" }
    }),
    ...deltas.map(delta =>
      event("response.function_call_arguments.delta", { item_id: id, output_index: index, delta })
    ),
    event("response.function_call_arguments.done", {
      item_id: id,
      output_index: index,
      arguments: written
    }),
    event("response.output_item.done", {
      output_index: index,
      item: { ...item, status: "completed", arguments: written }
    })
  ].join("")
}

/** Signatures that only survive when nobody touches them: padding, slashes, plus signs, repeated letters. */
export const signatures = {
  openai: "gAAAAABo+/9==Zm9vL2Jhcg+/+/AAAA==",
  anthropic: "EuYBCkQIBhgCKkDw+/A9==ErUB/0pqxx+VaaaaaaaaQ==",
  redacted: "EmwKAhgBEgy3va3pzix/+LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpPkNRj2YfWXGmKDxH4mPnZ5sQ==",
  google: "CpwBAVSoXO4/+aGVsbG8gd29ybGQ==",
  googleText: "dGhlIHRleHQ+/w=="
}

/** A reasoning item with one summary and its encrypted content. */
const responsesReasoning = (index: number, text: string): string => {
  const item = { id: "rs_river", type: "reasoning" }
  const at = { item_id: "rs_river", output_index: index, summary_index: 0 }
  const part = { type: "summary_text", text }
  return [
    event("response.output_item.added", {
      output_index: index,
      item: { ...item, summary: [], encrypted_content: "" }
    }),
    event("response.reasoning_summary_part.added", { ...at, part: { ...part, text: "" } }),
    event("response.reasoning_summary_text.delta", { ...at, delta: text }),
    event("response.reasoning_summary_part.done", { ...at, part }),
    event("response.output_item.done", {
      output_index: index,
      item: { ...item, summary: [part], encrypted_content: signatures.openai }
    })
  ].join("")
}

/** OpenAI's Responses API. */
export const responses = {
  text: responsesStart + responsesText(0, "Guten ", "Morgen ☕", "️ – こんにちは 🏔️") + responsesEnd,
  calls:
    responsesStart +
    responsesText(0, "Ich sehe nach.") +
    responsesCall(1, "call_eins", "weather", '{"city":', '"Tromsø ', '🌌"}') +
    responsesCall(2, "call_zwei", "tide", "{}") +
    responsesEnd,
  reasoning: [responsesStart, responsesReasoning(0, "Abwägen ⚖️"), responsesText(1, "Ja."), responsesEnd].join(
    ""
  ),
  /** A reasoning item, the message that belongs to it, and a call. */
  reasoningTextThenCalls: [
    responsesStart,
    responsesReasoning(0, "Abwägen ⚖️"),
    responsesText(1, "Ich ", "frage nach."),
    responsesCall(2, "call_eins", "weather", '{"city":', '"Tromsø 🌌"}'),
    responsesEnd
  ].join(""),
  reasoningThenCalls: [
    responsesStart,
    responsesReasoning(0, "Abwägen ⚖️"),
    responsesCall(1, "call_eins", "weather", '{"city":', '"Tromsø 🌌"}'),
    responsesEnd
  ].join(""),
  errorInTheMiddle: [
    responsesStart,
    event("response.output_item.added", {
      output_index: 0,
      item: { id: "msg_river", type: "message", role: "assistant", status: "in_progress", content: [] }
    }),
    event("response.output_text.delta", {
      item_id: "msg_river",
      output_index: 0,
      content_index: 0,
      delta: "Bis hier"
    }),
    event("error", {
      code: "server_error",
      message: "The engine ran dry.",
      param: null,
      sequence_number: 4
    })
  ].join("")
}

export const anthropicStart = event("message_start", {
  message: {
    id: "msg_fluss",
    type: "message",
    role: "assistant",
    model: "rill-3",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: {
      input_tokens: 70,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 24,
      output_tokens: 2
    }
  }
})

export const block = (index: number, content_block: object, ...deltas: ReadonlyArray<object>): string =>
  [
    event("content_block_start", { index, content_block }),
    ...deltas.map(delta => event("content_block_delta", { index, delta })),
    event("content_block_stop", { index })
  ].join("")

export const textBlock = (index: number, ...texts: ReadonlyArray<string>): string =>
  block(index, { type: "text", text: "" }, ...texts.map(text => ({ type: "text_delta", text })))

export const anthropicEnd = (stop_reason: string): string =>
  event("message_delta", { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 57 } }) +
  event("message_stop", {})

const ping = event("ping", {})

/** Anthropic's messages. */
export const anthropic = {
  text: anthropicStart + ping + textBlock(0, "Segel ", "setzen ⛵") + anthropicEnd("end_turn"),
  toolUse: [
    anthropicStart,
    ping,
    textBlock(0, "Moment, ", "ich schaue 👀."),
    block(
      1,
      { type: "tool_use", id: "toolu_eins", name: "weather", input: {} },
      { type: "input_json_delta", partial_json: "" },
      { type: "input_json_delta", partial_json: '{"city": "Zür' },
      { type: "input_json_delta", partial_json: 'ich 🏔️"}' }
    ),
    ping,
    block(
      2,
      { type: "tool_use", id: "toolu_zwei", name: "tide", input: {} },
      { type: "input_json_delta", partial_json: "" }
    ),
    anthropicEnd("tool_use")
  ].join(""),
  thinking: [
    anthropicStart,
    block(
      0,
      { type: "thinking", thinking: "", signature: "" },
      { type: "thinking_delta", thinking: "Erst die Gezeiten 🌊, " },
      { type: "thinking_delta", thinking: "dann der Wind." },
      { type: "signature_delta", signature: signatures.anthropic }
    ),
    block(1, { type: "redacted_thinking", data: signatures.redacted }),
    textBlock(2, "Segel setzen ⛵"),
    anthropicEnd("end_turn")
  ].join(""),
  /** Everything that a tool call must take along: signed thinking, redacted thinking, and then the calls. */
  thinkingThenCalls: [
    anthropicStart,
    block(
      0,
      { type: "thinking", thinking: "", signature: "" },
      { type: "thinking_delta", thinking: "Erst die Gezeiten 🌊." },
      { type: "signature_delta", signature: signatures.anthropic }
    ),
    block(1, { type: "redacted_thinking", data: signatures.redacted }),
    block(
      2,
      { type: "tool_use", id: "toolu_eins", name: "weather", input: {} },
      { type: "input_json_delta", partial_json: '{"city": "Zürich 🏔️"}' }
    ),
    anthropicEnd("tool_use")
  ].join(""),
  errorInTheMiddle: [
    anthropicStart,
    event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "Bis hier" } }),
    event("error", { error: { type: "overloaded_error", message: "Overloaded" } })
  ].join(""),
  /** Before anything was said. */
  errorAtTheStart: event("error", { error: { type: "overloaded_error", message: "Overloaded" } }),
  truncated: [
    anthropicStart,
    event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "Halb 🦊" } })
  ].join("")
}

export const geminiChunk = (
  parts: ReadonlyArray<object>,
  candidatesTokenCount: number,
  candidate: object = {}
): string =>
  withCrLf(
    data({
      candidates: [{ content: { parts, role: "model" }, index: 0, ...candidate }],
      usageMetadata: {
        promptTokenCount: 50,
        candidatesTokenCount,
        totalTokenCount: 50 + candidatesTokenCount + 7,
        thoughtsTokenCount: 7,
        cachedContentTokenCount: 11
      },
      modelVersion: "beck-4",
      responseId: "resp-beck"
    })
  )

/** Google's Gemini: CR LF, no end mark, calls without ids. */
export const gemini = {
  text:
    geminiChunk([{ text: "Über den " }], 3) +
    geminiChunk([{ text: "Bergen 🌄" }], 6, { finishReason: "STOP" }),
  calls: [
    geminiChunk([{ text: "Zwei Fragen 🧭.", thought: true }], 0),
    geminiChunk([{ text: "Ich sehe nach.", thoughtSignature: signatures.googleText }], 4),
    geminiChunk(
      [
        {
          functionCall: { name: "weather", args: { city: "Göteborg 🌉" } },
          thoughtSignature: signatures.google
        },
        { functionCall: { name: "tide", args: {} } }
      ],
      18
    ),
    geminiChunk([{ text: "" }], 18, { finishReason: "STOP" })
  ].join(""),
  /** The thought is signed, and so is the call. */
  thoughtThenCalls: [
    geminiChunk([{ text: "Erst denken 🧭.", thought: true, thoughtSignature: signatures.googleText }], 0),
    geminiChunk(
      [
        {
          functionCall: { name: "weather", args: { city: "Göteborg 🌉" } },
          thoughtSignature: signatures.google
        }
      ],
      9
    ),
    geminiChunk([{ text: "" }], 9, { finishReason: "STOP" })
  ].join(""),
  errorInTheMiddle:
    geminiChunk([{ text: "Bis hier" }], 3) +
    withCrLf(data({ error: { code: 503, message: "The engine ran dry.", status: "UNAVAILABLE" } })),
  truncated: geminiChunk([{ text: "Halb 🦊" }], 3)
}

/** How each API says no before it has begun to stream. */
export const refusals = {
  openai: {
    error: {
      message: "Slow down, please.",
      type: "rate_limit_error",
      param: null,
      code: "rate_limit_exceeded"
    }
  },
  anthropic: { type: "error", error: { type: "rate_limit_error", message: "Slow down, please." } },
  google: { error: { code: 429, message: "Slow down, please.", status: "RESOURCE_EXHAUSTED" } }
}
