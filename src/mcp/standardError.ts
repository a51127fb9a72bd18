/** The standard error of a server's process: lines for the log, and the last ones for when the server has ended. */
import type { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"

const maxLength = 2_000
const maxLines = 20

/** Calls `onLine` with each line, cut at 2 000 characters. */
export const readLines = (stream: StdioClientTransport["stderr"], onLine: (line: string) => void): void => {
  const decoder = new TextDecoder()
  let rest = ""
  const tell = (line: string): void => {
    const text = line.trimEnd()
    if (text !== "") onLine(text.slice(0, maxLength))
  }
  stream?.on("data", (bytes: Uint8Array) => {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n")
    rest = (lines.pop() ?? "").slice(0, maxLength)
    lines.forEach(tell)
  })
  stream?.on("end", () => tell(rest))
}

/** Remembers the last lines. */
export const lastLines = () => {
  const lines: Array<string> = []
  return {
    add: (line: string): void => {
      lines.push(line)
      if (lines.length > maxLines) lines.shift()
    },
    read: (): string => lines.join("\n")
  }
}
