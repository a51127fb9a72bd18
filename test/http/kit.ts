/** What tests of the server share: a container that is served on loopback, and readers of what it says. */
import { type ServeOptions, type Serving, serve } from "eddy/http"
import { Agent, type AgentOptions, createTool, Eddy, type EddyOptions, InMemoryStore } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { onTestFinished } from "vitest"
import { memoryLogger } from "../support/readers.js"

const { finish, reply, toolCall } = ScriptedModel

/** An agent that answers with these turns. */
export const agentWith = (
  turns: ReadonlyArray<ScriptedModel.Turn>,
  options: Partial<AgentOptions> = {}
): Agent =>
  new Agent({ id: "helper", instructions: "Keep it secret.", model: ScriptedModel.make(turns), ...options })

/** A tool that runs in the background, and what it takes to finish. */
export const research = createTool({
  id: "research",
  description: "Looks something up.",
  background: { enabled: true },
  // Longer than the turn that calls it.
  execute: async () => new Promise(resolve => setTimeout(() => resolve({ found: "water" }), 80))
})

/** A turn that calls a tool. */
export const calling = (toolName: string, input: unknown = {}, toolCallId = "c1"): ScriptedModel.Turn => [
  toolCall(toolCallId, toolName, input),
  finish("tool-calls")
]

export const saying = (text: string): ScriptedModel.Turn => reply(text, { inputTokens: 3, outputTokens: 2 })

/** A container that is served, until the test is over. */
export const served = async (
  agents: Readonly<Record<string, Agent>>,
  options: ServeOptions = {},
  container: Partial<EddyOptions<Readonly<Record<string, Agent>>>> = {}
): Promise<{
  readonly eddy: Eddy
  readonly serving: Serving
  readonly url: string
  readonly api: string
}> => {
  const eddy = new Eddy({
    agents,
    storage: new InMemoryStore(),
    backgroundTasks: { enabled: true },
    logger: memoryLogger(),
    ...container
  })
  const serving = await serve(eddy, options)
  onTestFinished(async () => {
    await serving.close()
    await eddy.shutdown()
  })
  return { eddy, serving, url: serving.url, api: `${serving.url}/api` }
}

/** Posts JSON. */
export const post = (
  url: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
  signal?: AbortSignal
): Promise<Response> =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal })
  })

/** What a test reads of a chunk. */
export interface Told {
  readonly type: string
  readonly runId: string
  readonly payload: { readonly [key: string]: unknown }
}

/** The frames of a stream that has ended, without comments. */
export const framesOf = (text: string): ReadonlyArray<string> =>
  text.split("\n\n").filter(frame => frame !== "" && !frame.startsWith(":"))

/** The JSON of a frame. */
const dataOf = (frame: string): string => /^data: (.*)$/m.exec(frame)?.[1] ?? ""

/** The chunks of a stream that has ended. */
export const chunksOf = (text: string): ReadonlyArray<Told> =>
  framesOf(text)
    .map(dataOf)
    .filter(json => json !== "[DONE]")
    .map((json): Told => JSON.parse(json))

export const types = (chunks: ReadonlyArray<Told>): ReadonlyArray<string> => chunks.map(({ type }) => type)

/** Reads a response as it comes, until what was read satisfies. */
export const readUntil = async (
  reader: ReadableStreamDefaultReader<Uint8Array>,
  isEnough: (text: string) => boolean
): Promise<string> => {
  const decoder = new TextDecoder()
  let text = ""
  while (!isEnough(text)) {
    const { done, value } = await reader.read()
    if (done) break
    text += decoder.decode(value, { stream: true })
  }
  return text
}

/** The reader of a response's body. */
export const readerOf = (response: Response): ReadableStreamDefaultReader<Uint8Array> => {
  if (response.body === null) throw new Error("The response has no body.")
  return response.body.getReader()
}
