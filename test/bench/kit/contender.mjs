// A system and a script made into something a contest can run, warm and check.
import { readFull, verify } from "./read.mjs"
import { textScript } from "./script.mjs"

const once = (system, script, read = readFull) => {
  const { model, stream } = system.open(script)
  return async () => {
    const seen = await read(await stream(), system)
    verify(seen, script, system.name, script.steps && model.remembered)
  }
}

const repeat = (count, work) => async () => {
  for (let at = 0; at < count; at++) await work()
}

const warmText = textScript(2000)
const againText = textScript(300)

/** The same 20 000 deltas of warm-up for everyone, read the way that is going to be measured. */
export const textContender = (system, script, read) => ({
  warm: repeat(10, once(system, warmText, read)),
  again: once(system, againText, read),
  run: once(system, script, read)
})

/** `runs` runs make one sample, so that a quick one is long enough for the clock. */
export const toolContender = (system, script, { warmUp, runs = 1 }) => ({
  warm: repeat(10, once(system, warmUp)),
  again: once(system, warmUp),
  run: repeat(runs, once(system, script))
})

/** The reading alone: the run is over, its chunks are read again from the beginning. */
export const replayContender = (system, script, read) => {
  const { again, warm } = textContender(system, script, read)
  const prepare = async () => {
    const out = await system.open(script).stream()
    await out.text
    return out
  }
  return { warm, again, prepare, run: async out => verify(await read(out, system), script, system.name) }
}

export const batch = (count, contender) => ({ ...contender, run: repeat(count, contender.run) })
