/** Scenarios of runs that do not end by themselves: failures, aborts, callbacks that throw. */
import { createTool, type ToolsInput } from "eddy/promise"
import { z } from "zod"
import { type Scenario, type ToolStage, weather } from "./scenario.js"
import { type Answer, answer, bare, call, failure, finish, open, text } from "./script.js"

const metadata = { metadata: "+response-metadata" }

/** Some text, then an error part. */
const explodes: ReadonlyArray<Answer> = [
  answer("r1", open("t1", "partial "), failure(new Error("provider exploded")))
]

const explodesChunks = `
  start
  step-start
  response-metadata r1
  text-start t1
  text-delta t1 "partial "
  text-end t1
  error ModelError: provider exploded
  finish error ?+?=? "partial "`

/** The same failure, whoever reads what and when; the peer's stream depends on that. */
const exploding = (id: string, title: string): Scenario => ({
  id,
  title,
  script: explodes,
  chunks: explodesChunks,
  peer: "start step-start text-start text-delta error step-finish finish",
  differences: { ...metadata, edges: "+text-end", "cut-step": "-step-finish" }
})

/** A call that never becomes an answer. */
const refused = (id: string, title: string, error: unknown, message: string): Scenario => ({
  id,
  title,
  script: [{ throws: error }],
  chunks: `
    start
    step-start
    error ModelError: ${message}
    finish error ?+?=? ""`,
  peer: "start step-start error step-finish finish",
  differences: { "cut-step": "-step-finish" }
})

/** A tool that stops the run that called it, and goes on until it is told of that. */
const stopping =
  (goOn: () => string) =>
  ({ abort }: ToolStage): ToolsInput => ({
    slow: createTool({
      id: "slow",
      inputSchema: z.object({ city: z.string() }),
      execute: async (_, { abortSignal }) => {
        const told = new Promise(resolve => abortSignal.addEventListener("abort", resolve))
        abort()
        await told
        return goOn()
      }
    })
  })

const stoppedInTool: Pick<Scenario, "script" | "chunks"> = {
  script: [
    answer("r1", call("call-1", "slow", '{"city":"x"}'), finish("tool-calls")),
    bare(text("t", "after"), finish("stop"))
  ],
  chunks: `
    start
    step-start
    response-metadata r1
    tool-call call-1 slow {"city":"x"}
    tool-error call-1 slow RunAborted: The run was aborted: enough
    step-finish tool-calls 10+5=15 "" call-1
    abort "enough"
    finish aborted 10+5=15 ""`
}

const one: Pick<Scenario, "script" | "chunks"> = {
  script: [answer("r1", text("t1", "x"), finish("stop"))],
  chunks: `
    start
    step-start
    response-metadata r1
    text-start t1
    text-delta t1 "x"
    text-end t1
    step-finish stop 10+5=15 "x"
    finish stop 10+5=15 "x"`
}

const fail = (what: string) => (): never => {
  throw new Error(what)
}

