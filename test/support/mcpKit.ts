/** What the tests of the Model Context Protocol share: servers, and runs of an agent that calls their tools. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js"
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js"
import { Agent, type Tool } from "eddy"
import type { McpServer, StdioServer } from "eddy/mcp"
import { ScriptedModel } from "eddy/testing"
import { Effect, Logger, LogLevel } from "effect"

const program = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/** The server of the tests, over standard input and output. */
export const stdio: StdioServer = {
  command: process.execPath,
  args: [program("mcpServer.mjs"), "stdio"]
}

/** A program that is a bad server. */
export const stubborn = (what: "mute" | "deaf" | "exit" | "chatty"): StdioServer => ({
  command: process.execPath,
  args: [program("mcpStubborn.mjs"), what]
})

/** The server of the tests over HTTP, until the scope is closed. */
export const startHttp = (...flags: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const child = spawn(process.execPath, [program("mcpServer.mjs"), "http", ...flags], {
        stdio: ["ignore", "pipe", "inherit"]
      })
      const [port] = await once(createInterface(child.stdout), "line")
      const origin = `http://127.0.0.1:${String(port)}`
      const sessions = async (): Promise<string> => (await fetch(`${origin}/sessions`)).text()
      const stop = Effect.promise(async () => {
        if (child.exitCode !== null || child.signalCode !== null) return
        child.kill("SIGKILL")
        await once(child, "exit")
      })
      return { child, origin, server: { url: `${origin}/mcp` }, sessions, stop }
    }),
    ({ stop }) => stop
  )

/** The same server over both transports, for what must not differ. */
export const transports: ReadonlyArray<
  readonly [name: string, server: Effect.Effect<McpServer, never, import("effect").Scope.Scope>]
> = [
  ["stdio", Effect.succeed(stdio)],
  ["HTTP", Effect.map(startHttp(), ({ server }) => server)]
]

/** One call that the model makes. */
export type Call = readonly [toolName: string, args?: unknown]

/** A model that makes these calls in one step, and says "done" when it knows what came of them. */
export const caller = (...calls: ReadonlyArray<Call>) =>
  ScriptedModel.make([
    [
      ...calls.map(([toolName, args = {}], index) => ScriptedModel.toolCall(`c${index + 1}`, toolName, args)),
      ScriptedModel.finish("tool-calls")
    ],
    ScriptedModel.reply("done")
  ])

/** An agent with these tools, whose model makes these calls. */
export const agentOf = (tools: ReadonlyArray<Tool.Tool>, ...calls: ReadonlyArray<Call>) => {
  const model = caller(...calls)
  return { model, agent: Agent.make({ id: "caller", model, tools, toolCallConcurrency: 50 }) }
}

/** Whether there is a process of this id. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Every line of the log, `onLine` sees each as it comes. */
export const logLines = (onLine: (line: string) => void) =>
  Effect.provide([
    Logger.replace(
      Logger.defaultLogger,
      Logger.make(({ logLevel, message }) =>
        onLine(`${logLevel.label} ${[message].flat().map(String).join(" | ")}`)
      )
    ),
    Logger.minimumLogLevel(LogLevel.All)
  ] as const)

type Json = { readonly [key: string]: unknown }

/** How a scripted server answers: by method, what each is sent; a result, or nothing when it sends for itself. */
export type Handlers = Readonly<
  Record<
    string,
    (params: Json, respond: (...messages: ReadonlyArray<Json>) => void, id: unknown) => Json | undefined
  >
>

/**
 * A server by hand, in this process: for what no real one says. It shakes hands by itself; `received` are the methods that
 * it was sent, and `close` ends it.
 */
export const scripted = (handlers: Handlers, capabilities: Json = { tools: {} }) => {
  const [transport, here] = InMemoryTransport.createLinkedPair()
  const received: Array<string> = []
  const send = (message: Json): void => void here.send({ jsonrpc: "2.0", ...message } as JSONRPCMessage)
  const all: Handlers = {
    initialize: params => ({
      protocolVersion: params["protocolVersion"],
      capabilities,
      serverInfo: { name: "scripted", version: "1.0.0" }
    }),
    ...handlers
  }
  here.onmessage = message => {
    if (!("method" in message)) return
    received.push(message.method)
    const id = "id" in message ? message.id : undefined
    const respond = (...messages: ReadonlyArray<Json>): void => messages.forEach(send)
    const result = all[message.method]?.({ ...message.params }, respond, id)
    if (result !== undefined) send({ id, result })
  }
  void here.start()
  return { server: { transport }, received, close: () => here.close() }
}
