// The ways a run is consumed, the same for every system, each with a tally of what came out.
const tally = () => ({ deltas: 0, length: 0, results: 0, sum: 0 })

const count = (seen, chunk, { textOf, resultOf }) => {
  if (chunk.type === "text-delta") {
    seen.deltas++
    seen.length += textOf(chunk).length
  } else if (chunk.type === "tool-result") {
    seen.results++
    seen.sum += resultOf(chunk).sum
  }
}

export const readFull = async (out, system) => {
  const seen = tally()
  const reader = out.fullStream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return seen
    count(seen, value, system)
  }
}

export const iterateFull = async (out, system) => {
  const seen = tally()
  for await (const chunk of out.fullStream) count(seen, chunk, system)
  return seen
}

/** The same with the iterator that every ReadableStream has, instead of the stream's own. */
export const iterateInherited = async (out, system) => {
  const seen = tally()
  const stream = out.fullStream
  const iterator = ReadableStream.prototype.values.call(stream)
  for await (const chunk of { [Symbol.asyncIterator]: () => iterator }) count(seen, chunk, system)
  return seen
}

export const readText = async out => ({ length: (await out.text).length })

export const readBoth = async (out, system) => {
  const [seen, { length }] = await Promise.all([readFull(out, system), readText(out)])
  if (length !== seen.length) throw new Error(`text has ${length} characters, its deltas ${seen.length}`)
  return seen
}

/** Reads until the first text delta and hands back the rest of the run, to be read off the clock. */
export const readFirst = async out => {
  const reader = out.fullStream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) throw new Error("no text-delta in the stream")
    if (value.type === "text-delta") return reader
  }
}

export const drain = async reader => {
  while (!(await reader.read()).done);
}

/** The work asked for, or an error that makes the row void. */
export const verify = (seen, { expected }, label, remembered) => {
  for (const key of Object.keys(seen)) {
    if (expected[key] !== undefined && seen[key] !== expected[key]) {
      throw new Error(`${label}: ${key} is ${seen[key]}, not ${expected[key]}`)
    }
  }
  if (remembered !== undefined && expected.results !== remembered) {
    throw new Error(`${label}: the last prompt held ${remembered} tool results of ${expected.results}`)
  }
}
