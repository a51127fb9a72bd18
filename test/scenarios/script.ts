/** What a provider sends, written short: stream parts of the AI SDK, and a model that plays them. */
import type { LanguageModel } from "eddy"

/** A stream part, as a provider package makes it. */
export type Part = Readonly<Record<string, unknown>>

/** What else happens while an answer is streamed. */
type Event =
  /** Goes on when a reader has seen the chunk that is written like this; see `line`. */
  | { readonly until: string }
  /** Goes on when the call's signal fires. */
  | { readonly untilAborted: true }
  /** Never goes on, whatever the signal says. */
  | { readonly hangs: true }
  /** The stream itself fails. */
  | { readonly breaks: unknown }

export type Entry = Part | Event | ReadonlyArray<Part>

/** One call of the model. */
export type Answer =
  | {
      readonly entries: ReadonlyArray<Entry>
      /** What the result of the call holds beside the stream. */
      readonly result?: Readonly<Record<string, unknown>>
    }
  /** The call itself fails. */
  | { readonly throws: unknown }
  /** The call never comes to a stream. */
  | { readonly neverAnswers: true }

export const usage = (inputTokens: number, outputTokens: number): Part => ({
  inputTokens,
  outputTokens,
  totalTokens: inputTokens + outputTokens
})

/** A block of text that stays open. */
export const open = (id: string, ...deltas: ReadonlyArray<string>): ReadonlyArray<Part> => [
  { type: "text-start", id },
  ...deltas.map(delta => ({ type: "text-delta", id, delta }))
]

/** A whole block of text. */
export const text = (id: string, ...deltas: ReadonlyArray<string>): ReadonlyArray<Part> => [
  ...open(id, ...deltas),
  { type: "text-end", id }
]

/** A complete tool call; the arguments are text, whatever it says. */
export const call = (toolCallId: string, toolName: string, input: string, more: Part = {}): Part => ({
  type: "tool-call",
  toolCallId,
  toolName,
  input,
  ...more
})

/** Arguments as they are written, without the call that they end in. */
export const input = (
  id: string,
  toolName: string,
  ...deltas: ReadonlyArray<string>
): ReadonlyArray<Part> => [
  { type: "tool-input-start", id, toolName },
  ...deltas.map(delta => ({ type: "tool-input-delta", id, delta })),
  { type: "tool-input-end", id }
]

export const finish = (finishReason: unknown, tokens: unknown = usage(10, 5), more: Part = {}): Part => ({
  type: "finish",
  finishReason,
  usage: tokens,
  ...more
})

export const failure = (error: unknown): Part => ({ type: "error", error })

/** Nothing but these parts. */
export const bare = (...entries: ReadonlyArray<Entry>): Answer => ({
  entries: [{ type: "stream-start", warnings: [] }, ...entries]
})

/** These parts behind the metadata that most providers send first. */
export const answer = (id: string, ...entries: ReadonlyArray<Entry>): Answer =>
  bare({ type: "response-metadata", id, modelId: "brook-1", timestamp: new Date(0) }, ...entries)

/** Every call of the model, in order; or what a call (0-based) is answered with. */
export type Script = ReadonlyArray<Answer> | ((call: number) => Answer)

/** What a script needs to know of the run that plays it. */
export interface Stage {
  /** Resolves when a reader has seen the chunk that is written like this. */
  readonly seen: (line: string) => Promise<void>
}

const never = new Promise<never>(() => undefined)

const aborted = (signal: AbortSignal | undefined): Promise<void> =>
  new Promise(resolve => {
    if (signal?.aborted === true) resolve()
    else signal?.addEventListener("abort", () => resolve(), { once: true })
  })

async function* play(entries: ReadonlyArray<Entry>, stage: Stage, signal: AbortSignal | undefined) {
  for (const entry of entries.flat()) {
    if ("until" in entry) await stage.seen(String(entry["until"]))
    else if ("untilAborted" in entry) await aborted(signal)
    else if ("hangs" in entry) await never
    else if ("breaks" in entry) throw entry["breaks"]
    else yield entry
  }
}

/** A model that plays a script, and keeps what happens to it. */
export interface PlayedModel {
  readonly model: LanguageModel.AiSdkModel
  /** What it was called with. */
  readonly calls: ReadonlyArray<LanguageModel.AiSdkCallOptions>
  /** Parts that were pulled, in all calls. */
  readonly pulled: () => number
  /** Whether somebody cancelled one of its streams. */
  readonly isCancelled: () => boolean
}

export const modelOf = (
  script: Script,
  stage: Stage,
  specificationVersion: LanguageModel.AiSdkModel["specificationVersion"] = "v2"
): PlayedModel => {
  const calls: Array<LanguageModel.AiSdkCallOptions> = []
  let pulled = 0
  let isCancelled = false
  const streamOf = (entries: ReadonlyArray<Entry>, signal: AbortSignal | undefined) => {
    const parts = play(entries, stage, signal)
    return new ReadableStream<Part>(
      {
        pull: async controller => {
          const { done, value } = await parts.next()
          if (done === true) return controller.close()
          pulled++
          controller.enqueue(value)
        },
        cancel: () => {
          isCancelled = true
        }
      },
      { highWaterMark: 0 }
    )
  }
  const answerTo = (call: number): Answer => {
    const found = typeof script === "function" ? script(call) : script[call]
    if (found === undefined) throw new Error(`Call ${call + 1} is one too many.`)
    return found
  }
  const model: LanguageModel.AiSdkModel = {
    specificationVersion,
    provider: "brook",
    modelId: "brook-1",
    doStream: async options => {
      calls.push(options)
      const found = answerTo(calls.length - 1)
      if ("throws" in found) throw found.throws
      if ("neverAnswers" in found) return never
      return { stream: streamOf(found.entries, options.abortSignal), ...found.result }
    }
  }
  return { model, calls, pulled: () => pulled, isCancelled: () => isCancelled }
}
