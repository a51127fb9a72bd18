/** Scenarios of retries, fallback models, time limits, steps that are prepared, sub-agents and memory. */
import type { StreamOptions } from "eddy/promise"
import { type Scenario, weather } from "./scenario.js"
import { type Answer, answer, call, failure, finish, open, type Script, text, usage } from "./script.js"

export interface WideScenario extends Omit<Scenario, "options"> {
  readonly options?: Scenario["options"] &
    Pick<StreamOptions, "activeTools" | "maxRetries" | "timeouts" | "memory"> & {
      readonly prepareStep?: (state: {
        readonly stepNumber: number
      }) => Pick<StreamOptions, "activeTools" | "toolChoice">
    }
  /** The agent's own `maxRetries`. */
  readonly agentRetries?: number
  /** The model to fall back on. */
  readonly fallback?: Script
  /** The model of the agent below, which is called `helper`. */
  readonly helper?: Script
  /** How often each model is called: the first, and the one to fall back on or the one of the agent below. */
  readonly calls: ReadonlyArray<number>
  /** For each call of the first model: the tools that it is offered, and what it is told to choose. */
  readonly offered?: ReadonlyArray<string>
  /** What is said next on the thread, the answer to it, and what the model is told then: role and text. */
  readonly next?: { readonly input: string; readonly answer: Answer; readonly told: ReadonlyArray<string> }
  /** What the thread holds at the end of the first run: role and text, or the calls. */
  readonly stored?: ReadonlyArray<string>
  /** How many messages the thread holds when a chunk is told. */
  readonly storedAt?: Readonly<Record<string, number>>
}

const metadata = { metadata: "+response-metadata" }

const twice = { metadata: "+response-metadata×2" }

const memory = { thread: "th-1", resource: "user-1" }

/** A refusal as provider packages make it. */
const rateLimited = (): Error =>
  Object.assign(new Error("rate limited"), {
    name: "AI_APICallError",
    url: "https://api.example.com",
    requestBodyValues: {},
    statusCode: 429,
    isRetryable: true
  })

const neverAnswered = `
  start
  step-start
  error ModelError: rate limited
  finish error ?+?=? ""`

const cutShort = (message: string): string => `
  start
  step-start
  response-metadata r1
  text-start t1
  text-delta t1 "half "
  text-end t1
  error ModelError: ${message}
  finish error ?+?=? "half "`

const recovered: ReadonlyArray<Answer> = [answer("f1", text("t1", "from fallback"), finish("stop"))]

