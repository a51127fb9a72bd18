/**
 * Blocks of text and reasoning of one answer: opens what the provider never opened, closes what it left open, drops empty
 * deltas, joins surrogate pairs that were cut in two, and emits a signature when one comes.
 */
import type { Chunk } from "../protocol/Chunk.js"
import type { ReasoningPart, TextPart } from "../protocol/Message.js"
import type { ProviderMetadata } from "../protocol/safeJson.js"
import type { BlockDelta, BlockEdge } from "./ModelPart.js"
import { mergeMetadata, metadataField, signatureOf, withJoinedSignature } from "./providerMetadata.js"
import type { RunIds } from "./runIds.js"

type BlockType = "text" | "reasoning"

/** One block, from its start on. */
export class Block {
  text = ""
  /** Whether it has said something: then it has its place among the parts of the answer. */
  isPlaced = false
  signature: string | undefined
  /** Whether nothing was said since the last piece of the signature. */
  isSigning = false
  metadata: ProviderMetadata | undefined
  /** The first half of a surrogate pair, kept until the second comes. */
  half = ""
  /** What the model has said and nobody was told yet. Only of what passes through others before it is told. */
  private owed = ""
  private isOther = false

  constructor(
    readonly type: BlockType,
    readonly sourceId: string,
    readonly id: string
  ) {}

  /** The model has said something that is not told yet. */
  owe(text: string): void {
    if (!this.isOther) this.owed += text
  }

  /** Somebody was told this: whether it is what the model has said. */
  pay(text: string): void {
    if (this.isOther) return
    if (this.owed === text) this.owed = ""
    else if (this.owed.startsWith(text)) this.owed = this.owed.slice(text.length)
    else this.isOther = true
  }

  /** Whether what was told is not what the model has said. */
  get isChanged(): boolean {
    return this.isOther || this.owed !== ""
  }

  /**
   * The part of the next prompt. `undefined` for a block that says nothing. What a provider says about its own words, a signature
   * or the id under which it keeps them, is not true of others.
   */
  toPart(): TextPart | ReasoningPart | undefined {
    const metadata = this.isChanged ? undefined : this.metadata
    const options = metadata === undefined ? {} : { providerOptions: metadata }
    if (this.text === "" && metadata === undefined) return undefined
    return { type: this.type, text: this.text, ...options }
  }
}

/** A delta without lone surrogates; an unpaired first half at its end goes into `half`, for the delta that comes next. */
export const join = (writing: { half: string }, delta: string): string => {
  if (writing.half === "" && delta.isWellFormed()) return delta
  const text = writing.half + delta
  writing.half = ""
  const last = text.charCodeAt(text.length - 1)
  if (last < 0xd800 || last > 0xdbff) return text.toWellFormed()
  writing.half = text.slice(-1)
  return text.slice(0, -1).toWellFormed()
}

/** Whether a block goes on under another signature. What is signed goes back as it was signed: that is another block. */
const isSignedAnew = (block: Block, metadata: ProviderMetadata): boolean => {
  const [before, now] = [signatureOf(block.metadata), signatureOf(metadata)]
  return before !== undefined && now !== undefined && before !== now
}

/** The blocks of one answer. */
export class Blocks {
  private readonly open = new Map<string, Block>()
  /** The block of the last delta: deltas of one block come in a row. */
  private current: Block | undefined
  /** Who spoke when: blocks may interleave, and the text of an answer is what was said in the order of saying. */
  private turns: Array<{ readonly block: Block; readonly from: number; to: number | undefined }> = []

  constructor(
    private readonly runId: string,
    private readonly ids: RunIds,
    private readonly emit: (chunk: Chunk) => void,
    /** Called when a block says the first that is to be kept. */
    private readonly began: (block: Block) => void,
    /** Characters that may still be kept. */
    private room: number,
    /** Whether what is kept is what {@link hear} is given, and not what the model says. */
    private readonly isFollowing: boolean
  ) {}

  /** Every block by its own id; only of one that follows. */
  private byId: Map<string, Block> | undefined

  /** Whether something was said that is not kept. */
  isTruncated = false

  /** Keeps what there is room for. */
  private keep(block: Block, text: string): void {
    if (text.length <= this.room) {
      block.text += text
      this.room -= text.length
      return
    }
    if (!this.isTruncated) block.text += text.slice(0, this.room).toWellFormed()
    this.room = 0
    this.isTruncated = true
  }

  /** All text so far, in the order of its deltas. */
  get text(): string {
    return this.turns
      .map(({ block, from, to }) => (block.type === "text" ? block.text.slice(from, to) : ""))
      .join("")
  }

  private place(block: Block): void {
    if (block.isPlaced) return
    block.isPlaced = true
    this.began(block)
  }

  /** What was let through of a block: this is told, and kept. */
  hear(id: string, text: string): void {
    const block = this.byId?.get(id)
    if (block === undefined) return
    this.turnTo(block)
    this.keep(block, text)
    block.pay(text)
  }

  /** From here on this block speaks. */
  private speaks(block: Block): void {
    if (!this.isFollowing) this.turnTo(block)
  }

  private turnTo(block: Block): void {
    const last = this.turns.at(-1)
    if (last?.block === block) return
    if (last !== undefined) last.to = last.block.text.length
    const turn = { block, from: block.text.length, to: undefined }
    if (this.turns.length === 0) this.turns = [turn]
    else this.turns.push(turn)
  }

