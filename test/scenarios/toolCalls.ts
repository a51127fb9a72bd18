/** Scenarios of several steps: calls, arguments, outcomes, limits, what tools write. */
import { createTool } from "eddy/promise"
import { z } from "zod"
import { type Scenario, weather } from "./scenario.js"
import { type Answer, answer, bare, call, type Entry, finish, input, text, usage } from "./script.js"

/** Two answers that tell their metadata. */
const metadata = { metadata: "+response-metadata×2" }

/** An answer of these parts that ends with calls. */
const calling = (...entries: ReadonlyArray<Entry>): Answer => answer("r1", ...entries, finish("tool-calls"))

/** The last word of the second answer. */
const saying = (said: string, tokens = usage(10, 5)): Answer =>
  answer("r2", text("t2", said), finish("stop", tokens))

/** The same of a provider that tells nothing of its response. */
const justSaying = (said: string): Answer => bare(text("t2", said), finish("stop"))

/** Calls the weather and nothing else, as often as it is asked. */
const alwaysCalls = (number: number): Answer =>
  answer(`r${number}`, call(`call-${number}`, "weather", `{"city":"C${number}"}`), finish("tool-calls"))

const alwaysCallsLines = (number: number, end: string): string => `
  step-start
  response-metadata r${number}
  tool-call call-${number} weather {"city":"C${number}"}
  tool-result call-${number} weather {"city":"C${number}","temp":21}
  step-finish tool-calls${end} 10+5=15 "" call-${number}`

const city = z.object({ city: z.string() })

