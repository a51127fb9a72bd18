/** The provider packages as the runs of an agent see them: what each is played, and what must come of it. */
import type { Usage } from "eddy"
import { type MakeSdkModel, sdk } from "./aiSdkModels.js"
import { anthropic, chat, gemini, responses } from "./transcripts.js"
import { type Face, faces, type Options, tideNow, weatherIn } from "./wireRuns.js"

interface Call {
  readonly toolCallId: string
  readonly toolName: string
  readonly args: Readonly<Record<string, unknown>>
}

/** One API behind one package. */
export interface Api {
  readonly name: string
  readonly makeModel: MakeSdkModel
  readonly providerOptions?: Options["providerOptions"]
  readonly text: {
    readonly body: string
    readonly said: string
    readonly usage: Usage.Usage
  }
  readonly calls: {
    readonly body: string
    readonly said: string
    readonly made: ReadonlyArray<Call>
    /** Calls and results in the second request, in call order. */
    readonly sent: object
    /** Stands in the event that ends the answer. */
    readonly endMark: string
    /** Up to the middle of the arguments of a call. */
    readonly torn: string
  }
  /** `said`: what of it is text. */
  readonly truncated: { readonly body: string | Uint8Array; readonly said: string }
  /** An error after "Bis hier", and what is known of it. */
  readonly broken: { readonly body: string; readonly error: object }
}

/** The body up to the end of the first event that has the mark in it. */
const upTo = (body: string, mark: string): string => {
  const end = /\r?\n\r?\n/g
  end.lastIndex = body.indexOf(mark)
  end.exec(body)
  return body.slice(0, end.lastIndex)
}

const ranDry = { message: "The engine ran dry." }

const chatApi = (name: string, makeModel: MakeSdkModel): Api => {
  const made = [
    { toolCallId: "call_nord", toolName: "weather", args: { city: "Malmö 🌊" } },
    { toolCallId: "call_süd", toolName: "tide", args: { port: "⚓ Kiel 🛟" } }
  ]
  return {
    name,
    makeModel,
    text: {
      body: chat.text,
      said: "Größe 日本 👩‍🚀 – ok ✓",
      usage: {
        inputTokens: 21,
        outputTokens: 13,
        totalTokens: 34,
        reasoningTokens: 5,
        cachedInputTokens: 8
      }
    },
    calls: {
      body: chat.parallelCalls,
      said: "",
      made,
      sent: {
        messages: [
          { role: "system" },
          { role: "user" },
          {
            role: "assistant",
            tool_calls: made.map(({ args, toolCallId, toolName }) => ({
              id: toolCallId,
              type: "function",
              function: { name: toolName, arguments: JSON.stringify(args) }
            }))
          },
          {
            role: "tool",
            tool_call_id: "call_nord",
            content: JSON.stringify(weatherIn("Malmö 🌊"))
          },
          { role: "tool", tool_call_id: "call_süd", content: tideNow }
        ]
      },
      endMark: '"finish_reason":"tool_calls"',
      torn: chat.truncatedCall
    },
    truncated: { body: chat.truncated, said: "Halb " },
    broken: { body: chat.errorInTheMiddle, error: ranDry }
  }
}

const chatApis: ReadonlyArray<Api> = [
  chatApi("openai-compatible, V2", sdk.chatV2),
  chatApi("openai-compatible, V3", sdk.chatV3),
  chatApi("openai-compatible, V4", sdk.chatV4),
  chatApi("openai chat, V4", sdk.openaiChat)
]

const responsesApi: Api = {
  name: "openai responses, V4",
  makeModel: sdk.openaiResponses,
  // Nothing is kept at OpenAI: the prompt holds everything itself.
  providerOptions: { openai: { store: false } },
  text: {
    body: responses.text,
    said: "Guten Morgen ☕️ – こんにちは 🏔️",
    usage: {
      inputTokens: 44,
      outputTokens: 30,
      totalTokens: 74,
      reasoningTokens: 12,
      cachedInputTokens: 16
    }
  },
  calls: {
    body: responses.calls,
    said: "Ich sehe nach.",
    made: [
      { toolCallId: "call_eins", toolName: "weather", args: { city: "Tromsø 🌌" } },
      { toolCallId: "call_zwei", toolName: "tide", args: {} }
    ],
    sent: {
      input: [
        {},
        { role: "user" },
        { role: "assistant", content: "Ich sehe nach." },
        { type: "function_call", call_id: "call_eins", name: "weather", arguments: '{"city":"Tromsø 🌌"}' },
        { type: "function_call", call_id: "call_zwei", name: "tide", arguments: "{}" },
        {
          type: "function_call_output",
          call_id: "call_eins",
          output: JSON.stringify(weatherIn("Tromsø 🌌"))
        },
        { type: "function_call_output", call_id: "call_zwei", output: tideNow }
      ]
    },
    endMark: '"type":"response.completed"',
    torn: upTo(responses.calls, '"delta":"\\"Tromsø')
  },
  truncated: { body: upTo(responses.text, '"delta":"Morgen'), said: "Guten Morgen ☕" },
  broken: { body: responses.errorInTheMiddle, error: ranDry }
}

