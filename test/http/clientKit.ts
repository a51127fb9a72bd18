/**
 * The real `@mastra/client-js`, unmodified, over loopback. It is heavy, and lives in a folder of its own: where that is not
 * installed its tests are skipped (`npm ci --prefix test/clients`); `.ci/run` installs it.
 */
import { existsSync } from "node:fs"
import type { Told } from "./kit.js"

const folder = new URL("../clients/", import.meta.url)
const client = new URL("node_modules/@mastra/client-js/dist/index.js", folder)

export const isInstalled = existsSync(client)

if (!isInstalled) {
  console.warn("Skipped: @mastra/client-js is not installed. Install it with: npm ci --prefix test/clients")
}

/** A stream as the client gives it. */
interface StreamResponse {
  readonly processDataStream: (options: { readonly onChunk: (chunk: Told) => Promise<void> }) => Promise<void>
}

/** What these tests call of the client. */
export interface ClientAgent {
  readonly details: () => Promise<Record<string, unknown>>
  readonly generate: (messages: unknown, options?: object) => Promise<Record<string, unknown>>
  readonly stream: (messages: unknown, options?: object) => Promise<StreamResponse>
  readonly streamUntilIdle: (messages: unknown, options?: object) => Promise<StreamResponse>
  readonly resumeStream: (data: unknown, options: object) => Promise<StreamResponse>
  readonly resumeStreamUntilIdle: (data: unknown, options: object) => Promise<StreamResponse>
  readonly approveToolCall: (call: object) => Promise<StreamResponse>
  readonly declineToolCall: (call: object) => Promise<StreamResponse>
  readonly approveToolCallGenerate: (call: object) => Promise<Record<string, unknown>>
  readonly declineToolCallGenerate: (call: object) => Promise<Record<string, unknown>>
  readonly observe: (options: object) => Promise<StreamResponse>
  readonly listSuspendedRuns: (options?: object) => Promise<Record<string, unknown>>
}

interface ClientThread {
  readonly get: () => Promise<Record<string, unknown>>
  readonly update: (options: object) => Promise<Record<string, unknown>>
  readonly delete: () => Promise<Record<string, unknown>>
  readonly listMessages: (options?: object) => Promise<{ readonly messages: ReadonlyArray<Told> }>
}

interface ClientTask {
  readonly id: string
  readonly status: string
  readonly result?: unknown
}

interface Client {
  readonly listAgents: () => Promise<Record<string, unknown>>
  readonly getAgent: (id: string) => ClientAgent
  readonly createMemoryThread: (options: object) => Promise<{ readonly id: string }>
  readonly listMemoryThreads: (options?: object) => Promise<{ readonly total: number }>
  readonly getMemoryThread: (options: object) => ClientThread
  readonly listBackgroundTasks: (options?: object) => Promise<{
    readonly tasks: ReadonlyArray<ClientTask>
    readonly total: number
  }>
  readonly getBackgroundTask: (id: string) => Promise<ClientTask>
  readonly streamBackgroundTasks: (options?: object) => Promise<ReadableStream<Told>>
  readonly request: (path: string, options?: object) => Promise<ClientTask>
}

export const clientOf = async (
  baseUrl: string,
  headers: Readonly<Record<string, string>> = {}
): Promise<Client> => {
  const { MastraClient }: { readonly MastraClient: new (options: object) => Client } = await import(
    client.href
  )
  return new MastraClient({ baseUrl, headers, retries: 0 })
}

/** The chunks of a stream. */
export const read = async (response: StreamResponse): Promise<ReadonlyArray<Told>> => {
  const chunks: Array<Told> = []
  await response.processDataStream({ onChunk: async chunk => void chunks.push(chunk) })
  return chunks
}
