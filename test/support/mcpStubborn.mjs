/**
 * Programs that are bad servers: `node mcpStubborn.mjs <what>`. They tell their process id on standard error.
 *
 * - `mute` reads and never answers. `deaf` neither answers nor ends with its input, nor by SIGTERM.
 * - `exit` ends at once, after a last word there. `chatty` prints what is no protocol.
 */
const [what] = process.argv.slice(2)
console.error(`pid ${process.pid}`)

switch (what) {
  case "mute":
    process.stdin.resume()
    break
  case "deaf":
    process.on("SIGTERM", () => undefined)
    setInterval(() => undefined, 1_000)
    process.stdin.resume()
    break
  case "exit":
    console.error("API_KEY is not set")
    process.exit(3)
    break
  case "chatty":
    process.stdin.on("data", () => console.log("What do you mean?"))
    break
}
