// One row in a process of its own: `node [flags] row.mjs <name> [repetitions]`.
import { answer } from "./kit/child.mjs"

const [name, repetitions] = process.argv.slice(2)

answer(async () => {
  globalThis.AI_SDK_LOG_WARNINGS = false
  const { run } = await import(`./rows/${name}.mjs`)
  return run({ repetitions: repetitions ? Number(repetitions) : undefined })
})
