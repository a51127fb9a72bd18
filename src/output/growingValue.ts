/**
 * A value of JSON that grows, and its snapshots. A snapshot never changes again, and shares with the one before whatever has
 * not changed: of what is open, only the way from the root to the change is copied.
 *
 * A copy costs as much as the node is wide. So that all of them together cost no more than in proportion to the text, of what
 * has hundreds of keys or thousands of elements snapshots are taken less often than at every look.
 *
 * Two things are built aside, and come into the value when they are complete: what lies deeper than 64 levels, because each
 * change of it would copy its whole way, and the value of a key that was there before, because a value never shrinks.
 */

/** Levels in which a value is seen to grow. */
const shownDepth = 64

/** What a snapshot costs of one open node, in characters of text. Measured: objects of many keys are dear, arrays cheap. */
const costOf = ({ node, width }: Frame): number =>
  Array.isArray(node)
    ? (node.length / 256) * Math.max(1, node.length / 2048)
    : width > 64
      ? width
      : width / 16

type Node = Array<unknown> | Record<string, unknown>

interface Frame {
  /** Of an object the key whose value is next, or open. */
  key: string
  /** The array or object itself; until the next snapshot it may be changed in place when it was made or copied since. */
  node: Node
  generation: number
  readonly isShown: boolean
  /** Of an object how many keys it has. */
  width: number
}

/** `__proto__` is a key like others. */
const set = (node: Record<string, unknown>, key: string, value: unknown): void => {
  if (key === "__proto__") {
    Object.defineProperty(node, key, { value, enumerable: true, configurable: true, writable: true })
  } else {
    node[key] = value
  }
}

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null

/** Whether two values of JSON are the same. Needs no stack for their depth. */
export const isSame = (one: unknown, other: unknown): boolean => {
  const pairs: Array<readonly [unknown, unknown]> = [[one, other]]
  for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
    const [left, right] = pair
    if (Object.is(left, right)) continue
    if (!isNode(left) || !isNode(right)) return false
    if (Object.getPrototypeOf(left) !== Object.getPrototypeOf(right)) return false
    const keys = Object.keys(left)
    if (keys.length !== Object.keys(right).length) return false
    const [from, to] = [left as Record<string, unknown>, right as Record<string, unknown>]
    for (const key of keys) {
      if (!Object.hasOwn(to, key)) return false
      pairs.push([from[key], to[key]])
    }
    // What has no keys to compare, such as a date, is the same only when it is the same object.
    if (keys.length === 0 && !Array.isArray(left) && Object.getPrototypeOf(left) !== Object.prototype) {
      return false
    }
  }
  return true
}

export class GrowingValue {
  private readonly frames: Array<Frame> = []
  private root: unknown
  private seen: unknown
  private generation = 0
  /** Characters of text that have paid for no snapshot yet. */
  private credit = 0
  private hasChanged = false

  private isStringOpen = false
  private isStringShown = false
  private isStringDirty = false
  private text = ""
  /** The first half of a pair, whose second half may come. */
  private held = ""

  /** The first key of an object at the root. */
  firstKey: string | undefined

  private elementDepth = 0
  private elementNode: ReadonlyArray<unknown> = []
  private elementCount = 0

  constructor(
    /** The key of the root under which elements may stand. */
    private readonly elementsKey: string | undefined,
    /** Whether nobody looks at what is seen before it is complete: then it is no snapshot, and costs no copy. */
    private readonly isUnseen: boolean
  ) {}

  /** How deep what is open lies. */
  get depth(): number {
    return this.frames.length
  }

  get isInArray(): boolean {
    return Array.isArray(this.frames[this.frames.length - 1]?.node)
  }

  /** The value as it was at the last {@link settle}; `undefined` before it has begun. */
  get value(): unknown {
    return this.seen
  }

  /** Complete elements of the array at the root, or under its key: those behind the first `from`. */
  elements(from: number): ReadonlyArray<unknown> {
    if (from >= this.elementCount) return []
    const open = this.elementDepth === 0 ? undefined : this.frames[this.elementDepth - 1]?.node
    return (Array.isArray(open) ? open : this.elementNode).slice(from, this.elementCount)
  }

  /** The key of what comes next. */
  key(key: string): void {
    const top = this.frames[this.frames.length - 1]
    if (top !== undefined) top.key = key
    if (this.frames.length === 1) this.firstKey ??= key
  }

  open(isArray: boolean): void {
    const { frames } = this
    const node: Node = isArray ? [] : {}
    const parent = frames[frames.length - 1]
    const isShown = parent === undefined || (frames.length < shownDepth && this.isPlaceFree(parent))
    if (parent === undefined || isShown || !parent.isShown) this.put(node, isShown)
    if (isArray && this.isPlaceOfElements()) this.elementDepth = frames.length + 1
    frames.push({ key: "", node, generation: this.generation, isShown, width: 0 })
  }

