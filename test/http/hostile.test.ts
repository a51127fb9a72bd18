/** Requests that nobody sends who means well: each is refused in JSON, and the server goes on. */
import { connect } from "node:net"
import { FastCheck } from "effect"
import { describe, expect, it } from "vitest"
import { agentWith, post, saying, served } from "./kit.js"

/** What a server has said, as it came. */
interface Answer {
  readonly status: number
  readonly type: string
  readonly body: string
}

/** Sends bytes as they are, and reads until the server closes. */
const raw = (url: string, lines: ReadonlyArray<string>, body = ""): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port) })
    const pieces: Array<Buffer> = []
    socket.on("data", piece => pieces.push(piece))
    socket.on("error", reject)
    socket.on("close", () => {
      const [head = "", ...rest] = Buffer.concat(pieces).toString("utf8").split("\r\n\r\n")
      resolve({
        status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0),
        type: /^content-type: (.*)$/im.exec(head)?.[1] ?? "",
        body: rest.join("\r\n\r\n")
      })
    })
    socket.write(`${[...lines, "host: localhost", "connection: close"].join("\r\n")}\r\n\r\n`)
    socket.write(body)
  })

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const paths = [
  "/agents/helper/stream",
  "/agents/helper/generate",
  "/agents/helper/resume-stream",
  "/agents/helper/approve-tool-call",
  "/agents/helper/observe",
  "/agents/helper/chat",
  "/agents/helper/ag-ui",
  "/v1/chat/completions",
  "/v1/responses",
  "/memory/threads",
  "/runs/none/stop",
  "/background-tasks/none/resume"
]

