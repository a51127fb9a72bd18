/** What came of a scenario. */
import type { Chunk, FullOutput } from "eddy"
import type { Exit } from "effect"
import type { ReaderScript } from "./scenario.js"
import type { World } from "./world.js"

/** A run, and what it told, whoever listened. */
export interface Told {
  readonly world: World
  readonly chunks: ReadonlyArray<Chunk.Chunk>
  /** Whether its one reader was gone before the end: then there is no `finish`. */
  readonly isLeft: boolean
  /** Fibers that are left of it. */
  readonly fibers: number
  /** What lives longer than a run: the agent, and its container. */
  readonly owner: unknown
}

/** A run that was read as a cold stream. */
export interface Streamed extends Told {
  readonly exit: Exit.Exit<void, unknown>
}

/** What one reader of a hot run saw. */
export interface Read {
  readonly script: ReaderScript
  readonly items: Array<unknown>
  /** Whether the stream came to its end, and not only its reader. */
  isWhole: boolean
  /** What the stream failed with. */
  failure: unknown
}

/** What came of a value that was asked for. */
export interface Answered {
  readonly name: string
  readonly outcome: { readonly value: unknown } | { readonly error: unknown }
}

/** A run that went by itself, with readers. */
export interface Heard extends Told {
  readonly full: FullOutput
  readonly reads: ReadonlyArray<Read>
  readonly answered: ReadonlyArray<Answered>
}
