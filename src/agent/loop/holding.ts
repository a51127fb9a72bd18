/**
 * Holds back what an answer begins with until it says something: of an attempt that comes to nothing, nothing is to be seen.
 */
import type { Chunk } from "../../protocol/Chunk.js"

/** That an answer began, and what the provider tells of it: worth telling also when it failed. */
const isFact = ({ type }: Chunk): boolean =>
  type === "step-start" || type === "response-metadata" || type === "raw"

/** An edge of a block, which says nothing by itself; or what a processor has to say about all this. */
const isEdge = ({ type }: Chunk): boolean =>
  type === "text-start" ||
  type === "text-end" ||
  type === "reasoning-start" ||
  type === "reasoning-end" ||
  type.startsWith("data-")

/** Whether a chunk of an answer says something. */
export const isContent = (chunk: Chunk): boolean => !isFact(chunk) && !isEdge(chunk)

export class Holding {
  private held: Array<Chunk> | undefined = []

  constructor(
    private readonly tell: (chunk: Chunk) => void,
    /** Called when the answer begins. */
    private readonly begun: () => void = () => undefined
  ) {}

  /** Whether anything of the answer was told. */
  get isShown(): boolean {
    return this.held === undefined
  }

  /** Takes the next chunk of the answer. */
  readonly emit = (chunk: Chunk): void => {
    if (this.held === undefined) {
      this.tell(chunk)
    } else if (isContent(chunk)) {
      this.release()
      this.tell(chunk)
    } else {
      if (this.held.length === 0) this.begun()
      this.held.push(chunk)
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
    this.held = this.held?.filter(isFact)
    this.release()
  }
}
