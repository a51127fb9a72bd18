// Counts what a machine's load cannot change: promises, TransformStreams and tees.
// Import it before the systems, so that they see the counted constructors.
import { createHook } from "node:async_hooks"
import { createRequire, syncBuiltinESMExports } from "node:module"

const counts = { promises: 0, transforms: 0, tees: 0 }

const hook = createHook({
  init(_, type) {
    if (type === "PROMISE") counts.promises++
  }
})

class CountedTransformStream extends globalThis.TransformStream {
  constructor(...args) {
    super(...args)
    counts.transforms++
  }
}
globalThis.TransformStream = CountedTransformStream
createRequire(import.meta.url)("node:stream/web").TransformStream = CountedTransformStream
syncBuiltinESMExports()

const { tee } = ReadableStream.prototype
ReadableStream.prototype.tee = function (...args) {
  counts.tees++
  return tee.apply(this, args)
}

export const census = async work => {
  Object.assign(counts, { promises: 0, transforms: 0, tees: 0 })
  hook.enable()
  await work()
  hook.disable()
  return { ...counts }
}
