/** Models by their names: the real packages over real HTTP, and what is told of names, keys and packages that do not work. */
import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import type { ModelPart } from "../../src/model/ModelPart.js"
import type { LanguageModel } from "../../src/model/ModelPort.js"
import { fromId, type ModelId } from "../../src/model/ModelRouter.js"
import { importPackage } from "../../src/model/router/routerPackages.js"
import { ModelError } from "../../src/protocol/Errors.js"
import { configurationError } from "../support/configurationError.js"
import { readAll, request } from "../support/readAnswer.js"
import { flush, latch, refuseUnhandledRejections } from "../support/readers.js"
import { families, runs } from "../support/routerFamilies.js"
import {
  ask,
  bareInstallation,
  fakePackage,
  messageOf,
  refusal,
  rejection,
  routerWith
} from "../support/routerSurroundings.js"
import * as Server from "../support/transcriptServer.js"
import { chat } from "../support/transcripts.js"
import { finishOf, playing, question } from "../support/wireRuns.js"

refuseUnhandledRejections()

const key = "sk-no-key-at-all"

/** Streams, and nothing more is asked of it. */
const sink = { doStream: () => undefined }

const textOf = (parts: ReadonlyArray<ModelPart>): string =>
  parts.map(part => (part.type === "text-delta" ? part.delta : "")).join("")

/** The model's request to a server that answers with this body, and what was read of it. */
const exchange = (reply: Server.Reply, makeModel: (url: string) => LanguageModel) =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* playing(reply)
      const read = yield* readAll(makeModel(server.url))
      return { ...read, request: yield* server.firstRequest }
    })
  )

/** The message that a name is refused with. */
const refused = (id: unknown): string =>
  // What a caller without types may hand over.
  messageOf(configurationError(() => routerWith()(id as ModelId)))

describe.each(families)("%s", (_, { api, id, keyHeader, keyValue, path, usage, variable }) => {
  const { body, said } = api.text

  it.live("answers, wherever its bytes are cut", () =>
    Effect.gen(function* () {
      const cut = [...Server.awkwardCuts(body), ...Server.cutsEvery(7, body)]
      const { failure, parts, request } = yield* exchange({ body, cut }, url => routerWith()({ id, url }))
      expect(failure).toBeUndefined()
      expect(textOf(parts)).toBe(said)
      expect(parts.filter(({ type }) => type === "finish")).toMatchObject([{ reason: "stop", usage }])
      expect(request.url).toBe(path)
    })
  )

  it.live("is sent the key of the environment, as it is at the time of the call", () =>
    Effect.gen(function* () {
      const variables: Record<string, string> = {}
      const { request } = yield* exchange({ body }, url => {
        const model = routerWith(variables)({ id, url })
        variables[variable] = ` ${key}\n`
        return model
      })
      expect(request.headers[keyHeader]).toBe(keyValue(key))
    })
  )

  it.live("is sent the key that is given before the one of the environment, and the headers", () =>
    Effect.gen(function* () {
      const { request } = yield* exchange({ body }, url =>
        routerWith({ [variable]: "another" })({
          id,
          url,
          apiKey: key,
          headers: { "X-Berth": "7", "x-tug": "é" }
        })
      )
      expect(request.headers).toMatchObject({ [keyHeader]: keyValue(key), "x-berth": "7", "x-tug": "é" })
    })
  )

  it.live("is sent no key that there is not, and none of the environment when the given one is empty", () =>
    Effect.gen(function* () {
      const none = yield* exchange({ body }, url => routerWith({ [variable]: " " })({ id, url }))
      expect(none.request.headers).not.toHaveProperty(keyHeader)
      const empty = yield* exchange({ body }, url => routerWith({ [variable]: key })({ id, url, apiKey: "" }))
      expect(empty.request.headers).not.toHaveProperty(keyHeader)
    })
  )

  it.live("fails with an error in the words of the name", () =>
    Effect.gen(function* () {
      const server = yield* playing({ status: 401, contentType: "application/json", body: "{}" })
      const model = routerWith()({ id, url: server.url, apiKey: key })
      const failure = yield* Effect.flip(readAll(model))
      expect(failure).toBeInstanceOf(ModelError)
      const { provider, modelId } = model
      expect(`${provider}/${modelId}`).toBe(id)
      expect(failure).toMatchObject({ reason: "request", statusCode: 401, provider, modelId })
    }).pipe(Effect.scoped)
  )

  it("needs a key where it is at home", async () => {
    const message = await refusal(routerWith({ [variable]: "" })({ id }))
    expect(message).toContain(`The model "${id}" needs a key. Set ${variable}`)
    expect(message).toContain(`give the key itself: { id: "${id}", apiKey }.`)
    expect(await refusal(routerWith({ [variable]: key })({ id, apiKey: " " }))).toBe(message)
  })
})

