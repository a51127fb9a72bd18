// What every system is told, as neutral parts. A script is a list of turns, one for each call of the model.
import { random } from "./random.mjs"

const letters = Buffer.from("etaoinshrdlucmfwypvbgk,.")

/** `count` words of 10 to 14 characters; `latin1` makes each a flat string of its own, as a provider's are. */
export const word = draw => {
  const bytes = Buffer.allocUnsafe(10 + Math.floor(draw() * 5))
  for (let at = 0; at < bytes.length - 1; at++) bytes[at] = letters[Math.floor(draw() * letters.length)]
  bytes[bytes.length - 1] = 32
  return bytes.toString("latin1")
}

const words = (count, seed) => {
  const draw = random(seed)
  return Array.from({ length: count }, () => word(draw))
}

const lengthOf = deltas => deltas.reduce((sum, delta) => sum + delta.length, 0)

/** One answer of `count` text deltas. */
export const textScript = (count, seed = 7) => {
  const deltas = words(count, seed)
  return {
    turns: 1,
    turn: () => ({ size: count, delta: at => deltas[at] }),
    expected: { deltas: count, length: lengthOf(deltas), results: 0, sum: 0 }
  }
}

/** One answer that is JSON of about `length` characters, in deltas of ten: a list of orders, as somebody would ask for one. */
export const objectScript = (length, seed = 7) => {
  const draw = random(seed)
  const items = []
  for (let size = 30; size < length; ) {
    const item = {
      id: items.length,
      name: word(draw).trim(),
      price: Math.round(draw() * 10000) / 100,
      tags: [word(draw).trim(), word(draw).trim()],
      note: Array.from({ length: 6 }, () => word(draw))
        .join("")
        .trim()
    }
    items.push(item)
    size += JSON.stringify(item).length + 1
  }
  const object = { title: "Orders of the day", items }
  const text = JSON.stringify(object)
  const deltas = []
  for (let at = 0; at < text.length; at += 10) {
    deltas.push(Buffer.from(text.slice(at, at + 10), "latin1").toString("latin1"))
  }
  return { turns: 1, object, turn: () => ({ size: deltas.length, delta: at => deltas[at] }) }
}

/** The same, but every delta is made when it is pulled: nobody shares it, so memory shows who keeps it. */
export const freshScript = (count, seed = 7) => ({
  turns: 1,
  turn: () => {
    const draw = random(seed)
    return { size: count, delta: () => word(draw) }
  },
  expected: { deltas: count, results: 0, sum: 0 }
})

/** One answer of `count` text deltas, one each `every` milliseconds; with `hangs` nothing more comes, and no end. */
export const pacedScript = (count, { every, hangs, seed = 7 }) => {
  const script = textScript(count, seed)
  return { ...script, turn: () => ({ ...script.turn(), every, hangs }) }
}

/** One answer of `count` text deltas of `length` characters that nobody else holds; `made` says how many were pulled. */
export const hugeScript = (count, length) => {
  const script = {
    made: 0,
    turns: 1,
    turn: () => ({
      size: count,
      delta: at => {
        script.made = at + 1
        return Buffer.alloc(length, letters[at % letters.length]).toString("latin1")
      }
    }),
    expected: { deltas: count, length: count * length, results: 0, sum: 0 }
  }
  return script
}

/** A turn that calls the agent below, then one of five text deltas. */
export const delegateScript = (seed = 7) => {
  const deltas = words(5, seed)
  const tool = { toolName: "agent-below", args: { prompt: "Tell." } }
  return {
    turns: 2,
    turn: at => (at === 0 ? { call: 0, tool } : { size: deltas.length, delta: index => deltas[index] })
  }
}

/** `steps` turns that each call the tool `add` once, then one turn of five text deltas. */
export const toolScript = (steps, seed = 7) => {
  const deltas = words(5, seed)
  return {
    turns: steps + 1,
    steps,
    turn: at => (at < steps ? { call: at } : { size: deltas.length, delta: index => deltas[index] }),
    expected: {
      deltas: deltas.length,
      length: lengthOf(deltas),
      results: steps,
      // the tool answers { sum: n + 1 } for n = 1000, 1001, ...
      sum: (steps * (2 * 1001 + steps - 1)) / 2
    }
  }
}

/** Four digits whatever the step, so that a longer run has longer streams only because it has more steps. */
export const argumentOf = step => 1000 + step
