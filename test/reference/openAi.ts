/** A server on this machine that speaks OpenAI's Responses API, for code that names its model and has no key. */
import { once } from "node:events"
import { createServer } from "node:http"
import { text as readText } from "node:stream/consumers"

/** What a model says: a text, or calls of tools. */
type Answer = string | ReadonlyArray<{ readonly name: string; readonly args: unknown }>

/** Answers, in the order of a conversation, by a text that stands in it from its beginning. */
export type Scripts = Readonly<Record<string, ReadonlyArray<Answer>>>

interface Item {
  readonly type?: string
  readonly role?: string
}

const event = (type: string, data: object): string => `data: ${JSON.stringify({ type, ...data })}\n\n`

const textEvents = (text: string): string => {
  const item = { id: "msg_1", type: "message", role: "assistant" }
  const content = [{ type: "output_text", text, annotations: [] }]
  return [
    event("response.output_item.added", { output_index: 0, item: { ...item, content: [] } }),
    event("response.output_text.delta", { item_id: "msg_1", output_index: 0, delta: text, logprobs: [] }),
    event("response.output_item.done", { output_index: 0, item: { ...item, status: "completed", content } })
  ].join("")
}

const callEvents = (name: string, args: unknown, index: number): string => {
  const item = { id: `fc_${index}`, type: "function_call", call_id: `call_${index}`, name }
  const written = JSON.stringify(args)
  return [
    event("response.output_item.added", { output_index: index, item: { ...item, arguments: "" } }),
    event("response.function_call_arguments.delta", {
      item_id: item.id,
      output_index: index,
      delta: written
    }),
    event("response.output_item.done", {
      output_index: index,
      item: { ...item, status: "completed", arguments: written }
    })
  ].join("")
}

const eventsOf = (answer: Answer): string => {
  const response = { id: "resp_1", created_at: 1_780_000_000, model: "brook-2", service_tier: "default" }
  const usage = { input_tokens: 4, output_tokens: 2 }
  const said =
    typeof answer === "string"
      ? textEvents(answer)
      : answer.map(({ args, name }, index) => callEvents(name, args, index)).join("")
  return (
    event("response.created", { response }) +
    said +
    event("response.completed", { response: { ...response, usage, incomplete_details: null } })
  )
}

/** How often the model has answered already: what it says in one answer comes as items that follow each other. */
const answersIn = (input: ReadonlyArray<Item>): number => {
  const isSaid = ({ role, type }: Item): boolean => role === "assistant" || type === "function_call"
  return input.filter((item, index) => {
    const before = input[index - 1]
    return isSaid(item) && !(before !== undefined && isSaid(before))
  }).length
}

export interface Server {
  /** What `OPENAI_BASE_URL` must be. */
  readonly url: string
  readonly close: () => void
}

/** A request that no script foresees is refused, so that nobody tries it again. */
export const serve = async (scripts: Scripts): Promise<Server> => {
  const server = createServer(async (request, response) => {
    const body = await readText(request.setEncoding("utf8"))
    const input: ReadonlyArray<Item> = JSON.parse(body).input
    const [, script] = Object.entries(scripts).find(([text]) => body.includes(text)) ?? []
    const answer = script?.[answersIn(input)]
    if (request.url === "/v1/responses" && answer !== undefined) {
      response.writeHead(200, { "content-type": "text/event-stream" }).end(eventsOf(answer))
    } else {
      const error = { message: `No script foresees ${body}`, type: "invalid_request_error" }
      response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ error }))
    }
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/v1`,
    close: () => {
      server.close()
      server.closeAllConnections()
    }
  }
}