export const wide: ReadonlyArray<WideScenario> = [
  {
    id: "15b",
    title: "a call of a tool that is not active",
    script: [
      answer("r1", call("call-1", "other", '{"city":"x"}'), finish("tool-calls")),
      answer("r2", text("t2", "Oops."), finish("stop"))
    ],
    tools: () => ({ weather, other: weather }),
    options: { maxSteps: 3, activeTools: ["weather"] },
    calls: [2],
    offered: ["weather", "weather"],
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call call-1 other {"city":"x"}
      tool-error call-1 other ToolNotFound: There is no tool "other". Available tools: weather.
      step-finish tool-calls → 10+5=15 "" call-1
      step-start
      response-metadata r2
      text-start t2
      text-delta t2 "Oops."
      text-end t2
      step-finish stop 10+5=15 "Oops."
      finish stop 20+10=30 "Oops."`,
    peer: "start step-start tool-call tool-error step-finish step-start text-start text-delta text-end step-finish finish",
    differences: twice
  },
  {
    id: "20b",
    title: "steps that are prepared: a tool that must be called, then none",
    script: [
      answer("r1", call("call-1", "weather", '{"city":"P"}'), finish("tool-calls")),
      answer("r2", text("t", "ok"), finish("stop"))
    ],
    tools: () => ({ weather }),
    options: {
      maxSteps: 3,
      prepareStep: ({ stepNumber }) =>
        stepNumber === 0 ? { toolChoice: { type: "tool", toolName: "weather" } } : { activeTools: [] }
    },
    calls: [2],
    offered: ["weather tool", ""],
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call call-1 weather {"city":"P"}
      tool-result call-1 weather {"city":"P","temp":21}
      step-finish tool-calls → 10+5=15 "" call-1
      step-start
      response-metadata r2
      text-start t
      text-delta t "ok"
      text-end t
      step-finish stop 10+5=15 "ok"
      finish stop 20+10=30 "ok"`,
    peer: "start step-start tool-call tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: twice
  },
  {
    id: "23",
    title: "an agent below, called as a tool",
    script: [
      answer("r1", call("call-1", "agent-helper", '{"prompt":"please help"}'), finish("tool-calls")),
      answer("r2", text("t2", "Final."), finish("stop"))
    ],
    helper: [answer("h1", text("s1", "Sub ", "answer"), finish("stop", usage(7, 3)))],
    calls: [2, 1],
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call call-1 agent-helper {"prompt":"please help"}
      tool-output (USER) call-1 { start }
      tool-output (USER) call-1 { step-start }
      tool-output (USER) call-1 { response-metadata h1 }
      tool-output (USER) call-1 { text-start s1 }
      tool-output (USER) call-1 { text-delta s1 "Sub " }
      tool-output (USER) call-1 { text-delta s1 "answer" }
      tool-output (USER) call-1 { text-end s1 }
      tool-output (USER) call-1 { step-finish stop 7+3=10 "Sub answer" }
      tool-output (USER) call-1 { finish stop 7+3=10 "Sub answer" }
      tool-result call-1 agent-helper {"text":"Sub answer"}
      step-finish tool-calls → 17+8=25 "" call-1
      step-start
      response-metadata r2
      text-start t2
      text-delta t2 "Final."
      text-end t2
      step-finish stop 10+5=15 "Final."
      finish stop 27+13=40 "Final."`,
    peer: "start step-start tool-call tool-output×8 tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: { metadata: "+response-metadata×2 +tool-output" }
  },
  {
    id: "31c",
    title: "a call that fails, nobody knows why, and would not fail again",
    script: [{ throws: new Error("flaky") }, answer("r2", text("t1", "recovered"), finish("stop"))],
    options: { maxRetries: 2 },
    calls: [1],
    chunks: `
      start
      step-start
      error ModelError: flaky
      finish error ?+?=? ""`,
    peer: "start step-start text-start text-delta text-end step-finish finish",
    differences: { "known-to-pass": "-text-start -text-delta -text-end -step-finish +error" }
  },
  {
    id: "31e",
    title: "a refusal that may pass, tried once more",
    script: () => ({ throws: rateLimited() }),
    options: { maxRetries: 1 },
    calls: [2],
    chunks: neverAnswered,
    peer: "start step-start error step-finish finish",
    differences: { "cut-step": "-step-finish" }
  },
  {
    id: "31g",
    title: "a run that tries more often than its agent",
    script: () => ({ throws: rateLimited() }),
    agentRetries: 1,
    options: { maxRetries: 3 },
    calls: [4],
    chunks: neverAnswered,
    peer: "start step-start error step-finish finish",
    differences: { "cut-step": "-step-finish" }
  },
  {
    id: "32b",
    title: "an error part behind text, and a model to fall back on",
    script: [answer("r1", text("t1", "half "), failure(new Error("mid-stream")))],
    fallback: recovered,
    calls: [1, 0],
    chunks: cutShort("mid-stream"),
    peer: "start step-start text-start text-delta text-end error step-finish finish",
    differences: { ...metadata, "cut-step": "-step-finish" }
  },
  {
    id: "32c",
    title: "a stream that fails behind text, and a model to fall back on",
    script: [answer("r1", text("t1", "half "), { breaks: new Error("mid-stream") })],
    fallback: recovered,
    calls: [1, 0],
    chunks: cutShort("mid-stream"),
    peer: "start step-start text-start text-delta text-end step-start text-start text-delta text-end step-finish finish",
    differences: {
      ...metadata,
      "said-is-said": "-step-start -text-start -text-delta -text-end -step-finish +error"
    }
  },
  {
    // Of our own: what 32b and 32c come to as long as nothing was shown.
    id: "32-unshown",
    title: "a stream that fails before any text, and a model to fall back on",
    script: [answer("r1", open("t1"), { breaks: new Error("mid-stream") })],
    fallback: recovered,
    calls: [1, 1],
    chunks: `
      start
      step-start
      response-metadata f1
      text-start t1
      text-delta t1 "from fallback"
      text-end t1
      step-finish stop 10+5=15 "from fallback"
      finish stop 10+5=15 "from fallback"`
  },
  {
    id: "33h",
    title: "a step that takes too long",
    script: [answer("r1", open("t1", "one "), { hangs: true })],
    options: { timeouts: { step: 200 } },
    calls: [1],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "one "
      text-end t1
      error RunTimedOut: A step of the run took longer than the 200 ms that \`timeouts.step\` allows.
      finish error ?+?=? "one "`,
    peer: "start step-start text-start text-delta error step-finish finish",
    differences: { ...metadata, edges: "+text-end", "cut-step": "-step-finish" }
  },
  {
    id: "60",
    title: "two runs on one thread",
    script: [answer("r1", text("t1", "Hi Ada"), finish("stop"))],
    options: { memory },
    calls: [1],
    next: {
      input: "Who am I?",
      answer: answer("r2", text("t2", "You are Ada"), finish("stop")),
      told: ["user Hello", "assistant Hi Ada", "user Who am I?"]
    },
    stored: ["user Hello", "assistant Hi Ada"],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "Hi Ada"
      text-end t1
      step-finish stop 10+5=15 "Hi Ada"
      finish stop 10+5=15 "Hi Ada"`,
    peer: "start step-start text-start text-delta text-end step-finish finish",
    differences: metadata
  },
  {
    id: "60b",
    title: "a thread of a run with a tool",
    script: [
      answer(
        "r1",
        text("t1", "Checking. "),
        call("call-1", "weather", '{"city":"Paris"}'),
        finish("tool-calls")
      ),
      answer("r2", text("t2", "It is 21C."), finish("stop"))
    ],
    tools: () => ({ weather }),
    options: { memory },
    calls: [2],
    stored: ["user Hello", "assistant Checking. [call-1]", "tool [call-1]", "assistant It is 21C."],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "Checking. "
      text-end t1
      tool-call call-1 weather {"city":"Paris"}
      tool-result call-1 weather {"city":"Paris","temp":21}
      step-finish tool-calls → 10+5=15 "Checking. " call-1
      step-start
      response-metadata r2
      text-start t2
      text-delta t2 "It is 21C."
      text-end t2
      step-finish stop 10+5=15 "It is 21C."
      finish stop 20+10=30 "Checking. It is 21C."`,
    peer: "start step-start text-start text-delta text-end tool-call tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: twice
  },
  {
    id: "60c",
    title: "a thread of a run that fails in the answer",
    script: [answer("r1", open("t1", "partial "), failure(new Error("provider exploded")))],
    options: { memory },
    calls: [1],
    next: {
      input: "Again?",
      answer: answer("r2", text("t2", "Yes."), finish("stop")),
      told: ["user Hello", "user Again?"]
    },
    stored: ["user Hello"],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "partial "
      text-end t1
      error ModelError: provider exploded
      finish error ?+?=? "partial "`,
    peer: "start step-start text-start text-delta error step-finish finish",
    differences: { ...metadata, edges: "+text-end", "cut-step": "-step-finish" }
  },
  {
    id: "60d",
    title: "a thread of a run that is aborted in the answer",
    script: [
      answer(
        "r1",
        open("t1", "one "),
        { untilAborted: true },
        { type: "text-delta", id: "t1", delta: "two" },
        { type: "text-end", id: "t1" },
        finish("stop")
      )
    ],
    abort: 'text-delta t1 "one "',
    options: { memory },
    calls: [1],
    next: {
      input: "Go on",
      answer: answer("r2", text("t2", "two"), finish("stop")),
      told: ["user Hello", "assistant one ", "user Go on"]
    },
    stored: ["user Hello", "assistant one "],
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
    id: "60j",
    title: "a thread that grows with each step",
    script: [
      answer("r1", call("call-1", "weather", '{"city":"Paris"}'), finish("tool-calls")),
      answer(
        "r2",
        { until: 'step-finish tool-calls → 10+5=15 "" call-1' },
        text("t2", "It is 21C."),
        finish("stop")
      )
    ],
    tools: () => ({ weather }),
    options: { memory },
    calls: [2],
    stored: ["user Hello", "assistant [call-1]", "tool [call-1]", "assistant It is 21C."],
    storedAt: { 'step-finish tool-calls → 10+5=15 "" call-1': 3, 'finish stop 20+10=30 "It is 21C."': 4 },
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call call-1 weather {"city":"Paris"}
      tool-result call-1 weather {"city":"Paris","temp":21}
      step-finish tool-calls → 10+5=15 "" call-1
      step-start
      response-metadata r2
      text-start t2
      text-delta t2 "It is 21C."
      text-end t2
      step-finish stop 10+5=15 "It is 21C."
      finish stop 20+10=30 "It is 21C."`,
    peer: "start step-start tool-call tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: twice
  }
]
