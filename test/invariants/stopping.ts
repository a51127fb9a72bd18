/** When a run is stopped: whether the moment that a scenario names has come. */
import { type Chunk, Nesting } from "eddy"
import type { Stop } from "./scenario.js"

/** Turns of the event loop after which the run is stopped; `undefined`: that depends on its chunks. */
export const turnsBefore = (stop: Stop | undefined): number | undefined =>
  stop !== undefined && "turns" in stop.after ? stop.after.turns : undefined

/** Whether the signal of the run has fired before it begins. */
export const isBefore = (stop: Stop | undefined): boolean =>
  stop?.how === "signal" && "chunks" in stop.after && stop.after.chunks === 0

/** Looks at one chunk after the other, and says once that the moment has come. */
export const lookout = (stop: Stop | undefined): ((chunk: Chunk.Chunk) => boolean) => {
  let count = 0
  let isOver = stop === undefined
  return chunk => {
    if (stop === undefined || isOver) return false
    count++
    isOver = isMoment(stop, count, chunk)
    return isOver
  }
}

const isMoment = ({ after }: Stop, count: number, chunk: Chunk.Chunk): boolean => {
  if ("chunks" in after) return count === after.chunks
  if ("turns" in after) return false
  return after.first === "a step below"
    ? chunk.type === "tool-output" && Nesting.unnest(chunk).chunk.type === "step-finish"
    : chunk.type === after.first
}
