/**
 * Holds back what an answer begins with until it says something: of an attempt that comes to nothing, nothing is to be seen.
 */
import type { Chunk } from "../protocol/Chunk.js"

/** What may come before any content: it says nothing by itself. */
const isPreamble = (chunk: Chunk): boolean => {
  switch (chunk.type) {
    case "step-start":
    case "response-metadata":
    case "raw":
    case "text-start":
    case "text-end":
    case "reasoning-start":
    case "reasoning-end":
      return true
    default:
      return false
  }
}

/** A block that said nothing; the rest is worth telling also of an answer that failed. */
const isEdge = (chunk: Chunk): boolean =>
  chunk.type === "text-start" ||
  chunk.type === "text-end" ||
  chunk.type === "reasoning-start" ||
  chunk.type === "reasoning-end"

export class Holding {
  private held: Array<Chunk> | undefined = []

  constructor(private readonly tell: (chunk: Chunk) => void) {}

  /** Whether anything of the answer was told. */
  get isShown(): boolean {
    return this.held === undefined
  }

  /** Takes the next chunk of the answer. */
  readonly emit = (chunk: Chunk): void => {
    if (this.held === undefined) {
      this.tell(chunk)
    } else if (isPreamble(chunk)) {
      this.held.push(chunk)
    } else {
      this.release()
      this.tell(chunk)
    }
  }

  /** Tells what is held: the answer is complete, or begins to say something. */
  release(): void {
    const held = this.held ?? []
    this.held = undefined
    held.forEach(this.tell)
  }

  /** Tells of an answer that failed before it said anything no more than that it began, and what the provider told of it. */
  releaseFacts(): void {
    this.held = this.held?.filter(chunk => !isEdge(chunk))
    this.release()
  }
}