describe("a run of an agent", () => {
  it.live.each(runs)("over %s", ([_, { family, run }]) =>
    Effect.gen(function* () {
      const { api, id, keyHeader, keyValue, variable } = family
      const { calls, text } = api
      const replies = [calls.body, text.body].map(body => ({ body, cut: Server.cutsEvery(11, body) }))
      const server = yield* playing(...replies)
      const ran = yield* run(routerWith({ [variable]: key })({ id, url: server.url }), api)
      expect(ran.executed).toEqual(calls.made.map(({ args, toolName }) => ({ toolName, input: args })))
      expect(finishOf(ran.chunks).output.text).toBe(calls.said + text.said)
      const requested = ran.chunks.flatMap(chunk =>
        chunk.type === "step-start" ? [chunk.payload.request] : []
      )
      expect(requested.map(({ modelId, provider }) => `${provider}/${modelId}`)).toEqual([id, id])
      expect(server.requests.map(({ headers }) => headers[keyHeader])).toEqual(Array(2).fill(keyValue(key)))
      expect(JSON.stringify(server.requests[0]?.body)).toContain(question)
      expect(JSON.stringify(server.requests[1]?.body)).toContain("high 🌊")
      expect(JSON.stringify(ran.chunks)).not.toContain(key)
    }).pipe(Effect.scoped)
  )
})

describe("a server that speaks chat completions", () => {
  it.live("is asked for the usage, by the model's whole name", () =>
    Effect.gen(function* () {
      const { request } = yield* exchange({ body: chat.text }, url =>
        routerWith()({ id: "barn/meta/llama-3:8b", url: `${url}/v1/` })
      )
      expect(request.url).toBe("/v1/chat/completions")
      expect(request.body).toMatchObject({
        model: "meta/llama-3:8b",
        stream: true,
        stream_options: { include_usage: true }
      })
    })
  )

  it.live("is not asked for the usage when it refuses that, and tells it all the same", () =>
    Effect.gen(function* () {
      const { parts, request } = yield* exchange({ body: chat.text }, url =>
        routerWith()({ id: "mistral/mistral-large-latest", url })
      )
      expect(request.body).not.toHaveProperty("stream_options")
      expect(parts.at(-1)).toMatchObject({ type: "finish", usage: { inputTokens: 21, outputTokens: 13 } })
    })
  )

  it.live("is asked by the public function, with the environment of the process", () =>
    Effect.gen(function* () {
      const { request } = yield* exchange({ body: chat.text }, url => {
        const model = fromId({ id: "groq/llama-3.3-70b", url })
        vi.stubEnv("GROQ_API_KEY", key)
        return model
      })
      expect(request.headers["authorization"]).toBe(`Bearer ${key}`)
    }).pipe(Effect.ensuring(Effect.sync(() => vi.unstubAllEnvs())))
  )
})

