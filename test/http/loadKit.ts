/** The parent of {@link file://./loadServer.mjs}, and clients that cost little. */
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { fileURLToPath } from "node:url"
import { onTestFinished } from "vitest"

/** What the server's process holds. Memory in bytes. */
interface Figures {
  readonly heap: number
  readonly rss: number
  /** The most that it ever had. */
  readonly peak: number
  readonly streams: number
  readonly runs: number
  readonly detached: number
  readonly sockets: number
  /** Kibibytes that the model has said. */
  readonly said: number
}

export interface LoadServer {
  readonly url: string
  /** What it holds; `isCollected`: when nothing is left that nobody needs. */
  readonly figures: (isCollected?: boolean) => Promise<Figures>
  readonly release: () => Promise<void>
  /** Closes the server. Milliseconds of work until the last stream had ended. */
  readonly close: () => Promise<{ readonly endedCpu: number }>
}

const told = async (child: ChildProcess): Promise<Record<string, unknown>> => {
  const [message] = await once(child, "message")
  return message
}

/** Starts a server, until the test is over. */
export const loadServer = async (): Promise<LoadServer> => {
  const child = fork(fileURLToPath(new URL("loadServer.mjs", import.meta.url)), {
    execArgv: ["--expose-gc", "--import", "tsx"]
  })
  onTestFinished(() => void child.kill())
  const ask = async (what: string) => {
    const answer = told(child)
    child.send(what)
    return answer
  }
  const { url } = await told(child)
  return {
    url: String(url),
    figures: async isCollected => {
      const answer = await ask(isCollected === true ? "collected" : "figures")
      const figure = (name: string): number => Number(answer[name])
      return {
        heap: figure("heap"),
        rss: figure("rss"),
        peak: figure("peak"),
        streams: figure("streams"),
        runs: figure("runs"),
        detached: figure("detached"),
        sockets: figure("sockets"),
        said: figure("said")
      }
    },
    release: async () => void (await ask("release")),
    close: async () => ({ endedCpu: Number((await ask("close"))["endedCpu"]) })
  }
}

/** A request on a socket of its own, and what has come of its answer. */
export interface Client {
  readonly socket: Socket
  /** What has come so far. */
  readonly text: () => string
  /** Waits until this has come. */
  readonly until: (text: string) => Promise<void>
  /** Waits until the server has closed the connection. */
  readonly closed: Promise<void>
}

/** Asks an agent for a stream. `isStalled`: reads nothing of it. */
export const ask = (url: string, agent: string, messages: string, isStalled = false): Client => {
  const { hostname, port } = new URL(url)
  const body = JSON.stringify({ messages })
  const socket = connect({ host: hostname, port: Number(port) })
  socket.setEncoding("utf8")
  let text = ""
  let waiting = (): void => undefined
  if (isStalled) socket.pause()
  else {
    socket.on("data", piece => {
      text += String(piece)
      waiting()
    })
  }
  const closed = new Promise<void>(resolve => {
    socket.on("close", () => {
      resolve()
      waiting()
    })
  })
  socket.on("error", () => undefined)
  socket.write(
    `POST /api/agents/${agent}/stream HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  )
  onTestFinished(() => void socket.destroy())
  return {
    socket,
    text: () => text,
    until: wanted =>
      new Promise((resolve, reject) => {
        waiting = () => {
          if (text.includes(wanted)) resolve()
          else if (socket.destroyed) reject(new Error(`The connection ended without "${wanted}".`))
        }
        waiting()
      }),
    closed
  }
}
