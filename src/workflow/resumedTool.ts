/** What a call of a workflow is resumed with that had suspended. */
import * as Effect from "effect/Effect"
import { InvalidResumeData } from "../protocol/Errors.js"
import { isRecord, toJson } from "../protocol/safeJson.js"
import type { Graph } from "./definition.js"
import { findStep } from "./graph.js"

/** The step's own data, or `{ step, resumeData }` when several wait. */
export const resumeDataOf = (data: unknown): { readonly step?: string; readonly resumeData: unknown } =>
  isRecord(data) && typeof data["step"] === "string" && "resumeData" in data
    ? { step: data["step"], resumeData: data["resumeData"] }
    : { resumeData: data }

/** The steps that a call has said it waits for, with what each has suspended with; `undefined`: it has said nothing of that. */
const waitingIn = (suspendData: unknown): ReadonlyMap<string, unknown> | undefined => {
  if (!isRecord(suspendData) || !Array.isArray(suspendData["suspended"])) return undefined
  const list: ReadonlyArray<unknown> = suspendData["suspended"]
  return new Map(
    list.flatMap(one =>
      isRecord(one) && typeof one["stepId"] === "string" ? [[one["stepId"], one["suspendData"]] as const] : []
    )
  )
}

/**
 * Checks what a call is resumed with before anything is made of it: who decides is told at once what is wrong. What cannot be
 * known here is found out by the run, which waits on then.
 */
export const readResumed =
  <R>(graph: Graph<R>, toolName: string) =>
  (data: unknown, suspendData?: unknown): Effect.Effect<unknown, InvalidResumeData> => {
    const waiting = waitingIn(suspendData)
    if (waiting === undefined) return Effect.succeed(data)
    const wrong = (what: string): InvalidResumeData =>
      new InvalidResumeData({ toolName, message: `Tool "${toolName}" cannot be resumed with this: ${what}` })
    const { resumeData, step } = resumeDataOf(data)
    const ids = [...waiting.keys()]
    const stepId = step ?? (ids.length === 1 ? ids[0] : undefined)
    if (stepId === undefined) {
      return Effect.fail(wrong(`several steps wait (${ids.join(", ")}). Say which: { step, resumeData }.`))
    }
    if (!waiting.has(stepId)) {
      return Effect.fail(wrong(`step "${stepId}" does not wait. Steps that wait: ${ids.join(", ")}.`))
    }
    const body = findStep(graph, stepId)?.body
    if (body?._tag !== "Leaf") return Effect.succeed(data)
    return Effect.mapBoth(body.resume.decode(toJson(resumeData), waiting.get(stepId)), {
      onFailure: ({ message }) => wrong(message),
      onSuccess: () => data
    })
  }
