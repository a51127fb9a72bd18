import type { LanguageModel, ModelPart } from "eddy"
import { delta, finish, modelOf } from "../support/readers.js"

/** A model with one answer that tells how far it was read and how it was stopped. */
export interface WatchedModel {
  readonly model: LanguageModel.LanguageModel
  /** Parts that were pulled. */
  readonly pulled: () => number
  /** `signal`, `cancelled`: each as often as it happened. */
  readonly stopped: ReadonlyArray<string>
}

/**
 * Says as many text deltas as asked for, one per pull, `0 `, `1 `, … unless told otherwise, then a finish. With `isSilent` it
 * says nothing more after them, and does not end.
 */
export const watchedModel = (
  deltas: number,
  { isSilent = false, say = (index: number): ModelPart.ModelPart => delta("a", `${index} `) } = {}
): WatchedModel => {
  let pulled = 0
  const stopped: Array<string> = []
  const model = modelOf((_, signal) => {
    signal.addEventListener("abort", () => stopped.push("signal"))
    return new ReadableStream<ModelPart.ModelPart>(
      {
        pull: controller => {
          if (pulled < deltas) {
            controller.enqueue(say(pulled))
          } else if (isSilent) {
            return new Promise(() => undefined)
          } else {
            controller.enqueue(finish("stop"))
            controller.close()
          }
          pulled++
          return undefined
        },
        cancel: () => {
          stopped.push("cancelled")
        }
      },
      { highWaterMark: 0 }
    )
  })
  return { model, pulled: () => pulled, stopped }
}