const refusedIn = (body: string): boolean => isJson(body) && /^\{"error":/.test(body)

describe("hostile requests", () => {
  it("with bodies of any kind are refused in JSON", async () => {
    const { api } = await served({ helper: agentWith([]) })
    const keys = FastCheck.constantFrom(
      "__proto__",
      "constructor",
      "prototype",
      "toString",
      "messages",
      "memory",
      "runId",
      "toolCallId",
      "resumeData",
      "requestContext",
      "offset",
      "model",
      "input",
      "threadId",
      "id"
    )
    const { value } = FastCheck.letrec(tie => ({
      value: FastCheck.oneof(
        { maxDepth: 5 },
        FastCheck.constantFrom(null, true, -1, 1e308, "", "\ud800", "\u0000", "x".repeat(2000), "../../etc"),
        FastCheck.string({ unit: "binary" }),
        FastCheck.array(tie("value"), { maxLength: 4 }),
        FastCheck.array(FastCheck.tuple(keys, tie("value")), { maxLength: 4 }).map(
          // As text: an object literal would lose `__proto__`.
          pairs => ({ toJSON: undefined, pairs })
        )
      )
    }))
    const write = (of: unknown): string => {
      if (Array.isArray(of)) return `[${of.map(write).join(",")}]`
      if (typeof of === "object" && of !== null && "pairs" in of && Array.isArray(of.pairs)) {
        return `{${of.pairs.map(([key, item]) => `${JSON.stringify(key)}:${write(item)}`).join(",")}}`
      }
      return JSON.stringify(of)
    }
    const body = FastCheck.oneof(
      value.map(write),
      FastCheck.array(FastCheck.tuple(keys, value), { maxLength: 5 }).map(pairs => write({ pairs })),
      FastCheck.string({ unit: "binary" }),
      value.map(of => write(of).slice(0, -1))
    )
    const type = FastCheck.constantFrom(
      "application/json",
      "application/json; charset=utf-16",
      "application/vnd.x+json",
      "text/plain",
      "multipart/form-data",
      "",
      ";;;"
    )
    await FastCheck.assert(
      FastCheck.asyncProperty(
        FastCheck.constantFrom(...paths),
        body,
        type,
        async (path, text, contentType) => {
          const response = await fetch(`${api}${path}`, {
            method: "POST",
            headers: { "content-type": contentType },
            body: text
          })
          const said = await response.text()
          // To stop what there is not, and to make a thread, takes little.
          expect(response.status < 500, `${response.status} ${said}`).toBe(true)
          expect(isJson(said)).toBe(true)
          expect(response.headers.get("content-type")).toBe("application/json")
          if (!path.startsWith("/memory")) expect(response.status).toBeGreaterThanOrEqual(400)
        }
      ),
      { numRuns: 150 }
    )
    expect(Reflect.get({}, "isAdmin")).toBeUndefined()
  }, 60_000)

  it("nested ten thousand levels deep are refused", async () => {
    const { api } = await served({ helper: agentWith([]) })
    const levels = 10_000
    const deep: ReadonlyArray<readonly [open: string, close: string]> = [
      ["[", "]"],
      ['{"a":', "}"],
      ['{"type":"file","data":', "}"]
    ]
    for (const [open, close] of deep) {
      const nested = `${open.repeat(levels)}1${close.repeat(levels)}`
      for (const path of paths) {
        for (const body of [
          nested,
          `{"messages":${nested}}`,
          `{"model":"helper","messages":[{"role":"user","content":${nested}}]}`,
          `{"runId":"r","toolCallId":"c","resumeData":${nested}}`,
          `{"metadata":${nested}}`
        ]) {
          const response = await fetch(`${api}${path}`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body
          })
          const said = await response.text()
          expect([path, body.slice(0, 60), response.status >= 400 && response.status < 500]).toEqual([
            path,
            body.slice(0, 60),
            true
          ])
          expect(refusedIn(said)).toBe(true)
        }
      }
    }
  }, 60_000)

  it("with schemas that take long to look at, or ids that take long to keep, are refused", async () => {
    const clientOptions = ["tools", "structuredOutput"] as const
    const { api } = await served({ helper: agentWith([]) }, { clientOptions })
    const many = (value: unknown) =>
      Object.fromEntries(Array.from({ length: 10_001 }, (_, index) => [`p${index}`, value]))
    const user = { id: "m", role: "user", content: "Hello", parts: [{ type: "text", text: "Hello" }] }
    const assistant = { id: "x".repeat(300), role: "assistant", parts: [{ type: "text", text: "Hi" }] }
    const input = { messages: [{ role: "user", content: "Hello" }] }
    const fn = (parameters: object) => ({ type: "function", name: "pick", parameters })
    const asked = (schema: object): ReadonlyArray<readonly [path: string, field: string, body: object]> => [
      ["/agents/helper/stream", "clientTools", { ...input, clientTools: { pick: { parameters: schema } } }],
      ["/agents/helper/generate", "structuredOutput.schema", { ...input, structuredOutput: { schema } }],
      ["/agents/helper/chat", "tools", { messages: [user], tools: { pick: { parameters: schema } } }],
      [
        "/v1/chat/completions",
        "tools",
        { ...input, model: "helper", tools: [{ type: "function", function: fn(schema) }] }
      ],
      ["/v1/responses", "tools", { input: "Hello", model: "helper", tools: [fn(schema)] }],
      [
        "/v1/responses",
        "text.format",
        { input: "Hello", model: "helper", text: { format: { type: "json_schema", name: "n", schema } } }
      ]
    ]
    const schemas = [
      { type: "object", properties: many({}) },
      { type: "object", properties: { of: { pattern: "\\p{L}".repeat(10_000) } } },
      { type: "object", patternProperties: { ["\\p{L}".repeat(10_000)]: true } }
    ]
    const ids: ReturnType<typeof asked> = [
      ["/agents/helper/chat", "id", { id: "x".repeat(300), messages: [user] }],
      ["/agents/helper/chat", "messages.id", { id: "c", messages: [user, assistant] }]
    ]
    for (const [path, field, body] of [...schemas.flatMap(asked), ...ids]) {
      const response = await post(`${api}${path}`, body)
      const said: { readonly issues?: ReadonlyArray<{ readonly field: string }>; readonly error: unknown } =
        JSON.parse(await response.text())
      const named = said.issues?.[0]?.field ?? said.error
      expect([path, response.status, named]).toEqual([
        path,
        400,
        path.startsWith("/v1") ? expect.objectContaining({ param: field }) : field
      ])
    }
  })

  it("cannot reach into prototypes", async () => {
    const { api } = await served({ helper: agentWith([saying("Yes.")]) }, { clientContext: ["locale"] })
    const send = async (body: string) => {
      const response = await fetch(`${api}/agents/helper/generate`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body
      })
      return response.status
    }
    for (const key of ["__proto__", "constructor", "prototype"]) {
      expect(await send(`{"messages":"Hello","${key}":{"isAdmin":true}}`)).toBe(400)
      expect(await send(`{"messages":"Hello","requestContext":{"${key}":{"isAdmin":true}}}`)).toBe(400)
      expect(await send(`{"messages":"Hello","memory":{"thread":"t","resource":"r","${key}":{}}}`)).toBe(400)
      expect((await fetch(`${api}/agents/${key}`)).status).toBe(404)
    }
    expect(Reflect.get({}, "isAdmin")).toBeUndefined()
    expect((await post(`${api}/agents/helper/generate`, { messages: "Hello" })).status).toBe(200)
  })

  it("with any path and method are refused in JSON", async () => {
    const { api, url } = await served({ helper: agentWith([]) })
    const piece = FastCheck.oneof(
      FastCheck.constantFrom(
        "..",
        "%2e%2e",
        "%2F",
        "%00",
        "%",
        "%zz",
        "%ff",
        "%c0%af",
        "agents",
        "runs",
        "memory",
        "threads",
        "v1",
        "models",
        "*",
        ":agentId",
        "x".repeat(2000),
        "a b".replace(" ", "%20"),
        ";x=1",
        "\\"
      ),
      FastCheck.string({ unit: "grapheme-ascii" }).map(encodeURIComponent)
    )
    const path = FastCheck.array(piece, { maxLength: 6 }).map(pieces => `/api/${pieces.join("/")}`)
    const query = FastCheck.constantFrom(
      "",
      "?",
      "?page=-1",
      "?offset=NaN",
      "?perPage=1e9",
      "?%",
      "?=&=&",
      "?status=%ff"
    )
    const method = FastCheck.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "PURGE")
    await FastCheck.assert(
      FastCheck.asyncProperty(method, path, query, async (verb, at, asked) => {
        const { body, status, type } = await raw(url, [`${verb} ${at}${asked} HTTP/1.1`])
        const where = `${verb} ${at}${asked}: ${status} ${type} ${body}`
        const isFound = status === 200 && verb === "GET"
        expect(isFound || (status >= 400 && status < 500), where).toBe(true)
        // The answers to a browser's question, and to HEAD, have no body.
        if (verb !== "OPTIONS" && verb !== "HEAD")
          expect([where, type, /[{[]/.test(body)]).toEqual([where, "application/json", true])
      }),
      { numRuns: 150 }
    )
    expect((await fetch(`${api}/agents`)).status).toBe(200)
  }, 60_000)

  it("with large or broken heads are refused, and nobody else is", async () => {
    const { api, url } = await served({ helper: agentWith([]) })
    const huge = await raw(url, ["GET /api/agents HTTP/1.1", `x-large: ${"x".repeat(100_000)}`])
    expect(huge.status).toBe(431)
    const broken = await raw(url, ["GET /api/agents HTTP/1.1", "bad header line"])
    expect(broken.status).toBe(400)
    const nonsense = await raw(url, ["\u0000\u0001"])
    expect(nonsense.status).toBe(400)
    const lengths = ["-1", "1e9", "99999999999999999999"]
    for (const length of lengths) {
      const head = [
        "POST /api/agents/helper/stream HTTP/1.1",
        "content-type: application/json",
        `content-length: ${length}`
      ]
      const { status } = await raw(url, head, "{}")
      expect([length, status >= 400 && status < 500]).toEqual([length, true])
    }
    expect((await fetch(`${api}/agents`)).status).toBe(200)
  })
})