describe("the package", () => {
  it("is loaded by the first answer, once for all models and all that ask at once", async () => {
    const { loaded, made } = fakePackage()
    const loads: Array<string> = []
    const gate = latch()
    const route = routerWith({ OPENAI_API_KEY: key }, async name => {
      loads.push(name)
      await gate.wait
      return loaded
    })
    const [first, second] = [route("openai/a"), route("openai/b")]
    await flush()
    expect(loads).toEqual([])
    const asked = [ask(first), ask(first), ask(second)]
    gate.open()
    await Promise.all(asked)
    await ask(second)
    expect(loads).toEqual(["@ai-sdk/openai"])
    expect(made[0]).toEqual({ apiKey: key, headers: {} })
  })

  it("is tried again when it could not be loaded, which everybody hears who waited", async () => {
    const { loaded } = fakePackage()
    let loads = 0
    const model = routerWith({ OPENAI_API_KEY: key }, async () => {
      if (++loads === 1) throw new Error("The disk is gone.")
      return loaded
    })("openai/a")
    const [first, second] = await Promise.all([refusal(model), refusal(model)])
    expect(second).toBe(first)
    expect(loads).toBe(1)
    await expect(ask(model)).resolves.toHaveProperty("source")
    expect(loads).toBe(2)
  })

  it("makes one model for one key, which converts a message once", async () => {
    const { asked, loaded, made } = fakePackage()
    const variables: Record<string, string> = { OPENAI_API_KEY: key }
    const model = routerWith(variables, async () => loaded)("openai/a")
    const file = { type: "file", data: "aGFsbG8=", mediaType: "image/png" } as const
    const pictured = request({ messages: [{ role: "user", content: [file] }] })
    const { signal } = new AbortController()
    for (const _ of [1, 2]) await ask(model, signal, pictured)
    expect(made).toHaveLength(1)
    expect(asked[1]?.prompt[0]).toBe(asked[0]?.prompt[0])
    variables["OPENAI_API_KEY"] = "sk-new"
    await ask(model, signal, pictured)
    expect(made).toMatchObject([{ apiKey: key }, { apiKey: "sk-new" }])
  })

  it("is asked nothing when nobody wants the answer any more by the time it is loaded", async () => {
    const gate = latch()
    const controller = new AbortController()
    await Effect.runPromise(
      Effect.gen(function* () {
        const server = yield* playing({ body: chat.text })
        const route = routerWith({}, async name => {
          await gate.wait
          return importPackage(name)
        })
        const begun = rejection(ask(route({ id: "barn/a", url: server.url }), controller.signal))
        controller.abort(new Error("Enough."))
        gate.open()
        expect(yield* Effect.promise(() => begun)).toMatchObject({ _tag: "ModelError", message: "Enough." })
        expect(server.requests).toEqual([])
      }).pipe(Effect.scoped)
    )
  })

  it.each([
    ["another export", { createSomething: () => undefined }],
    ["no function", { createOpenAI: "soon" }],
    ["a provider that is none", { createOpenAI: () => ({}) }],
    [
      "a model of another specification",
      { createOpenAI: () => () => ({ ...sink, specificationVersion: "v1" }) }
    ],
    [
      "a model that does not stream",
      { createOpenAI: () => () => ({ specificationVersion: "v4", doStream: "soon" }) }
    ]
  ])("is refused in a version that cannot be used: %s", async (_, loaded) => {
    expect(await refusal(routerWith({ OPENAI_API_KEY: key }, async () => loaded)("openai/a"))).toBe(
      "The package @ai-sdk/openai is there in a version that eddy cannot use. Update it: npm install @ai-sdk/openai@latest"
    )
  })

  it.each(["v2", "v3", "v4"] as const)("may make models of specification %s", async version => {
    const { loaded } = fakePackage(version)
    const model = routerWith({ OPENAI_API_KEY: key }, async () => loaded)("openai/a")
    await expect(ask(model)).resolves.toHaveProperty("source")
  })

  it("of Google is used by either name of its function", async () => {
    const { loaded } = fakePackage()
    for (const name of ["createGoogle", "createGoogleGenerativeAI"]) {
      const route = routerWith({ GEMINI_API_KEY: key }, async () => ({ [name]: loaded.createOpenAI }))
      await expect(ask(route("google/gemini-2.5-flash"))).resolves.toHaveProperty("source")
    }
  })

  it("is quoted when it makes no model", async () => {
    const createOpenAI = () => {
      throw new Error("baseURL must be a non-empty string.")
    }
    expect(
      await refusal(routerWith({ OPENAI_API_KEY: key }, async () => ({ createOpenAI }))("openai/a"))
    ).toBe(
      'The package @ai-sdk/openai makes no model "openai/a" (baseURL must be a non-empty string.). Check what it reads from the environment, or update it: npm install @ai-sdk/openai@latest'
    )
  })

  const missing = (name: string): string =>
    `needs the package ${name}, which is not installed. Run: npm install ${name}`

  it.each([
    ["Node", "Cannot find package '@ai-sdk/openai' imported from /srv/router.js"],
    ["a bundle", "Cannot find module '@ai-sdk/openai'\nRequire stack:\n- /srv/router.js"],
    ["Vite", 'Could not resolve "@ai-sdk/openai" imported by "eddy". Is it installed?']
  ])("is named with the command that installs it when it is missing: %s", async (_, message) => {
    const route = routerWith({ OPENAI_API_KEY: key }, () => Promise.reject(new Error(message)))
    expect(await refusal(route("openai/a"))).toBe(`The model "openai/a" ${missing("@ai-sdk/openai")}`)
  })

  it.each([
    [
      new Error("Cannot find package 'zod' imported from /srv/node_modules/@ai-sdk/openai/dist/index.js"),
      "zod"
    ],
    [new SyntaxError("Unexpected token\n    at secret.js:1"), "(Unexpected token)"],
    ["out of order", "(out of order)"],
    [undefined, "(it does not say why)"]
  ])("is told apart from one that is there but does not load: %s", async (cause, told) => {
    const message = await refusal(
      routerWith({ OPENAI_API_KEY: key }, () => Promise.reject(cause))("openai/a")
    )
    expect(message).toMatch(
      /^The package @ai-sdk\/openai is there, but fails while it is loaded \(.+\)\. Install it anew: /
    )
    expect(message).toContain(told)
    expect(message).not.toMatch(/secret|not installed/)
  })

  it("is needed neither to load eddy nor to name a model, and is found missing or broken by Node itself", async () => {
    const place = bareInstallation()
    try {
      place.install("@ai-sdk/anthropic", 'throw new Error("The harbour is closed.")')
      place.install("@ai-sdk/google", 'import "zod"')
      place.install("@ai-sdk/openai-compatible", "export const createOpenAICompatibles = 1")
      const told = await place.run(`
        import "./src/index.ts"
        import "./src/promise.ts"
        import { fromId } from "./src/model/ModelRouter.ts"
        const tell = async id => {
          const model = fromId({ id, url: "http://127.0.0.1:9" })
          try {
            await model.answer({ messages: [], tools: [], includeRawChunks: false }, new AbortController().signal)
          } catch (cause) {
            return cause.message
          }
        }
        console.log(JSON.stringify(await Promise.all(["openai/a", "anthropic/a", "google/a", "barn/a"].map(tell))))
      `)
      expect(told).toEqual([
        `The model "openai/a" ${missing("@ai-sdk/openai")}`,
        expect.stringMatching(/^The package @ai-sdk\/anthropic is there, .+ \(The harbour is closed\.\)\./),
        expect.stringMatching(
          /^The package @ai-sdk\/google is there, .+ \(Cannot find package 'zod' imported from /
        ),
        expect.stringMatching(
          /^The package @ai-sdk\/openai-compatible is there in a version that eddy cannot use\./
        )
      ])
    } finally {
      place.remove()
    }
  })
})

describe("a key", () => {
  it("of Google may be in either variable, its own before the other", async () => {
    const keys = async (variables: Readonly<Record<string, string>>) => {
      const { loaded, made } = fakePackage()
      await ask(
        routerWith(variables, async () => ({ createGoogle: loaded.createOpenAI }))("google/gemini-2.5-flash")
      )
      return made
    }
    expect(await keys({ GOOGLE_GENERATIVE_AI_API_KEY: "", GEMINI_API_KEY: "b" })).toMatchObject([
      { apiKey: "b" }
    ])
    expect(await keys({ GOOGLE_GENERATIVE_AI_API_KEY: "a", GEMINI_API_KEY: "b" })).toMatchObject([
      { apiKey: "a" }
    ])
    expect(await refusal(routerWith()("google/gemini-2.5-flash"))).toContain(
      "Set GOOGLE_GENERATIVE_AI_API_KEY or GEMINI_API_KEY, or give"
    )
  })

  it("that no header can carry is refused without being told", async () => {
    const torn = `${key}\nand more`
    const told = "has characters that no HTTP header can carry. Copy it anew."
    expect(await refusal(routerWith({ GROQ_API_KEY: torn })("groq/a"))).toBe(
      `The key of the model "groq/a" in GROQ_API_KEY ${told}`
    )
    expect(await refusal(routerWith()({ id: "groq/a", apiKey: "sk-…" }))).toBe(
      `The key of the model "groq/a" in \`apiKey\` ${told}`
    )
  })

  it.each(["ollama/llama3:8b", "lmstudio/qwen/qwen3-8b"])("is not needed for %s", async id => {
    const { loaded, made } = fakePackage()
    await ask(routerWith({}, async () => ({ createOpenAICompatible: loaded.createOpenAI }))({ id }))
    expect(made).toEqual([
      {
        name: id.split("/")[0],
        baseURL: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/v1$/),
        apiKey: "",
        headers: { Authorization: undefined },
        includeUsage: true
      }
    ])
  })
})

