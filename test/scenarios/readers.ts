/** Scenarios of readers: the run is plain, what matters is who reads it and when. See readers.test.ts. */
import { type Scenario, weather } from "./scenario.js"
import { type Answer, answer, call, failure, finish, open, text } from "./script.js"

const metadata = { metadata: "+response-metadata" }

const bigWorld: Pick<Scenario, "script" | "chunks"> = {
  script: [answer("r1", text("t1", "Hello ", "big ", "world"), finish("stop"))],
  chunks: `
    start
    step-start
    response-metadata r1
    text-start t1
    text-delta t1 "Hello "
    text-delta t1 "big "
    text-delta t1 "world"
    text-end t1
    step-finish stop 10+5=15 "Hello big world"
    finish stop 10+5=15 "Hello big world"`
}

const bigWorldPeer = "start step-start text-start text-delta×3 text-end step-finish finish"

const abPeer = "start step-start text-start text-delta×2 text-end step-finish finish"

/** Says `a`, and `b` only when a reader has seen `a`. */
const ab: Pick<Scenario, "script" | "chunks"> = {
  script: [
    answer(
      "r1",
      open("t1", "a"),
      { until: 'text-delta t1 "a"' },
      { type: "text-delta", id: "t1", delta: "b" },
      { type: "text-end", id: "t1" },
      finish("stop")
    )
  ],
  chunks: `
    start
    step-start
    response-metadata r1
    text-start t1
    text-delta t1 "a"
    text-delta t1 "b"
    text-end t1
    step-finish stop 10+5=15 "ab"
    finish stop 10+5=15 "ab"`
}

const numbers = Array.from({ length: 200 }, (_, number) => `${number} `)

const many: Pick<Scenario, "script" | "chunks"> = {
  script: [answer("r1", text("t1", ...numbers), finish("stop"))],
  chunks: `
    start
    step-start
    response-metadata r1
    text-start t1
    ${numbers.map(number => `text-delta t1 "${number}"`).join("\n")}
    text-end t1
    step-finish stop 10+5=15 "${numbers.join("")}"
    finish stop 10+5=15 "${numbers.join("")}"`
}

const speaksOnce: Answer = answer("r1", open("t1", "one "), { hangs: true })

export const readers: ReadonlyArray<Scenario> = [
  {
    id: "33g",
    title: "an answer that hangs, and a reader that leaves",
    script: [speaksOnce],
    abort: 'text-delta t1 "one "',
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "one "
      text-end t1
      abort "enough"
      finish aborted ?+?=? "one "`
  },
  {
    id: "80",
    title: "all chunks and the text, at once",
    ...bigWorld,
    peer: bigWorldPeer,
    differences: metadata
  },
  {
    id: "80b",
    title: "all chunks, and all chunks again from the middle on",
    ...ab,
    peer: abPeer,
    differences: metadata
  },
  { id: "81", title: "readers that come late", ...bigWorld, peer: bigWorldPeer, differences: metadata },
  {
    id: "81c",
    title: "a reader that comes with the error",
    script: [answer("r1", open("t1", "p"), failure(new Error("x")))],
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t1
      text-delta t1 "p"
      text-end t1
      error ModelError: x
      finish error ?+?=? "p"`,
    peer: "start step-start text-start text-delta error step-finish finish",
    differences: { ...metadata, edges: "+text-end", "cut-step": "-step-finish" }
  },
  { id: "82", title: "the text and no stream", ...bigWorld },
  { id: "82b", title: "everything and no stream", ...bigWorld },
  { id: "84", title: "a reader that leaves another alone", ...ab, peer: abPeer, differences: metadata },
  { id: "84b", title: "the only reader leaves", ...ab },
  { id: "85", title: "a slow reader", ...many },
  { id: "85b", title: "nobody reads", ...many },
  {
    id: "86",
    title: "promises beside a run with a tool",
    script: [
      answer("r1", text("t0", "One. "), call("c1", "weather", '{"city":"x"}'), finish("tool-calls")),
      answer("r2", text("t", "after"), finish("stop"))
    ],
    tools: () => ({ weather }),
    chunks: `
      start
      step-start
      response-metadata r1
      text-start t0
      text-delta t0 "One. "
      text-end t0
      tool-call c1 weather {"city":"x"}
      tool-result c1 weather {"city":"x","temp":21}
      step-finish tool-calls → 10+5=15 "One. " c1
      step-start
      response-metadata r2
      text-start t
      text-delta t "after"
      text-end t
      step-finish stop 10+5=15 "after"
      finish stop 20+10=30 "One. after"`,
    peer: "start step-start text-start text-delta text-end tool-call tool-result step-finish step-start text-start text-delta text-end step-finish finish",
    differences: { metadata: "+response-metadata×2" }
  },
  { id: "88", title: "two readers of one chunk", ...bigWorld, peer: bigWorldPeer, differences: metadata }
]
