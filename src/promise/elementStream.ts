/** The elements of a structured array, as a web stream: each is validated by itself. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { RunRecord } from "../output/RunRecord.js"
import { RunStream } from "./RunStream.js"

/** A web stream that `for await` reads too. @since 0.1.0 @category models */
export type ElementStream<A> = ReadableStream<A> & AsyncIterable<A>

/** Reading it slowly holds the run; cancelling it affects no other reader. */
export const elementStream = <A>({ log, structured }: RunRecord): ElementStream<A> => {
  const complete = new RunStream(
    log,
    (_, cursor) => {
      const elements = cursor.takeElements()
      return elements.length === 0 ? undefined : elements
    },
    true
  )
  let iterator: AsyncIterator<ReadonlyArray<unknown>> | undefined
  const pull = async (controller: ReadableStreamDefaultController<A>): Promise<void> => {
    iterator ??= complete[Symbol.asyncIterator]()
    for (let count = 0; count === 0; ) {
      const { done, value: elements } = await iterator.next()
      if (done === true) return controller.close()
      for (const element of elements) {
        if (structured === undefined) continue
        const exit = await Effect.runPromiseExit(structured.decodeElement(element))
        if (Exit.isFailure(exit)) continue
        // What is validated, and what `A` is, come from one schema.
        controller.enqueue(exit.value as A)
        count++
      }
    }
  }
  const leave = async (): Promise<void> => {
    if (iterator === undefined) await complete.cancel()
    else await iterator.return?.()
  }
  return new ReadableStream<A>({ pull, cancel: leave }, { highWaterMark: 0 })
}
