// A fresh process: what is still on the heap when a run has been read to its end and its output object is held.
import { answer } from "../kit/child.mjs"
import { turnOfLoop } from "../kit/contest.mjs"
import { random } from "../kit/random.mjs"
import { readFull, verify } from "../kit/read.mjs"
import { freshScript, word } from "../kit/script.mjs"

const [name, size] = [process.argv[2], Number(process.argv[3])]

const heap = async () => {
  for (let at = 0; at < 4; at++) {
    for (let turn = 0; turn < 20; turn++) await turnOfLoop()
    globalThis.gc()
  }
  return process.memoryUsage().heapUsed
}

/** The strings alone, in an array: what nobody who keeps the text apart can go below. */
const strings = async () => {
  const draw = random(7)
  const before = await heap()
  globalThis.held = Array.from({ length: size }, () => word(draw))
  return { perDelta: ((await heap()) - before) / size }
}

const retained = async () => {
  const { [name]: system } = await import(`../systems/${name}.mjs`)
  const read = async script => {
    const out = await system.open(script).stream()
    verify(await readFull(out, system), script, name)
    return out
  }
  for (let at = 0; at < 5; at++) await read(freshScript(2000))
  const before = await heap()
  const resident = process.memoryUsage.rss()
  globalThis.held = await read(freshScript(size))
  const peak = process.memoryUsage.rss()
  const during = await heap()
  globalThis.held = undefined
  const after = await heap()
  return {
    perDelta: (during - before) / size,
    left: (after - before) / size,
    residentRise: (peak - resident) / 2 ** 20
  }
}

answer(() => (name === "strings" ? strings() : retained()))
