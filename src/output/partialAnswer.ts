/**
 * Finds the structured value in the text of an answer while the text comes: behind prose, in a code fence, in the object that
 * was put around it for the provider.
 *
 * A place that looks like a beginning and turns out to be none is left, and the next one is tried; what stands behind the value
 * is not looked at. The work is in proportion to the text, whatever stands in it.
 */
import { JsonReader } from "./jsonReader.js"

/**
 * What is looked for: an object; an array, which the provider was asked for as `{"elements": […]}`; or anything else, which it
 * was asked for as `{"result": …}`. The value without the object around it is taken too.
 */
export type Root = "object" | "elements" | "result"

/** What a text came to: values that it may mean, the likeliest first, or why there is none. */
export type Found =
  | { readonly _tag: "Values"; readonly values: ReadonlyArray<unknown> }
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "CutOff" }
  | { readonly _tag: "Broken"; readonly problem: string }

/** Reading again costs at most so many times the text. */
const patience = 2

const fence = /^```[\w-]*\s*([\s\S]*?)\s*(?:```[\s\S]*)?$/

/** What the protocols of some providers leave behind an answer. */
const residue = /(?:\s*<[/|]?[\w:|-]+>)+\s*$/

const bareOf = (text: string): string => {
  const trimmed = text.trim()
  return (fence.exec(trimmed)?.[1] ?? trimmed).replace(residue, "").trim()
}

const parsed = (text: string): ReadonlyArray<unknown> => {
  try {
    return [JSON.parse(text)]
  } catch {
    return []
  }
}

export class PartialAnswer {
  private reader: JsonReader | undefined
  /** The text since the place that is being tried. */
  private pieces: Array<string> = []
  /** The whole text, as long as no value is complete. */
  private told: Array<string> = []
  private isOver = false
  private length = 0
  private reread = 0
  private taken = 0
  private problem: string | undefined
  private current: unknown
  private isUnseen = false

  constructor(
    private readonly root: Root,
    /** Whether {@link end} will be asked. */
    private readonly isEndAsked: boolean
  ) {}

  /** The value so far; `undefined` as long as nothing of it is known. */
  get value(): unknown {
    return this.current
  }

  /**
   * From now on nobody looks at partial values, but for whether there is another one. Where they stand in another object a look
   * is what tells that, so that they are made all the same.
   */
  leaveUnseen(): void {
    this.isUnseen = this.root === "object"
  }

  /** Forgets everything. */
  reset(): void {
    this.reader = undefined
    this.pieces = []
    this.told = []
    this.isOver = false
    this.length = 0
    this.reread = 0
    this.taken = 0
    this.problem = undefined
    this.current = undefined
  }

  /** Takes the next piece of the text; whether the value is another one than before. */
  take(text: string): boolean {
    if (this.isOver) return false
    if (this.isEndAsked) this.told.push(text)
    this.length += text.length
    let rest: string | undefined = text
    while (rest !== undefined && !this.isOver) rest = this.advance(rest)
    return this.look(text.length)
  }

  /** Reads on, and gives what is to be read again. */
  private advance(text: string): string | undefined {
    let from = 0
    let { reader } = this
    if (reader === undefined) {
      from = this.beginning(text)
      if (from < 0) return undefined
      reader = new JsonReader(this.root === "elements" ? "elements" : undefined, this.isUnseen)
      this.reader = reader
    }
    this.pieces.push(from === 0 ? text : text.slice(from))
    const at = reader.read(text, from)
    if (reader.failure === undefined) {
      if (reader.isDone) this.done()
      return undefined
    }
    return this.leave(reader.failure, text.length - at)
  }

  private beginning(text: string): number {
    const brace = text.indexOf("{")
    if (this.root === "object") return brace
    const bracket = text.indexOf("[")
    return brace < 0 || bracket < 0 ? Math.max(brace, bracket) : Math.min(brace, bracket)
  }

  /** This was no beginning: goes on behind it, or, where that would take too long, behind what was read. */
  private leave(problem: string, left: number): string | undefined {
    const text = this.pieces.join("")
    const read = text.length - left
    this.problem ??= problem
    this.reader = undefined
    this.current = undefined
    this.pieces = []
    this.taken = 0
    this.reread += read
    const next = this.reread <= this.length * patience ? 1 : Math.max(1, read)
    return next < text.length ? text.slice(next) : undefined
  }

  private done(): void {
    this.isOver = true
    this.pieces = []
    this.told = []
  }

  private look(length: number): boolean {
    const { reader } = this
    if (reader === undefined) return false
    const hasChanged = reader.growing.settle(length)
    if (!hasChanged && (this.current !== undefined || !reader.isDone)) return false
    const value = this.shown(reader)
    if (value === undefined || (value === this.current && !(hasChanged && this.isUnseen))) return false
    this.current = value
    return true
  }

  /** What is to be seen of what was read. The mere beginning of an object or array may be prose. */
  private shown({ growing, isDone }: JsonReader): unknown {
    const root = this.unwrapped(growing.value, growing.firstKey)
    if (isDone || growing.depth === 0 || typeof root !== "object" || root === null) return root
    if (root !== growing.value) return root
    for (const _ in root) return root
    return undefined
  }

  private unwrapped(root: unknown, firstKey: string | undefined): unknown {
    if (this.root === "object" || firstKey !== this.root) return root
    return typeof root === "object" && root !== null && Object.hasOwn(root, firstKey)
      ? (root as Record<string, unknown>)[firstKey]
      : undefined
  }

  /** Elements of an array that are complete, each once. */
  takeElements(): ReadonlyArray<unknown> {
    const elements = this.reader?.growing.elements(this.taken) ?? []
    this.taken += elements.length
    return elements
  }

  /** The text is over. */
  end(): Found {
    const { reader } = this
    if (reader?.isDone === true) {
      const { firstKey, value } = reader.growing
      const inner = this.unwrapped(value, firstKey)
      return { _tag: "Values", values: inner === value ? [value] : [inner, value] }
    }
    const text = bareOf(this.told.join(""))
    if (text === "") return { _tag: "Nothing" }
    const bare = parsed(text)
    if (bare.length > 0) return { _tag: "Values", values: bare }
    if (this.root === "result") return { _tag: "Values", values: [text] }
    if (reader !== undefined) return { _tag: "CutOff" }
    return this.problem === undefined ? { _tag: "Nothing" } : { _tag: "Broken", problem: this.problem }
  }
}