const anthropicApi: Api = {
  name: "anthropic, V4",
  makeModel: sdk.anthropic,
  text: {
    body: anthropic.text,
    said: "Segel setzen ⛵",
    usage: { inputTokens: 94, outputTokens: 57, totalTokens: 151, cachedInputTokens: 24 }
  },
  calls: {
    body: anthropic.toolUse,
    said: "Moment, ich schaue 👀.",
    made: [
      { toolCallId: "toolu_eins", toolName: "weather", args: { city: "Zürich 🏔️" } },
      { toolCallId: "toolu_zwei", toolName: "tide", args: {} }
    ],
    sent: {
      messages: [
        { role: "user" },
        {
          role: "assistant",
          content: [
            { type: "text", text: "Moment, ich schaue 👀." },
            { type: "tool_use", id: "toolu_eins", name: "weather", input: { city: "Zürich 🏔️" } },
            { type: "tool_use", id: "toolu_zwei", name: "tide", input: {} }
          ]
        },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "toolu_eins",
              content: JSON.stringify(weatherIn("Zürich 🏔️"))
            },
            { type: "tool_result", tool_use_id: "toolu_zwei", content: tideNow }
          ]
        }
      ]
    },
    endMark: '"stop_reason":"tool_use"',
    torn: upTo(anthropic.toolUse, '"partial_json":"{\\"city')
  },
  truncated: { body: anthropic.truncated, said: "Halb 🦊" },
  broken: { body: anthropic.errorInTheMiddle, error: { message: "Overloaded", statusCode: 529 } }
}

const googleApi: Api = {
  name: "google, V4",
  makeModel: sdk.google,
  text: {
    body: gemini.text,
    said: "Über den Bergen 🌄",
    usage: {
      inputTokens: 50,
      outputTokens: 13,
      totalTokens: 63,
      reasoningTokens: 7,
      cachedInputTokens: 11
    }
  },
  calls: {
    body: gemini.calls,
    said: "Ich sehe nach.",
    made: [
      { toolCallId: "call_1", toolName: "weather", args: { city: "Göteborg 🌉" } },
      { toolCallId: "call_2", toolName: "tide", args: {} }
    ],
    sent: {
      contents: [
        { role: "user" },
        {
          role: "model",
          parts: [
            { text: "Zwei Fragen 🧭.", thought: true },
            { text: "Ich sehe nach." },
            { functionCall: { name: "weather", args: { city: "Göteborg 🌉" } } },
            { functionCall: { name: "tide", args: {} } }
          ]
        },
        {
          role: "user",
          parts: [
            { functionResponse: { name: "weather", response: { content: weatherIn("Göteborg 🌉") } } },
            { functionResponse: { name: "tide", response: { content: tideNow } } }
          ]
        }
      ]
    },
    endMark: '"finishReason":"STOP"',
    // A call comes in one event: what is torn is that event.
    torn: gemini.calls.slice(0, gemini.calls.indexOf("teborg"))
  },
  truncated: { body: gemini.truncated, said: "Halb 🦊" },
  broken: { body: gemini.errorInTheMiddle, error: { ...ranDry, statusCode: 503, isRetryable: true } }
}

const apis: ReadonlyArray<Api> = [...chatApis, responsesApi, anthropicApi, googleApi]

/** Every API, with its name. */
export const named: ReadonlyArray<readonly [string, Api]> = apis.map(api => [api.name, api])

/** Every API through both faces. */
export const everywhere: ReadonlyArray<readonly [string, { readonly face: Face; readonly api: Api }]> =
  faces.flatMap(([faceName, face]) =>
    apis.map(api => [`${api.name}, through ${faceName}`, { face, api }] as const)
  )
