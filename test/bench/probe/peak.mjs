// A fresh process: how high the heap rises while a long text is read once, by a reader that takes a breath now and then.
import { answer } from "../kit/child.mjs"
import { turnOfLoop } from "../kit/contest.mjs"
import { verify } from "../kit/read.mjs"
import { hugeScript } from "../kit/script.mjs"

const [name, deltas, length] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]

const used = () => {
  globalThis.gc()
  return process.memoryUsage().heapUsed
}

const breath = 50
const looks = 40

/** `ahead` counts from the deltas that this reader has got, whatever lies between. */
const readSlowly = async (out, system, script, look) => {
  const seen = { deltas: 0, length: 0 }
  let ahead = 0
  const reader = out.fullStream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return { seen, ahead }
    if (value.type !== "text-delta") continue
    seen.deltas++
    seen.length += system.textOf(value).length
    if (seen.deltas % breath === 0) await turnOfLoop()
    ahead = Math.max(ahead, script.made - seen.deltas)
    if (seen.deltas % Math.ceil(deltas / looks) === 0) look()
  }
}

answer(async () => {
  const { [name]: system } = await import("../systems/all.mjs")
  const small = hugeScript(500, 64)
  for (let at = 0; at < 5; at++) await readSlowly(await system.open(small).stream(), system, small, () => {})
  for (let turn = 0; turn < 20; turn++) await turnOfLoop()
  const before = used()
  const script = hugeScript(deltas, length)
  let peak = 0
  const out = await system.open(script).stream()
  const { ahead, seen } = await readSlowly(out, system, script, () => {
    peak = Math.max(peak, used())
  })
  verify(seen, script, name)
  return { rise: (peak - before) / 2 ** 20, ahead }
})