describe("a name", () => {
  it("is a language model at once", () => {
    expectTypeOf(fromId).returns.toEqualTypeOf<LanguageModel>()
    expectTypeOf(fromId).parameter(0).toEqualTypeOf<ModelId>()
    const { modelId, provider } = fromId("openrouter/anthropic/claude-sonnet-4.5:beta")
    expect({ modelId, provider }).toEqual({
      provider: "openrouter",
      modelId: "anthropic/claude-sonnet-4.5:beta"
    })
  })

  it.each([
    ["", 'The name of the model is empty. Write provider and model: "openai/gpt-5-mini".'],
    [" ", 'The name of the model is empty. Write provider and model: "openai/gpt-5-mini".'],
    ["gpt-5", 'The model "gpt-5" has no provider. Write the provider in front: "openai/gpt-5".'],
    ["claude-x", 'The model "claude-x" has no provider. Write the provider in front: "anthropic/claude-x".'],
    ["qwen3:8b", 'The model "qwen3:8b" has no provider. Write the provider in front: "ollama/qwen3:8b".'],
    ["/x", 'The model "/x" has no provider. Write the provider in front: "ollama/x".'],
    ["openai/", '"openai/" names no model. Write it behind the provider: "openai/gpt-5-mini".'],
    ["openrouter//x", 'The name of the model, "openrouter//x", has a slash too much. Write it without.'],
    ["openrouter/x/", 'The name of the model, "openrouter/x/", has a slash too much. Write it without.'],
    ["openai/gpt 5", 'The name of the model, "openai/gpt 5", has white space in it. Write it without.'],
    ["openai/gpt-5\n", 'The name of the model, "openai/gpt-5\\n", has white space in it. Write it without.'],
    [
      "z.ai/glm",
      'The provider "z.ai" cannot be called so. Name it with letters, digits, "-" and "_", beginning with a letter or a digit.'
    ]
  ])("that cannot work is refused with the remedy: %j", (id, message) => {
    expect(refused(id)).toBe(message)
    expect(refused({ id, url: "http://127.0.0.1:1" })).toBe(message)
  })

  it.each([undefined, null, 7, true, ["openai/gpt-5"], {}, { url: "http://127.0.0.1:1" }, { id: 5 }])(
    "is no name: %j",
    id => {
      expect(refused(id)).toBe(
        'The model is named neither by a string nor by { id, url, apiKey, headers } with a string as `id`. Write for example "openai/gpt-5-mini".'
      )
    }
  )

  it.each(["acme/a", "OpenAI/gpt-5", "gemini/gemini-2.5-flash", "constructor/a", "toString/a"])(
    "of a provider that nobody knows needs an address: %s",
    id => {
      const message = refused(id)
      expect(message).toContain(
        `The provider "${id.split("/")[0]}" is not known. Known are anthropic, cerebras, `
      )
      for (const name of ["openai", "google", "ollama", "openrouter", "xai."]) expect(message).toContain(name)
      expect(message).toContain(`named with its address: { id: "${id}", url: "https://…/v1" }.`)
      expect(routerWith()({ id, url: "http://127.0.0.1:1" }).provider).toBe(id.split("/")[0])
    }
  )

  const withUrl = (url: unknown): string => refused({ id: "barn/a", url })

  it.each(["", "127.0.0.1:8000", "/v1", "ftp://barn/v1", 8000, null])(
    "with an address that is none: %j",
    url => {
      expect(withUrl(url)).toBe(
        'The `url` of the model "barn/a" is no web address. Write one: "http://127.0.0.1:8000/v1".'
      )
    }
  )

  it.each([`http://user:${key}@barn/v1`, `http://barn/v1?key=${key}`, `http://barn/v1#${key}`])(
    "with a key in its address is refused without telling it: %s",
    url => {
      expect(withUrl(url)).toBe(
        'The `url` of the model "barn/a" has a user, a query or a fragment in it. Leave them out: a key belongs into `apiKey`, whatever else into `headers`.'
      )
    }
  )

  it("with the address of one thing too many", () => {
    expect(withUrl("http://barn/v1/chat/completions/")).toBe(
      'The `url` of the model "barn/a" ends with "/chat/completions". Leave that out: it is added.'
    )
  })

  it.each([
    [
      { baseURL: "x" },
      'The model "openai/a" has no option `baseURL`. Known options: id, url, apiKey, headers.'
    ],
    [{ apiKey: 7 }, 'The `apiKey` of the model "openai/a" is no string.'],
    [{ headers: "x" }, 'The `headers` of the model "openai/a" are no object.'],
    [{ headers: { "x-a": `${key}\n` } }, 'The header "x-a" of the model "openai/a" cannot be sent.'],
    [{ headers: { "x-a": 7 } }, 'The header "x-a" of the model "openai/a" cannot be sent.'],
    [{ headers: { "x a": "b" } }, 'The header "x a" of the model "openai/a" cannot be sent.']
  ])("with something wrong beside it: %j", (fields, message) => {
    expect(refused({ id: "openai/a", ...fields })).toContain(message)
    expect(refused({ id: "openai/a", ...fields })).not.toContain(key)
  })

  it("may stand beside what is undefined", () => {
    const nothing = { url: undefined, apiKey: undefined, headers: undefined }
    // As callers without `exactOptionalPropertyTypes` write it.
    expect(routerWith()({ id: "openai/a", ...nothing } as unknown as ModelId).modelId).toBe("a")
  })

  it("is not changed by whoever wrote it", async () => {
    const { loaded, made } = fakePackage()
    const headers: Record<string, string> = { "x-a": "1" }
    const model = routerWith({}, async () => loaded)({ id: "openai/a", apiKey: key, headers })
    headers["x-a"] = "2"
    await ask(model)
    expect(made).toEqual([{ apiKey: key, headers: { "x-a": "1" } }])
  })
})
