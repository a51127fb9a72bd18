// A fresh Node for one piece of work: its last message is the answer, and it is ended when its time is over.
import { fork } from "node:child_process"
import { fileURLToPath } from "node:url"

export const ask = (file, args, { flags = [], seconds, quiet = false }) =>
  new Promise((resolve, reject) => {
    const started = performance.now()
    const child = fork(fileURLToPath(file), args.map(String), {
      execArgv: flags,
      stdio: ["ignore", quiet ? "ignore" : "inherit", quiet ? "pipe" : "inherit", "ipc"]
    })
    let errors = ""
    child.stderr?.on("data", data => {
      errors += data
    })
    let answer
    let late = false
    const timer = setTimeout(() => {
      late = true
      child.kill("SIGKILL")
    }, seconds * 1000)
    child.on("message", message => {
      answer = message
    })
    child.on("error", reject)
    child.on("close", code => {
      clearTimeout(timer)
      const took = (performance.now() - started) / 1000
      if (late) reject(new Error(`> ${seconds} s`))
      else if (answer === undefined) reject(new Error(`ended with code ${code} ${errors.slice(-2000)}`))
      else resolve({ ...answer, took })
    })
  })

/** The other side: answers, and does not outlive its parent. Peers keep timers, hence the explicit exit. */
export const answer = async work => {
  process.on("disconnect", () => process.exit(1))
  const message = await work().catch(error => ({ failed: error?.stack ?? String(error) }))
  process.send(message, () => process.exit(0))
}