export const toolCalls: ReadonlyArray<Scenario> = [
  {
    id: "11",
    title: "a call, then an answer",
    script: [
      calling(text("t1", "Checking. "), call("call-1", "weather", '{"city":"Paris"}')),
      saying("It is 21C in Paris.", usage(20, 8))
    ],
    tools: () => ({ weather }),
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
      text-delta t2 "It is 21C in Paris."
      text-end t2
      step-finish stop 20+8=28 "It is 21C in Paris."
      finish stop 30+13=43 "Checking. It is 21C in Paris."`,
    peer: "start step-start text-start text-delta text-end tool-call tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: metadata
  },
  {
    id: "11b",
    title: "the same, generated",
    script: [
      calling(text("t1", "Checking. "), call("call-1", "weather", '{"city":"Paris"}')),
      saying("It is 21C in Paris.", usage(20, 8))
    ],
    tools: () => ({ weather }),
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
      text-delta t2 "It is 21C in Paris."
      text-end t2
      step-finish stop 20+8=28 "It is 21C in Paris."
      finish stop 30+13=43 "Checking. It is 21C in Paris."`
  },
  {
    id: "11c",
    title: "a provider that says stop, and calls",
    script: [
      answer("r1", call("call-1", "weather", '{"city":"Paris"}'), finish("stop")),
      saying("Done.", usage(20, 8))
    ],
    tools: () => ({ weather }),
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call call-1 weather {"city":"Paris"}
      tool-result call-1 weather {"city":"Paris","temp":21}
      step-finish tool-calls (said stop) → 10+5=15 "" call-1
      step-start
      response-metadata r2
      text-start t2
      text-delta t2 "Done."
      text-end t2
      step-finish stop 20+8=28 "Done."
      finish stop 30+13=43 "Done."`,
    peer: "start step-start tool-call tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: metadata
  },
  {
    id: "11e",
    title: "a provider that says tool-calls, and calls nothing",
    script: [calling(text("t1", "hm")), saying("Done.", usage(20, 8))],
    tools: () => ({ weather }),
    options: { maxSteps: 3 },
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "hm"
      text-end t1
      step-finish stop (said tool-calls) 10+5=15 "hm"
      finish stop (said tool-calls) 10+5=15 "hm"`,
    peer: "start step-start text-start text-delta text-end step-finish step-start text-start text-delta text-end step-finish finish",
    differences: {
      metadata: "+response-metadata",
      "calls-decide": "-step-start -text-start -text-delta -text-end -step-finish"
    }
  },
  {
    id: "11f",
    title: "a provider that says tool-calls, and nothing at all",
    script: () => calling(),
    tools: () => ({ weather }),
    options: { maxSteps: 3 },
    chunks: `
      start
      step-start
      response-metadata r1
      step-finish stop (said tool-calls) 10+5=15 ""
      finish stop (said tool-calls) 10+5=15 ""`,
    peer: "start step-start step-finish step-start step-finish step-start step-finish finish",
    differences: { metadata: "+response-metadata", "calls-decide": "-step-start×2 -step-finish×2" }
  },
  {
    id: "12",
    title: "two calls at once, the second is done first",
    script: [
      calling(call("call-1", "slow", '{"city":"A"}'), call("call-2", "fast", '{"city":"B"}')),
      saying("Both done.")
    ],
    tools: ({ seen }) => ({
      slow: createTool({
        id: "slow",
        inputSchema: city,
        execute: async input => {
          await seen('tool-result call-2 fast "fast:B"')
          return `slow:${input.city}`
        }
      }),
      fast: createTool({ id: "fast", inputSchema: city, execute: input => `fast:${input.city}` })
    }),
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call call-1 slow {"city":"A"}
      tool-call call-2 fast {"city":"B"}
      tool-result call-2 fast "fast:B"
      tool-result call-1 slow "slow:A"
      step-finish tool-calls → 10+5=15 "" call-1 call-2
      step-start
      response-metadata r2
      text-start t2
      text-delta t2 "Both done."
      text-end t2
      step-finish stop 10+5=15 "Both done."
      finish stop 20+10=30 "Both done."`,
    peer: "start step-start tool-call×2 tool-result#call-1 tool-result#call-2 step-finish step-start text-start text-delta text-end step-finish finish",
    differences: { ...metadata, "as-they-come": "-tool-result#call-1 +tool-result#call-1" }
  },
  {
    id: "12b",
    title: "two calls, one at a time",
    script: [
      calling(call("call-1", "a", '{"city":"A"}'), call("call-2", "b", '{"city":"B"}')),
      justSaying("ok")
    ],
    tools: () => {
      let running = 0
      const alone = (id: string) =>
        createTool({
          id,
          inputSchema: city,
          execute: async () => {
            running++
            await new Promise(resolve => setImmediate(resolve))
            if (running > 1) throw new Error("Not alone.")
            running--
            return id
          }
        })
      return { a: alone("a"), b: alone("b") }
    },
    options: { toolCallConcurrency: 1 },
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call call-1 a {"city":"A"}
      tool-call call-2 b {"city":"B"}
      tool-result call-1 a "a"
      tool-result call-2 b "b"
      step-finish tool-calls → 10+5=15 "" call-1 call-2
      step-start
      text-start t2
      text-delta t2 "ok"
      text-end t2
      step-finish stop 10+5=15 "ok"
      finish stop 20+10=30 "ok"`,
    peer: "start step-start tool-call×2 tool-result×2 step-finish step-start text-start text-delta text-end step-finish finish",
    differences: { metadata: "+response-metadata" }
  },
  {
    id: "13",
    title: "arguments as they are written, then the call",
    script: [
      calling(
        input("call-1", "weather", '{"ci', 'ty":"Pa', 'ris"}'),
        call("call-1", "weather", '{"city":"Paris"}', { providerMetadata: { mock: { sig: "x" } } })
      ),
      saying("Done.")
    ],
    tools: () => ({ weather }),
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call-input-streaming-start call-1 weather
      tool-call-delta call-1 "{\\"ci"
      tool-call-delta call-1 "ty\\":\\"Pa"
      tool-call-delta call-1 "ris\\"}"
      tool-call-input-streaming-end call-1
      tool-call call-1 weather {"city":"Paris"} ~{"mock":{"sig":"x"}}
      tool-result call-1 weather {"city":"Paris","temp":21}
      step-finish tool-calls → 10+5=15 "" call-1
      step-start
      response-metadata r2
      text-start t2
      text-delta t2 "Done."
      text-end t2
      step-finish stop 10+5=15 "Done."
      finish stop 20+10=30 "Done."`,
    peer: "start step-start tool-call-input-streaming-start tool-call-delta×3 tool-call-input-streaming-end tool-call tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: metadata
  },
  {
    id: "13b",
    title: "arguments that are written, and never sent as a call",
    script: [calling(input("call-1", "weather", '{"city":"Paris"}')), saying("Done.")],
    tools: () => ({ weather }),
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call-input-streaming-start call-1 weather
      tool-call-delta call-1 "{\\"city\\":\\"Paris\\"}"
      tool-call-input-streaming-end call-1
      tool-call call-1 weather {"city":"Paris"}
      tool-result call-1 weather {"city":"Paris","temp":21}
      step-finish tool-calls → 10+5=15 "" call-1
      step-start
      response-metadata r2
      text-start t2
      text-delta t2 "Done."
      text-end t2
      step-finish stop 10+5=15 "Done."
      finish stop 20+10=30 "Done."`,
    peer: "start step-start tool-call-input-streaming-start tool-call-delta tool-call-input-streaming-end tool-call tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: metadata
  },
  {
    id: "13d",
    title: "arguments of two calls that interleave",
    script: [
      calling(
        { type: "tool-input-start", id: "c1", toolName: "weather" },
        { type: "tool-input-start", id: "c2", toolName: "weather" },
        { type: "tool-input-delta", id: "c1", delta: '{"city":"A"}' },
        { type: "tool-input-delta", id: "c2", delta: '{"city":"B"}' },
        { type: "tool-input-end", id: "c2" },
        call("c2", "weather", '{"city":"B"}'),
        { type: "tool-input-end", id: "c1" },
        call("c1", "weather", '{"city":"A"}')
      ),
      saying("Done.")
    ],
    tools: () => ({ weather }),
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call-input-streaming-start c1 weather
      tool-call-input-streaming-start c2 weather
      tool-call-delta c1 "{\\"city\\":\\"A\\"}"
      tool-call-delta c2 "{\\"city\\":\\"B\\"}"
      tool-call-input-streaming-end c2
      tool-call c2 weather {"city":"B"}
      tool-call-input-streaming-end c1
      tool-call c1 weather {"city":"A"}
      tool-result c2 weather {"city":"B","temp":21}
      tool-result c1 weather {"city":"A","temp":21}
      step-finish tool-calls → 10+5=15 "" c2 c1
      step-start
      response-metadata r2
      text-start t2
      text-delta t2 "Done."
      text-end t2
      step-finish stop 10+5=15 "Done."
      finish stop 20+10=30 "Done."`,
    peer: "start step-start tool-call-input-streaming-start×2 tool-call-delta×2 tool-call-input-streaming-end tool-call tool-call-input-streaming-end tool-call tool-result#c2 tool-result#c1 step-finish step-start text-start text-delta text-end step-finish finish",
    differences: metadata
  },
  {
    id: "13e",
    title: "written arguments that are no JSON, for a tool that would take none",
    script: [
      calling(
        input("call-1", "opt", '{"path": "/tmp/x', " <<garbage"),
        call("call-1", "opt", '{"path": "/tmp/x <<garbage')
      ),
      justSaying("ok")
    ],
    tools: () => ({
      opt: createTool({
        id: "opt",
        inputSchema: z.object({ path: z.optional(z.string()) }),
        execute: given => ({ got: given })
      })
    }),
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call-input-streaming-start call-1 opt
      tool-call-delta call-1 "{\\"path\\": \\"/tmp/x"
      tool-call-delta call-1 " <<garbage"
      tool-call-input-streaming-end call-1
      tool-call call-1 opt
      tool-error call-1 opt InvalidToolArguments: The arguments for tool "opt" are no JSON (…). Write them again, complete.
      step-finish tool-calls → 10+5=15 "" call-1
      step-start
      text-start t2
      text-delta t2 "ok"
      text-end t2
      step-finish stop 10+5=15 "ok"
      finish stop 20+10=30 "ok"`,
    peer: "start step-start tool-call-input-streaming-start tool-call-delta×2 tool-call-input-streaming-end tool-call tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: { metadata: "+response-metadata", "not-executed": "-tool-result +tool-error" }
  },
  {
    id: "13f",
    title: "written arguments in single quotes",
    script: [
      calling(
        input("call-1", "weather", "{'city': ", "'Paris'}"),
        call("call-1", "weather", "{'city': 'Paris'}")
      ),
      justSaying("ok")
    ],
    tools: () => ({ weather }),
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call-input-streaming-start call-1 weather
      tool-call-delta call-1 "{'city': "
      tool-call-delta call-1 "'Paris'}"
      tool-call-input-streaming-end call-1
      tool-call call-1 weather
      tool-error call-1 weather InvalidToolArguments: The arguments for tool "weather" are no JSON (…). Write them again, complete.
      step-finish tool-calls → 10+5=15 "" call-1
      step-start
      text-start t2
      text-delta t2 "ok"
      text-end t2
      step-finish stop 10+5=15 "ok"
      finish stop 20+10=30 "ok"`,
    peer: "start step-start tool-call-input-streaming-start tool-call-delta×2 tool-call-input-streaming-end tool-call tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: { metadata: "+response-metadata", "not-executed": "-tool-result +tool-error" }
  },
  {
    id: "14",
    title: "a tool that throws",
    script: [calling(call("call-1", "boom", '{"city":"X"}')), saying("It failed.")],
    tools: () => ({
      boom: createTool({
        id: "boom",
        inputSchema: city,
        execute: () => {
          throw Object.assign(new Error("kaboom"), { code: "E_BOOM" })
        }
      })
    }),
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call call-1 boom {"city":"X"}
      tool-error call-1 boom Error: kaboom
      step-finish tool-calls → 10+5=15 "" call-1
      step-start
      response-metadata r2
      text-start t2
      text-delta t2 "It failed."
      text-end t2
      step-finish stop 10+5=15 "It failed."
      finish stop 20+10=30 "It failed."`,
    peer: "start step-start tool-call tool-error step-finish step-start text-start text-delta text-end step-finish finish",
    differences: metadata
  },
  {
    id: "14c",
    title: "a tool that returns nothing",
    script: [calling(call("call-1", "nothing", '{"city":"X"}')), saying("ok")],
    tools: () => ({
      nothing: createTool({ id: "nothing", inputSchema: city, execute: () => undefined })
    }),
    options: { maxSteps: 3 },
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call call-1 nothing {"city":"X"}
      tool-result call-1 nothing null
      step-finish tool-calls → 10+5=15 "" call-1
      step-start
      response-metadata r2
      text-start t2
      text-delta t2 "ok"
      text-end t2
      step-finish stop 10+5=15 "ok"
      finish stop 20+10=30 "ok"`,
    peer: "start step-start tool-call step-finish finish",
    differences: {
      ...metadata,
      "nothing-is-null": "+tool-result +step-finish +step-start +text-start +text-delta +text-end"
    }
  },
  {
    id: "15",
    title: "a call of a tool that there is not",
    script: [calling(call("call-1", "ghost", '{"a":1}')), saying("Oops.")],
    tools: () => ({ weather }),
    options: { maxSteps: 3 },
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call call-1 ghost {"a":1}
      tool-error call-1 ghost ToolNotFound: There is no tool "ghost". Available tools: weather.
      step-finish tool-calls → 10+5=15 "" call-1
      step-start
      response-metadata r2
      text-start t2
      text-delta t2 "Oops."
      text-end t2
      step-finish stop 10+5=15 "Oops."
      finish stop 20+10=30 "Oops."`,
    peer: "start step-start tool-call tool-error step-finish step-start text-start text-delta text-end step-finish finish",
    differences: metadata
  },
  {
    id: "15d",
    title: "a call of a tool that there is, beside one of a name that cannot be",
    script: [
      calling(call("call-1", "weather", '{"city":"x"}'), call("call-2", "creating:view", '{"a":1}')),
      saying("ok")
    ],
    tools: () => ({ weather }),
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call call-1 weather {"city":"x"}
      tool-call call-2 creating:view {"a":1}
      tool-error call-2 creating:view ToolNotFound: There is no tool "creating:view". Available tools: weather.
      tool-result call-1 weather {"city":"x","temp":21}
      step-finish tool-calls → 10+5=15 "" call-1 call-2
      step-start
      response-metadata r2
      text-start t2
      text-delta t2 "ok"
      text-end t2
      step-finish stop 10+5=15 "ok"
      finish stop 20+10=30 "ok"`,
    peer: "start step-start tool-call×2 tool-error tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: metadata
  },
  {
    id: "16b",
    title: "arguments that lack one",
    script: [calling(call("call-1", "weather", "{}")), saying("ok")],
    tools: () => ({ weather }),
    options: { maxSteps: 3 },
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call call-1 weather {}
      tool-error call-1 weather InvalidToolArguments: Invalid arguments for tool "weather": city: Invalid input: expected string, received undefined
      step-finish tool-calls → 10+5=15 "" call-1
      step-start
      response-metadata r2
      text-start t2
      text-delta t2 "ok"
      text-end t2
      step-finish stop 10+5=15 "ok"
      finish stop 20+10=30 "ok"`,
    peer: "start step-start tool-call tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: { ...metadata, "not-executed": "-tool-result +tool-error" }
  },
  {
    id: "17c",
    title: "arguments that are no text at all",
    script: [calling(call("call-1", "noargs", "")), saying("ok")],
    tools: () => ({ noargs: createTool({ id: "noargs", execute: () => "called" }) }),
    options: { maxSteps: 3 },
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call call-1 noargs {}
      tool-result call-1 noargs "called"
      step-finish tool-calls → 10+5=15 "" call-1
      step-start
      response-metadata r2
      text-start t2
      text-delta t2 "ok"
      text-end t2
      step-finish stop 10+5=15 "ok"
      finish stop 20+10=30 "ok"`,
    peer: "start step-start tool-call tool-error step-finish step-start text-start text-delta text-end step-finish finish",
    differences: { ...metadata, "no-text-no-arguments": "-tool-error +tool-result" }
  },
  {
    id: "17d",
    title: "arguments with a token of the model's behind them",
    script: [calling(call("call-1", "weather", '{"city":"Paris"}<|call|>')), saying("ok")],
    tools: () => ({ weather }),
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call call-1 weather
      tool-error call-1 weather InvalidToolArguments: The arguments for tool "weather" are no JSON (…). Write them again, complete.
      step-finish tool-calls → 10+5=15 "" call-1
      step-start
      response-metadata r2
      text-start t2
      text-delta t2 "ok"
      text-end t2
      step-finish stop 10+5=15 "ok"
      finish stop 20+10=30 "ok"`,
    peer: "start step-start tool-call tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: { ...metadata, "not-executed": "-tool-result +tool-error" }
  },
  {
    id: "18",
    title: "a call that the provider executes",
    script: [
      answer(
        "r1",
        call("srv-1", "web_search", '{"q":"x"}', { providerExecuted: true }),
        {
          type: "tool-result",
          toolCallId: "srv-1",
          toolName: "web_search",
          result: [{ url: "https://e.com" }],
          providerExecuted: true
        },
        text("t1", "Found it."),
        finish("stop")
      )
    ],
    options: { maxSteps: 3 },
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call srv-1 web_search by the provider {"q":"x"}
      tool-result srv-1 web_search by the provider [{"url":"https://e.com"}]
      text-start t1
      text-delta t1 "Found it."
      text-end t1
      step-finish stop 10+5=15 "Found it." srv-1
      finish stop 10+5=15 "Found it."`,
    peer: "start step-start tool-call tool-result text-start text-delta text-end step-finish finish",
    differences: { metadata: "+response-metadata" }
  },
  {
    id: "18b",
    title: "a call that the provider executes, and fails with",
    script: [
      answer(
        "r1",
        call("srv-1", "web_search", '{"q":"x"}', { providerExecuted: true }),
        {
          type: "tool-result",
          toolCallId: "srv-1",
          toolName: "web_search",
          result: { code: "overloaded" },
          isError: true,
          providerExecuted: true
        },
        text("t1", "Failed."),
        finish("stop")
      )
    ],
    options: { maxSteps: 3 },
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call srv-1 web_search by the provider {"q":"x"}
      tool-result srv-1 web_search by the provider is an error {"code":"overloaded"}
      text-start t1
      text-delta t1 "Failed."
      text-end t1
      step-finish stop 10+5=15 "Failed." srv-1
      finish stop 10+5=15 "Failed."`,
    peer: "start step-start tool-call tool-result text-start text-delta text-end step-finish finish",
    differences: { metadata: "+response-metadata" }
  },
  {
    id: "18c",
    title: "a result that the provider tells one answer later",
    script: [
      calling(
        call("srv-1", "web_search", '{"q":"x"}', { providerExecuted: true }),
        call("call-1", "weather", '{"city":"Paris"}')
      ),
      answer(
        "r2",
        {
          type: "tool-result",
          toolCallId: "srv-1",
          toolName: "web_search",
          result: "late",
          providerExecuted: true
        },
        text("t1", "Done."),
        finish("stop")
      )
    ],
    tools: () => ({ weather }),
    options: { maxSteps: 4 },
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call srv-1 web_search by the provider {"q":"x"}
      tool-call call-1 weather {"city":"Paris"}
      tool-result call-1 weather {"city":"Paris","temp":21}
      step-finish tool-calls → 10+5=15 "" srv-1 call-1
      step-start
      response-metadata r2
      tool-result srv-1 web_search by the provider "late"
      text-start t1
      text-delta t1 "Done."
      text-end t1
      step-finish stop 10+5=15 "Done."
      finish stop 20+10=30 "Done."`,
    peer: "start step-start tool-call×2 tool-result step-finish step-start tool-result text-start text-delta text-end step-finish finish",
    differences: metadata
  },
  {
    id: "19",
    title: "at most two steps",
    script: number =>
      answer(
        `r${number}`,
        text(`t${number}`, `step ${number + 1}. `),
        call(`call-${number}`, "weather", `{"city":"C${number}"}`),
        finish("tool-calls")
      ),
    tools: () => ({ weather }),
    options: { maxSteps: 2 },
    chunks: `
      start
      step-start
      response-metadata r0
      text-start t0
      text-delta t0 "step 1. "
      text-end t0
      tool-call call-0 weather {"city":"C0"}
      tool-result call-0 weather {"city":"C0","temp":21}
      step-finish tool-calls → 10+5=15 "step 1. " call-0
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "step 2. "
      text-end t1
      tool-call call-1 weather {"city":"C1"}
      tool-result call-1 weather {"city":"C1","temp":21}
      step-finish tool-calls by max-steps 10+5=15 "step 2. " call-1
      finish tool-calls by max-steps 20+10=30 "step 1. step 2. "`,
    peer: "start step-start text-start text-delta text-end tool-call tool-result step-finish step-start text-start text-delta text-end tool-call tool-result step-finish finish",
    differences: metadata
  },
  {
    id: "19b",
    title: "five steps, unless said otherwise",
    script: alwaysCalls,
    tools: () => ({ weather }),
    chunks: `
      start
      ${[0, 1, 2, 3].map(number => alwaysCallsLines(number, " →").trim()).join("\n")}
      ${alwaysCallsLines(4, " by max-steps").trim()}
      finish tool-calls by max-steps 50+25=75 ""`,
    peer: "start step-start tool-call tool-result step-finish step-start tool-call tool-result step-finish step-start tool-call tool-result step-finish step-start tool-call tool-result step-finish step-start tool-call tool-result step-finish finish",
    differences: { metadata: "+response-metadata×5" }
  },
  {
    id: "19c",
    title: "at most one step",
    script: alwaysCalls,
    tools: () => ({ weather }),
    options: { maxSteps: 1 },
    chunks: `
      start
      ${alwaysCallsLines(0, " by max-steps").trim()}
      finish tool-calls by max-steps 10+5=15 ""`,
    peer: "start step-start tool-call tool-result step-finish finish",
    differences: { metadata: "+response-metadata" }
  },
  {
    id: "20",
    title: "until a result says so",
    script: alwaysCalls,
    tools: () => ({ weather }),
    options: {
      stopWhen: ({ steps }) =>
        steps.at(-1)?.toolResults.some(({ payload }) => JSON.stringify(payload.result).includes("C1")) ===
        true
    },
    chunks: `
      start
      ${alwaysCallsLines(0, " →").trim()}
      ${alwaysCallsLines(1, " by stop-when").trim()}
      finish tool-calls by stop-when 20+10=30 ""`,
    peer: "start step-start tool-call tool-result step-finish step-start tool-call tool-result step-finish finish",
    differences: metadata
  },
  {
    id: "21",
    title: "a tool of the client's",
    script: [calling(call("call-1", "pick", '{"city":"P"}'))],
    tools: () => ({ pick: createTool({ id: "pick", inputSchema: city }) }),
    options: { maxSteps: 3 },
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call call-1 pick {"city":"P"}
      step-finish tool-calls by client-tool 10+5=15 "" call-1
      finish tool-calls by client-tool 10+5=15 ""`,
    peer: "start step-start tool-call step-finish finish",
    differences: { metadata: "+response-metadata" }
  },
  {
    id: "22",
    title: "a tool that writes",
    script: [calling(call("call-1", "w", '{"city":"X"}')), saying("ok")],
    tools: () => ({
      w: createTool({
        id: "w",
        inputSchema: city,
        execute: async (_, { writer }) => {
          await writer.write({ type: "progress", pct: 10 })
          await writer.custom({ type: "data-progress", data: { pct: 50 } })
          await writer.custom({ type: "data-tmp", data: 1, transient: true })
          await writer.write("a plain string")
          return "written"
        }
      })
    }),
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call call-1 w {"city":"X"}
      tool-output (USER) call-1 {"type":"progress","pct":10}
      data-progress (USER) {"pct":50}
      data-tmp (USER) 1 transient
      tool-output (USER) call-1 "a plain string"
      tool-result call-1 w "written"
      step-finish tool-calls → 10+5=15 "" call-1
      step-start
      response-metadata r2
      text-start t2
      text-delta t2 "ok"
      text-end t2
      step-finish stop 10+5=15 "ok"
      finish stop 20+10=30 "ok"`,
    peer: "start step-start tool-call tool-output data-progress data-tmp tool-output tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: metadata
  },
  {
    id: "24",
    title: "two steps that use one call id",
    script: [
      calling(call("call-1", "weather", '{"city":"A"}')),
      answer("r2", call("call-1", "weather", '{"city":"B"}'), finish("tool-calls")),
      answer("r3", text("t", "done"), finish("stop"))
    ],
    tools: () => ({ weather }),
    options: { maxSteps: 4 },
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call call-1 weather {"city":"A"}
      tool-result call-1 weather {"city":"A","temp":21}
      step-finish tool-calls → 10+5=15 "" call-1
      step-start
      response-metadata r2
      tool-call call-1:2 weather {"city":"B"}
      tool-result call-1:2 weather {"city":"B","temp":21}
      step-finish tool-calls → 10+5=15 "" call-1:2
      step-start
      response-metadata r3
      text-start t
      text-delta t "done"
      text-end t
      step-finish stop 10+5=15 "done"
      finish stop 30+15=45 "done"`,
    peer: "start step-start tool-call tool-result step-finish step-start tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: { metadata: "+response-metadata×3", "own-ids": "+tool-call" }
  },
  {
    id: "25",
    title: "a tool that takes no arguments",
    script: [calling(call("c1", "pretty", "{}")), justSaying("ok")],
    tools: () => ({ pretty: createTool({ id: "pretty", execute: () => 1 }) }),
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call c1 pretty {}
      tool-result c1 pretty 1
      step-finish tool-calls → 10+5=15 "" c1
      step-start
      text-start t2
      text-delta t2 "ok"
      text-end t2
      step-finish stop 10+5=15 "ok"
      finish stop 20+10=30 "ok"`,
    peer: "start step-start tool-call tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: { metadata: "+response-metadata" }
  },
  {
    id: "27",
    title: "written arguments of a number",
    script: [calling(input("c1", "h", '{"a"', ":1}"), call("c1", "h", '{"a":1}')), justSaying("ok")],
    tools: () => ({
      h: createTool({ id: "h", inputSchema: z.object({ a: z.number() }), execute: ({ a }) => a })
    }),
    chunks: `
      start
      step-start
      response-metadata r1
      tool-call-input-streaming-start c1 h
      tool-call-delta c1 "{\\"a\\""
      tool-call-delta c1 ":1}"
      tool-call-input-streaming-end c1
      tool-call c1 h {"a":1}
      tool-result c1 h 1
      step-finish tool-calls → 10+5=15 "" c1
      step-start
      text-start t2
      text-delta t2 "ok"
      text-end t2
      step-finish stop 10+5=15 "ok"
      finish stop 20+10=30 "ok"`,
    peer: "start step-start tool-call-input-streaming-start tool-call-delta×2 tool-call-input-streaming-end tool-call tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: { metadata: "+response-metadata" }
  }
]