export const failures: ReadonlyArray<Scenario> = [
  {
    id: "30c",
    title: "an error part that is a string",
    script: [answer("r1", failure("just a string"))],
    chunks: `
      start
      step-start
      response-metadata r1
      error ModelError: just a string
      finish error ?+?=? ""`,
    peer: "start step-start error step-finish finish",
    differences: { ...metadata, "cut-step": "-step-finish" }
  },
  {
    id: "30d",
    title: "a stream that fails itself",
    script: [answer("r1", open("t1", "partial "), { breaks: new Error("socket hang up") })],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "partial "
      text-end t1
      error ModelError: socket hang up
      finish error ?+?=? "partial "`,
    peer: "start step-start text-start text-delta error step-finish finish",
    differences: { ...metadata, edges: "+text-end", "cut-step": "-step-finish" }
  },
  exploding("30f", "an error part, and everything asked for at the end"),
  {
    id: "30h",
    title: "an error part and nothing else",
    script: [answer("r1", failure(new Error("provider exploded")))],
    chunks: `
      start
      step-start
      response-metadata r1
      error ModelError: provider exploded
      finish error ?+?=? ""`,
    peer: "start step-start error step-finish finish",
    differences: { ...metadata, "cut-step": "-step-finish" }
  },
  exploding("30i", "an error part, read as text"),
  exploding("30j-finishReason", "an error part, the reason asked for before"),
  exploding("30j-steps", "an error part, the steps asked for before"),
  {
    ...exploding("30j-toolCalls", "an error part, the calls asked for before"),
    peer: "start step-start text-start text-delta error step-finish",
    differences: {
      ...metadata,
      edges: "+text-end",
      "cut-step": "-step-finish",
      "always-finish": "+finish"
    }
  },
  exploding("30j-usage", "an error part, the usage asked for before"),
  refused("31", "a call that throws", new Error("network down"), "network down"),
  refused(
    "31d",
    "a call that is refused, and is not to be tried again",
    Object.assign(new Error("rate limited"), {
      name: "AI_APICallError",
      url: "https://api.example.com",
      requestBodyValues: {},
      statusCode: 400,
      isRetryable: false
    }),
    "rate limited"
  ),
  refused("31f", "a call that throws a string", "boom string", "boom string"),
  {
    id: "33",
    title: "aborted in the answer; the provider goes on",
    script: [
      answer(
        "r1",
        open("t1", "one ", "two "),
        { untilAborted: true },
        { type: "text-delta", id: "t1", delta: "three " },
        { type: "text-end", id: "t1" },
        finish("stop")
      )
    ],
    abort: 'text-delta t1 "two "',
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "one "
      text-delta t1 "two "
      text-end t1
      abort "enough"
      finish aborted ?+?=? "one two "`,
    peer: "start step-start text-start text-delta×2 abort finish",
    differences: { ...metadata, edges: "+text-end" }
  },
  {
    id: "33b",
    title: "aborted before it begins",
    script: [answer("r1", text("t1", "never"), finish("stop"))],
    abort: "before",
    chunks: `
      start
      abort "enough"
      finish aborted ?+?=? ""`,
    peer: "start abort finish"
  },
  {
    id: "33c",
    title: "aborted in a tool that returns all the same",
    ...stoppedInTool,
    tools: stopping(() => "finished anyway"),
    peer: "start step-start tool-call tool-result step-finish tool-result abort finish",
    differences: { ...metadata, "at-once": "-tool-result×2 +tool-error" }
  },
  {
    id: "33d",
    title: "aborted in a tool that throws then",
    ...stoppedInTool,
    tools: stopping(() => {
      throw new DOMException("This operation was aborted", "AbortError")
    }),
    peer: "start step-start tool-call step-finish finish",
    differences: { ...metadata, "at-once": "+tool-error +abort" }
  },
  {
    id: "33e",
    title: "aborted in an answer that hangs",
    script: [answer("r1", open("t1", "one "), { hangs: true })],
    abort: 'text-delta t1 "one "',
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "one "
      text-end t1
      abort "enough"
      finish aborted ?+?=? "one "`,
    peer: "start step-start text-start text-delta abort finish",
    differences: { ...metadata, edges: "+text-end" }
  },
  {
    id: "33f",
    title: "aborted while the call hangs",
    script: [{ neverAnswers: true }],
    abort: "start",
    chunks: `
      start
      step-start
      abort "enough"
      finish aborted ?+?=? ""`,
    peer: "start abort finish",
    differences: { "asked-is-begun": "+step-start" }
  },
  {
    id: "34",
    title: "onStepFinish throws",
    ...one,
    callbacks: { onStepFinish: fail("cb step") },
    peer: "start step-start text-start text-delta text-end",
    differences: { ...metadata, "only-listens": "+step-finish +finish" }
  },
  {
    id: "34c",
    title: "onChunk throws",
    ...one,
    callbacks: { onChunk: fail("cb chunk") },
    peer: "start step-start text-start text-delta error step-finish finish",
    differences: { ...metadata, "only-listens": "-error +text-end" }
  },
  {
    id: "34d",
    title: "a stop condition throws",
    script: [
      answer("r1", call("c", "weather", '{"city":"x"}'), finish("tool-calls")),
      bare(text("t", "after"), finish("stop"))
    ],
    tools: () => ({ weather }),
    options: { stopWhen: fail("cb stop") },
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call c weather {"city":"x"}
      tool-result c weather {"city":"x","temp":21}
      step-finish tool-calls 10+5=15 "" c
      error InvalidConfiguration: \`stopWhen\` failed: cb stop
      finish error 10+5=15 ""`,
    peer: "start step-start tool-call tool-result",
    differences: { ...metadata, "always-finish": "+step-finish +error +finish" }
  },
  {
    id: "34e",
    title: "onFinish throws",
    ...one,
    callbacks: { onFinish: fail("cb finish") },
    peer: "start step-start text-start text-delta text-end step-finish",
    differences: { ...metadata, "only-listens": "+finish" }
  },
  {
    id: "89c",
    title: "an error part behind a whole block",
    script: [answer("r1", text("t", "x"), failure(new Error("boom")))],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t
      text-delta t "x"
      text-end t
      error ModelError: boom
      finish error ?+?=? "x"`,
    peer: "start step-start text-start text-delta text-end error step-finish finish",
    differences: { ...metadata, "cut-step": "-step-finish" }
  }
]
