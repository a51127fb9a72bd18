import { census } from "../kit/census.mjs"
import { turnOfLoop } from "../kit/contest.mjs"
import { number } from "../kit/format.mjs"
import { iterateFull, readBoth, readFull, readText, verify } from "../kit/read.mjs"
import { textScript, toolScript } from "../kit/script.mjs"
import { atMost } from "../kit/verdict.mjs"

const small = textScript(1000)
const large = textScript(3000)
const fewSteps = toolScript(10)
const manySteps = toolScript(30)

const counted = async (system, script, read = readFull) => {
  const { stream } = system.open(script)
  const once = async () => verify(await read(await stream(), system), script, system.name)
  await once()
  for (let turn = 0; turn < 20; turn++) await turnOfLoop()
  const counts = await census(once)
  for (let turn = 0; turn < 20; turn++) await turnOfLoop()
  return counts
}

/** The slope between two sizes, and what is left at size 0. */
const slope = async (system, [from, to], units, read) => {
  const [less, more] = [await counted(system, from, read), await counted(system, to, read)]
  const each = (more.promises - less.promises) / (units[1] - units[0])
  return { each, fixed: less.promises - each * units[0], less, more }
}

const perChunk = (system, read) => slope(system, [small, large], [1000, 3000], read)

export const run = async () => {
  // after the census, hence not imported above
  const { ai, eddy, mastra, raw } = await import("../systems/all.mjs")
  const lines = []
  const samples = {}
  for (const system of [eddy, mastra, ai, raw]) {
    const isRaw = system === raw
    const full = await perChunk(system, readFull)
    const iterated = await perChunk(system, iterateFull)
    const text = isRaw ? undefined : await perChunk(system, readText)
    const both = isRaw ? undefined : await perChunk(system, readBoth)
    const step = isRaw ? undefined : await slope(system, [fewSteps, manySteps], [10, 30], readFull)
    const stepTransforms = step && (step.more.transforms - step.less.transforms) / 20
    samples[system.name] = { full, iterated, text, both, step }
    lines.push([
      system.name,
      ...[full, iterated, text, both].map(found => (found ? number(found.each) : "")),
      number(full.fixed),
      step ? number(step.each) : "",
      step ? `${full.less.transforms} + ${number(stepTransforms)}/step` : String(full.less.transforms),
      String(full.less.tees)
    ])
  }
  const { full, step } = samples.eddy
  const head = [
    "",
    "promises/chunk full",
    "for await",
    "text",
    "both",
    "fixed",
    "promises/step",
    "TransformStreams",
    "tees"
  ]
  return {
    tables: [{ title: "slopes between 1 000 and 3 000 deltas, 10 and 30 steps", head, lines }],
    targets: [
      atMost("eddy, promises per chunk, fullStream", [full.each], 12, 8, ""),
      atMost("eddy, TransformStreams in a tool run", [step.more.transforms], 0, undefined, ""),
      atMost("eddy, tees in a tool run", [step.more.tees], 0, undefined, "")
    ],
    controls: [],
    samples
  }
}
