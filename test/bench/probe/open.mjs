// A fresh process: what a run costs that is open, has told something, and waits for its provider, its reader waiting too.
import { answer } from "../kit/child.mjs"
import { turnOfLoop } from "../kit/contest.mjs"
import { drain } from "../kit/read.mjs"
import { pacedScript, textScript } from "../kit/script.mjs"

const [name, runs] = [process.argv[2], Number(process.argv[3])]
const deltas = 10

const heap = async () => {
  for (let at = 0; at < 4; at++) {
    for (let turn = 0; turn < 20; turn++) await turnOfLoop()
    globalThis.gc()
  }
  return process.memoryUsage().heapUsed
}

/** Reads what was told; then it waits. */
const follow = async (out, told) => {
  const reader = out.fullStream.getReader()
  for (let seen = 0; ; ) {
    const { done, value } = await reader.read()
    if (done) throw new Error("a run ended")
    if (value.type === "text-delta" && ++seen === deltas) told()
  }
}

answer(async () => {
  const { [name]: system } = await import("../systems/all.mjs")
  const short = system.open(textScript(20))
  for (let at = 0; at < 200; at++) await drain((await short.stream()).fullStream.getReader())
  const { stream } = system.open(pacedScript(deltas, { hangs: true }))
  const before = await heap()
  globalThis.held = []
  for (let at = 0; at < runs; at++) {
    const out = await stream()
    await new Promise(told => globalThis.held.push(out, follow(out, told)))
  }
  return { perRun: ((await heap()) - before) / runs }
})
