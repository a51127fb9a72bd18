/** Puts the processors of the stream between an answer and those who are told of it. */
import type { Chunk } from "../../protocol/Chunk.js"
import { type Holding, isContent } from "../loop/holding.js"
import { fork, type Run } from "../loop/run.js"
import { HookContext, type Scene } from "./context.js"
import { type Outlet, Processing } from "./processing.js"
import { sceneOf, tellData } from "./scene.js"

/** What processors of the stream need to know of a model call. */
export interface Call extends Pick<Outlet, "record" | "onStopped" | "onIdle"> {
  readonly messages: Scene["messages"]
  readonly holding: Holding
}

/** The processors of one model call; `undefined`: there are none, and nothing is in between. */
export const processingOf = <R>(
  run: Run<R>,
  { holding, messages, ...call }: Call
): Processing | undefined => {
  const { processors } = run
  if (processors === undefined || processors.stream.length === 0) return undefined
  const scene = sceneOf(run, {
    messages,
    trip: tripwire => processing.trip(tripwire),
    writeData: tellData(run, holding.emit)
  })
  const hooks = processors.stream.map(bound => {
    const { processor } = bound
    const context = new HookContext(scene, bound)
    return { processor, call: (chunk: Chunk): unknown => processor.processOutputStream(chunk, context) }
  })
  const processing: Processing = new Processing({
    ...call,
    hooks,
    tell: holding.emit,
    fork: effect => fork(run, effect)
  })
  return processing
}

/** Whether the model has said something, whatever became of it: notes it, and passes it on. */
export class Heard {
  isContent = false

  constructor(private readonly next: (chunk: Chunk) => void) {}

  readonly emit = (chunk: Chunk): void => {
    if (!this.isContent) this.isContent = isContent(chunk)
    this.next(chunk)
  }
}
