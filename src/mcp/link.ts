/**
 * A transport of the SDK, mended where the SDK would lose something.
 *
 * - The SDK handles a notification one microtask after it has come, and an answer at once: progress that comes with the
 *   answer in one piece would belong to no call any more. Here each message waits for the one before it.
 * - What was closed once stays closed: the calls that wait fail at once, however long a process takes to end, and whoever
 *   closes again waits for the same end.
 */
import type { Transport, TransportSendOptions } from "@modelcontextprotocol/sdk/shared/transport.js"
import type { JSONRPCMessage, MessageExtraInfo, RequestId } from "@modelcontextprotocol/sdk/types.js"

type Receive = <T extends JSONRPCMessage>(message: T, extra?: MessageExtraInfo) => void

export class Link implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: Receive
  /** Settles when the transport says that it is closed; for a process, when it has ended. */
  readonly ended: Promise<void>
  private readonly waiting = new Set<RequestId>()
  private last: Promise<void> = Promise.resolve()
  private isOpen = true
  private wasLeft = false
  private closing: Promise<void> | undefined

  constructor(private readonly transport: Transport) {
    this.ended = new Promise(resolve => {
      transport.onclose = () => {
        resolve()
        this.enqueue(() => this.end())
      }
    })
    transport.onerror = error => this.onerror?.(error)
    transport.onmessage = (message, extra) => this.enqueue(() => this.receive(message, extra))
  }

  /** Whether it was ended from this side. */
  get isLeft(): boolean {
    return this.wasLeft
  }

  get sessionId(): string | undefined {
    return this.transport.sessionId
  }

  readonly setProtocolVersion = (version: string): void => this.transport.setProtocolVersion?.(version)

  start(): Promise<void> {
    return this.transport.start()
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    const isRequest = "method" in message && "id" in message
    if (isRequest) this.waiting.add(message.id)
    else if ("method" in message && message.method === "notifications/cancelled") {
      this.forget(message.params?.["requestId"])
    }
    try {
      await this.transport.send(message, options)
    } catch (cause) {
      if (isRequest) this.forget(message.id)
      throw cause
    }
  }

  /** Ends it for everybody on this side; the transport is still to be closed. */
  leave(): void {
    this.wasLeft = true
    this.end()
  }

  close(): Promise<void> {
    this.leave()
    this.closing ??= this.closeTransport()
    return this.closing
  }

  private async closeTransport(): Promise<void> {
    try {
      await this.transport.close()
    } catch (cause) {
      this.report(cause)
    }
  }

  private enqueue(deliver: () => void): void {
    this.last = this.last.then(deliver)
  }

  private receive(message: JSONRPCMessage, extra: MessageExtraInfo | undefined): void {
    // An answer to nothing: its call was cancelled, or it was answered already.
    if (!("method" in message) && message.id !== undefined && !this.forget(message.id)) return
    try {
      this.onmessage?.(message, extra)
    } catch (cause) {
      this.report(cause)
    }
  }

  private report(cause: unknown): void {
    this.onerror?.(cause instanceof Error ? cause : new Error(String(cause)))
  }

  private forget(id: unknown): boolean {
    return (typeof id === "string" || typeof id === "number") && this.waiting.delete(id)
  }

  private end(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.waiting.clear()
    this.onclose?.()
  }
}