  delta(part: BlockDelta): void {
    const type: BlockType = part.type === "text-delta" ? "text" : "reasoning"
    let block = this.current
    if (block === undefined || block.sourceId !== part.id || block.type !== type) {
      // An empty delta opens nothing.
      if (!part.delta && part.providerMetadata === undefined) return
      block = this.open.get(`${type} ${part.id}`) ?? this.begin(type, part.id, undefined)
      this.current = block
      this.place(block)
      this.speaks(block)
    }
    let metadata = part.providerMetadata
    if (metadata !== undefined) {
      const joined =
        block.isSigning && !part.delta ? withJoinedSignature(block.metadata, metadata) : undefined
      if (joined !== undefined) {
        metadata = joined
      } else if (isSignedAnew(block, metadata)) {
        this.end(block, undefined)
        block = this.begin(type, part.id, metadata)
        this.current = block
        this.speaks(block)
      }
    }
    const text = part.delta ? join(block, part.delta) : ""
    if (part.delta) block.isSigning = false
    if (metadata === undefined) {
      if (text !== "") this.say(block, text, undefined)
      return
    }
    block.metadata = mergeMetadata(block.metadata, metadata)
    if (signatureOf(metadata) !== undefined) block.isSigning = true
    const isSigned = this.sign(block, metadata)
    if (text !== "" || !isSigned) this.say(block, text, metadata)
  }

  private say(block: Block, text: string, metadata: ProviderMetadata | undefined): void {
    if (this.isFollowing) block.owe(text)
    else this.keep(block, text)
    const { runId } = this
    if (metadata !== undefined) {
      const payload = { id: block.id, text, providerMetadata: metadata }
      this.emit({ type: `${block.type}-delta`, runId, from: "AGENT", payload })
    } else if (block.type === "text") {
      this.emit({ type: "text-delta", runId, from: "AGENT", payload: { id: block.id, text } })
    } else {
      this.emit({ type: "reasoning-delta", runId, from: "AGENT", payload: { id: block.id, text } })
    }
  }

  edge(part: BlockEdge): void {
    const type: BlockType = part.type === "text-start" || part.type === "text-end" ? "text" : "reasoning"
    const block = this.open.get(`${type} ${part.id}`)
    if (part.type === "text-end" || part.type === "reasoning-end") {
      if (block !== undefined) this.end(block, part.providerMetadata)
      return
    }
    // A second start of an open block: the provider left the first one open.
    if (block !== undefined) this.end(block, undefined)
    this.begin(type, part.id, part.providerMetadata)
  }

  private begin(type: BlockType, sourceId: string, metadata: ProviderMetadata | undefined): Block {
    const block = new Block(type, sourceId, this.ids.unique(sourceId || type))
    const payload = { id: block.id, ...metadataField(metadata) }
    const signature = signatureOf(metadata)
    block.metadata = metadata
    // What could fail has been done: from here on the start is emitted, and the block is owed its end, also when its reader
    // stops the run on the stack of `emit`.
    this.open.set(`${type} ${sourceId}`, block)
    if (this.isFollowing) this.byId = (this.byId ?? new Map()).set(block.id, block)
    if (metadata !== undefined) this.place(block)
    const { runId } = this
    if (type === "text") {
      this.emit({ type: "text-start", runId, from: "AGENT", payload })
    } else {
      const signed = signature === undefined ? payload : { ...payload, signature }
      this.emit({ type: "reasoning-start", runId, from: "AGENT", payload: signed })
      this.sign(block, metadata)
    }
    return block
  }

  /** Whether a new signature was told. */
  private sign(block: Block, metadata: ProviderMetadata | undefined): boolean {
    if (block.type === "text") return false
    const signature = signatureOf(metadata)
    if (signature === undefined || signature === block.signature) return false
    block.signature = signature
    const payload = { id: block.id, signature, ...metadataField(metadata) }
    this.emit({ type: "reasoning-signature", runId: this.runId, from: "AGENT", payload })
    return true
  }

  private isOpen(block: Block): boolean {
    return this.open.get(`${block.type} ${block.sourceId}`) === block
  }

  private end(block: Block, metadata: ProviderMetadata | undefined): void {
    if (block.half !== "") {
      block.half = ""
      this.current = undefined
      this.speaks(block)
      this.say(block, "\uFFFD", undefined)
      // Its reader may have stopped the run on the stack of `emit`, which has ended the block.
      if (!this.isOpen(block)) return
    }
    if (metadata !== undefined) this.place(block)
    block.metadata = mergeMetadata(block.metadata, metadata)
    this.sign(block, metadata)
    // Reading a character makes the engine join what was appended, and let go of every piece.
    block.text.at(0)
    this.open.delete(`${block.type} ${block.sourceId}`)
    if (this.current === block) this.current = undefined
    const { runId } = this
    const payload = { id: block.id, ...metadataField(metadata) }
    if (block.type === "text") {
      this.emit({ type: "text-end", runId, from: "AGENT", payload })
    } else {
      const signed = block.signature === undefined ? payload : { ...payload, signature: block.signature }
      this.emit({ type: "reasoning-end", runId, from: "AGENT", payload: signed })
    }
  }

  /** Ends every block that is still open. */
  close(): void {
    for (const block of [...this.open.values()]) if (this.isOpen(block)) this.end(block, undefined)
  }
}
