// A fresh process: how long one import takes, then, cold, the first stream of 1 000 deltas.
import { answer } from "../kit/child.mjs"

const [specifier, name] = process.argv.slice(2)

answer(async () => {
  const start = performance.now()
  await import(specifier)
  const imported = performance.now() - start
  if (!name) return { imported }

  const { readFull, verify } = await import("../kit/read.mjs")
  const { textScript } = await import("../kit/script.mjs")
  const { [name]: system } = await import(`../systems/${name}.mjs`)
  const script = textScript(1000)
  const before = performance.now()
  const seen = await readFull(await system.open(script).stream(), system)
  const first = performance.now() - before
  verify(seen, script, name)
  return { imported, first }
})
