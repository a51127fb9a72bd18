/** The four packages behind names of models, and a run of an agent whose model is any port. */
import { Agent, type Chunk, type LanguageModel, Tool, type Usage } from "eddy"
import { createTool, Agent as PromiseAgent } from "eddy/promise"
import { Effect, Schema, Stream } from "effect"
import { z } from "zod"
import { collect } from "./readers.js"
import { type Api, named } from "./wireApis.js"
import { type Executed, question, tideNow, weatherIn } from "./wireRuns.js"

/** A package, a name that leads to it, and how its requests are told. */
export interface Family {
  readonly packageName: string
  readonly id: string
  readonly variable: string
  /** The header of the key, and its value. */
  readonly keyHeader: string
  readonly keyValue: (key: string) => string
  /** Where the request goes, behind the address of the server. */
  readonly path: string
  readonly api: Api
  readonly usage: Usage.Usage
}

const apiOf = (name: string): Api => {
  const api = new Map(named).get(name)
  if (api === undefined) throw new Error(`No API is called ${name}.`)
  return api
}

const bearer = (key: string): string => `Bearer ${key}`

const bare = (key: string): string => key

const family = (apiName: string, rest: Omit<Family, "api" | "usage">): readonly [string, Family] => {
  const api = apiOf(apiName)
  return [rest.packageName, { ...rest, api, usage: api.text.usage }]
}

export const families: ReadonlyArray<readonly [string, Family]> = [
  family("openai responses, V4", {
    packageName: "@ai-sdk/openai",
    id: "openai/gpt-5",
    variable: "OPENAI_API_KEY",
    keyHeader: "authorization",
    keyValue: bearer,
    path: "/responses"
  }),
  family("anthropic, V4", {
    packageName: "@ai-sdk/anthropic",
    id: "anthropic/claude-sonnet-4-5",
    variable: "ANTHROPIC_API_KEY",
    keyHeader: "x-api-key",
    keyValue: bare,
    path: "/messages"
  }),
  family("google, V4", {
    packageName: "@ai-sdk/google",
    id: "google/gemini-2.5-flash",
    variable: "GOOGLE_GENERATIVE_AI_API_KEY",
    keyHeader: "x-goog-api-key",
    keyValue: bare,
    path: "/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
  }),
  family("openai-compatible, V4", {
    packageName: "@ai-sdk/openai-compatible",
    id: "openrouter/meta-llama/llama-3.3:free",
    variable: "OPENROUTER_API_KEY",
    keyHeader: "authorization",
    keyValue: bearer,
    path: "/chat/completions"
  })
]

/** What a run told, and which tools it executed. */
interface Run {
  readonly chunks: ReadonlyArray<Chunk.Chunk>
  readonly executed: ReadonlyArray<Executed>
}

type RunAgent = (model: LanguageModel.LanguageModel, api: Api) => Effect.Effect<Run>

const makeTools = () => {
  const executed: Array<Executed> = []
  const weather = async (input: { readonly city: string }) => {
    executed.push({ toolName: "weather", input })
    return weatherIn(input.city)
  }
  const tide = async (input: { readonly port?: string | undefined }) => {
    executed.push({ toolName: "tide", input })
    return tideNow
  }
  return { executed, weather, tide }
}

const optionsOf = ({ providerOptions }: Api) => (providerOptions === undefined ? {} : { providerOptions })

const throughEffect: RunAgent = (model, api) =>
  Effect.gen(function* () {
    const { executed, tide, weather } = makeTools()
    const agent = Agent.make({
      id: "pilot",
      model,
      tools: [
        Tool.make("weather", {
          input: Schema.Struct({ city: Schema.String }),
          execute: input => Effect.promise(() => weather(input))
        }),
        Tool.make("tide", {
          input: Schema.Struct({ port: Schema.optional(Schema.String) }),
          execute: input => Effect.promise(() => tide(input))
        })
      ]
    })
    const chunks = yield* Stream.runCollect(Agent.stream(agent, question, optionsOf(api)))
    return { chunks: [...chunks], executed }
  }).pipe(Effect.orDie)

const throughPromises: RunAgent = (model, api) =>
  Effect.promise(async () => {
    const { executed, tide, weather } = makeTools()
    const agent = new PromiseAgent({
      id: "pilot",
      model,
      tools: {
        weather: createTool({ id: "weather", inputSchema: z.object({ city: z.string() }), execute: weather }),
        tide: createTool({
          id: "tide",
          inputSchema: z.object({ port: z.string().optional() }),
          execute: tide
        })
      }
    })
    const output = await agent.stream(question, optionsOf(api))
    return { chunks: await collect(output.fullStream), executed }
  })

/** Every package through both faces. */
export const runs: ReadonlyArray<readonly [string, { readonly family: Family; readonly run: RunAgent }]> =
  families.flatMap(([name, family]) => [
    [`${name}, through eddy`, { family, run: throughEffect }] as const,
    [`${name}, through eddy/promise`, { family, run: throughPromises }] as const
  ])