  private isPlaceOfElements(): boolean {
    if (this.elementDepth > 0 || this.elementCount > 0) return false
    const [root] = this.frames
    return root === undefined || (this.frames.length === 1 && root.key === this.elementsKey)
  }

  close(): void {
    const { frames } = this
    const closed = frames.pop()
    if (closed === undefined) return
    if (frames.length === this.elementDepth - 1) {
      this.elementDepth = 0
      if (Array.isArray(closed.node)) this.elementNode = closed.node
    }
    if (!closed.isShown && frames[frames.length - 1]?.isShown === true) this.putLate(closed.node)
    this.ended()
  }

  scalar(value: number | boolean | null): void {
    const parent = this.frames[this.frames.length - 1]
    if (parent === undefined || this.isPlaceFree(parent)) this.put(value, true)
    else this.putLate(value)
    this.ended()
  }

  openString(): void {
    const parent = this.frames[this.frames.length - 1]
    this.isStringOpen = true
    this.isStringDirty = false
    this.text = ""
    this.held = ""
    this.isStringShown = parent === undefined || (parent.isShown && this.isPlaceFree(parent))
    if (this.isStringShown) this.put("", true)
  }

  growString(piece: string): void {
    let whole = this.held === "" ? piece : this.held + piece
    const last = whole.charCodeAt(whole.length - 1)
    this.held = ""
    if (last >= 0xd800 && last <= 0xdbff) {
      this.held = whole.slice(-1)
      whole = whole.slice(0, -1)
    }
    if (whole === "") return
    // Nobody looks into what is put together here: a look would copy it.
    this.text += whole
    this.isStringDirty = true
  }

  closeString(): void {
    if (this.held !== "") {
      this.text += this.held
      this.isStringDirty = true
    }
    this.isStringOpen = false
    if (!this.isStringShown) this.putLate(this.text)
    else if (this.isStringDirty) this.replace(this.text)
    this.ended()
  }

  /**
   * A look at what there is, so many characters of text after the last one: whether it is another value than before. What is
   * seen does not change any more.
   */
  settle(length: number): boolean {
    this.credit += length
    if (this.isStringOpen && this.isStringShown && this.isStringDirty) {
      this.isStringDirty = false
      this.replace(this.text)
    }
    if (!this.hasChanged) return false
    let cost = 0
    for (const frame of this.frames) if (frame.isShown) cost += costOf(frame)
    // A value that is complete is seen in any case.
    if (cost > this.credit && this.frames.length > 0) return false
    this.credit -= cost
    this.hasChanged = false
    this.seen = this.root
    if (!this.isUnseen) this.generation++
    return true
  }

  /** Whether a value may be put where it belongs before it is complete. */
  private isPlaceFree(parent: Frame): boolean {
    return parent.isShown && (Array.isArray(parent.node) || !Object.hasOwn(parent.node, parent.key))
  }

  private put(value: unknown, isShown: boolean): void {
    const top = this.frames[this.frames.length - 1]
    if (isShown) this.hasChanged = true
    if (top === undefined) {
      this.root = value
      return
    }
    const node = top.isShown ? this.own() : top.node
    if (Array.isArray(node)) node.push(value)
    else {
      if (!Object.hasOwn(node, top.key)) top.width++
      set(node, top.key, value)
    }
  }

  /** A complete value that nobody has seen to grow. */
  private putLate(value: unknown): void {
    const top = this.frames[this.frames.length - 1]
    if (top?.isShown === true && !Array.isArray(top.node) && Object.hasOwn(top.node, top.key)) {
      if (isSame(top.node[top.key], value)) return
    }
    this.put(value, top === undefined || top.isShown)
  }

  private replace(value: string): void {
    this.hasChanged = true
    const top = this.frames[this.frames.length - 1]
    if (top === undefined) {
      this.root = value
      return
    }
    const node = this.own()
    if (Array.isArray(node)) node[node.length - 1] = value
    else set(node, top.key, value)
  }

  /** The node on top, as one that nobody has seen: with everything above it. */
  private own(): Node {
    const { frames, generation } = this
    let at = frames.length - 1
    for (
      let frame = frames[at];
      frame !== undefined && frame.generation !== generation;
      frame = frames[--at]
    ) {
      frame.node = Array.isArray(frame.node) ? frame.node.slice() : { ...frame.node }
      frame.generation = generation
    }
    for (let above = frames[at], next = at + 1; next < frames.length; next++) {
      const frame = frames[next] as Frame
      if (above === undefined) this.root = frame.node
      else if (Array.isArray(above.node)) above.node[above.node.length - 1] = frame.node
      else set(above.node, above.key, frame.node)
      above = frame
    }
    return (frames[frames.length - 1] as Frame).node
  }

  private ended(): void {
    if (this.frames.length === this.elementDepth && this.elementDepth > 0) this.elementCount++
  }
}
