import { ask } from "../kit/child.mjs"
import { contest } from "../kit/contest.mjs"
import { number, times } from "../kit/format.mjs"
import { verify } from "../kit/read.mjs"
import { pacedScript } from "../kit/script.mjs"
import { interval, median, paired, quantile } from "../kit/statistics.mjs"
import { againstItself, atLeast, atMost } from "../kit/verdict.mjs"
import { ai, eddy, mastra, raw } from "../systems/all.mjs"

const runs = 1000
const deltas = 40
const every = 5
const control = ["mastra", "mastra again"]

/** Reads a run to its end; when its first delta came, in milliseconds from the call. */
const readTimed = async (stream, system, script) => {
  const start = performance.now()
  const seen = { deltas: 0, length: 0 }
  let first
  const reader = (await stream()).fullStream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    if (value.type !== "text-delta") continue
    first ??= performance.now() - start
    seen.deltas++
    seen.length += system.textOf(value).length
  }
  verify(seen, script, system.name)
  return first
}

/** So many runs at once; the first deltas of those that are measured go into `firsts`. */
const crowd = (system, firsts) => {
  const script = pacedScript(deltas, { every })
  const { stream } = system.open(script)
  const all = count => Promise.all(Array.from({ length: count }, () => readTimed(stream, system, script)))
  return {
    warm: async () => {
      for (let at = 0; at < 5; at++) await all(100)
    },
    again: () => all(20),
    run: async () => firsts.push(await all(runs))
  }
}

const systems = { eddy, mastra, "mastra again": mastra, ai, raw }

const race = async repetitions => {
  const firsts = Object.fromEntries(Object.keys(systems).map(label => [label, []]))
  const contenders = Object.fromEntries(
    Object.entries(systems).map(([label, system]) => [label, crowd(system, firsts[label])])
  )
  const samples = await contest({ contenders, control, repetitions })
  const at = (label, share) => firsts[label].map(found => quantile(found, share))
  const over = label => paired(samples[label].wall, samples.eddy.wall)
  const late = label => paired(at("eddy", 0.99), at(label, 0.99))
  const lines = Object.entries(samples).map(([label, { wall, cpu }]) => [
    label,
    number((runs * deltas) / (median(wall) / 1000)),
    number(median(wall)),
    number(median(cpu)),
    label === "eddy" ? "" : times(interval(over(label))),
    number(median(at(label, 0.5))),
    number(median(at(label, 0.99)))
  ])
  return {
    samples,
    table: {
      title: `${number(runs)} runs at once, ${deltas} deltas each, one every ${every} ms: at least ${deltas * every} ms`,
      head: ["", "deltas/s", "ms wall", "cpu", "over eddy, wall", "first delta, median ms", "p99 ms"],
      lines
    },
    targets: [
      atLeast("mastra / eddy, all runs", over("mastra"), 4, 7),
      atLeast("ai / eddy, all runs", over("ai"), 4, 7),
      atMost("p99 of the first delta, eddy / mastra", late("mastra"), 0.1),
      atMost("p99 of the first delta, eddy / ai", late("ai"), 0.1)
    ]
  }
}

/** Heap of open runs, each system in fresh processes; `raw` is what the model's own stream takes of it. */
const weigh = async repetitions => {
  const samples = { eddy: [], mastra: [], ai: [], raw: [] }
  for (let at = 0; at < Math.min(repetitions, 3); at++) {
    for (const name of Object.keys(samples)) {
      const found = await ask(new URL("../probe/open.mjs", import.meta.url), [name, runs], {
        flags: ["--expose-gc"],
        seconds: 60,
        quiet: true
      })
      if (found.failed) throw new Error(`${name}: ${found.failed}`)
      samples[name].push(found.perRun / 1024)
    }
  }
  return {
    samples,
    table: {
      title: `${number(runs)} runs that are open, have told something and wait`,
      head: ["", "KB of heap each"],
      lines: Object.entries(samples).map(([name, found]) => [name, number(median(found))])
    },
    targets: [atMost("eddy, heap of an open run", samples.eddy, 20, undefined, " KB")]
  }
}

export const run = async ({ repetitions = 7 }) => {
  const parts = [await race(repetitions), await weigh(repetitions)]
  return {
    tables: parts.map(part => part.table),
    targets: parts.flatMap(part => part.targets),
    controls: [againstItself(parts[0].samples, control)],
    samples: { race: parts[0].samples, open: parts[1].samples }
  }
}
