/** Whatever a run does, the client of the AI SDK reads it; and a response that is broken by hand is noticed. */
import { FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import * as UiMessageStream from "../../../src/http/mapping/UiMessageStream.js"
import { violationsOf } from "../../support/grammar.js"
import { mapped } from "./kit.js"
import { allText, brokenResponse, textByBlock, untilIdleResponse, wellFormedRun } from "./randomRuns.js"
import { order, partsOf, readUi, uiText, validated } from "./uiKit.js"

const ui = (chunks: Parameters<typeof mapped>[1]) => mapped(UiMessageStream.make(), chunks)

describe("random responses", () => {
  it("are runs in order", () => {
    fc.assert(
      fc.property(wellFormedRun, ({ chunks }) => {
        expect(violationsOf(chunks)).toStrictEqual([])
      })
    )
  })

  it("are read by the client, with all of their text and no secret", async () => {
    await fc.assert(
      fc.asyncProperty(untilIdleResponse, async ({ chunks, way }) => {
        const frames = ui(chunks)
        const { errors, message } = await readUi(frames)
        expect(errors).toStrictEqual(way === "error" || way === "mid-text" ? ["An error occurred."] : [])
        expect(uiText(message)).toBe(textByBlock(chunks))
        expect(JSON.stringify(frames)).not.toContain("secret")
        const parts = partsOf(message, "data-background-task")
        expect(new Set(parts.map(({ id }) => id)).size).toBe(parts.length)
        expect(ui(chunks)).toStrictEqual(frames)
      }),
      { numRuns: 60 }
    )
  })

  it("are read when they are broken, too", async () => {
    await fc.assert(
      fc.asyncProperty(brokenResponse, async chunks => {
        const { errors } = await readUi(ui(chunks))
        expect(errors.filter(error => error !== "An error occurred.")).toStrictEqual([])
      }),
      { numRuns: 100 }
    )
  })
})

type Frames = ReadonlyArray<{ readonly [field: string]: unknown }>

/** What a proxy could do to frames, and a check that must notice it. */
const mutations: Readonly<Record<string, (frames: Frames) => Frames>> = {
  "a frame has another name": frames =>
    frames.map(one => (one["type"] === "text-start" ? { ...one, type: "text-begin" } : one)),
  "a field has another name": frames =>
    frames.map(({ delta, ...one }) => (delta === undefined ? one : { ...one, text: delta })),
  "the finish is missing": frames => frames.slice(0, -1),
  "the start is missing": frames => frames.slice(1),
  "there are two starts": frames => [...frames.slice(0, 1), ...frames],
  "a text is not opened": frames => frames.filter(({ type }) => type !== "text-start"),
  "a call is not told of": frames => frames.filter(({ type }) => !String(type).startsWith("tool-input")),
  "an input is not opened": frames => frames.filter(({ type }) => type !== "tool-input-start"),
  "a step is not closed": frames => frames.filter(({ type }) => type !== "finish-step"),
  "a reason is none of theirs": frames =>
    frames.map(one => (one["type"] === "finish" ? { ...one, finishReason: "aborted" } : one)),
  "there is a chunk among them": frames => [
    ...frames.slice(0, -1),
    { type: "step-start" },
    ...frames.slice(-1)
  ],
  "the text is cut": frames =>
    frames.map(one => (one["type"] === "text-delta" ? { ...one, delta: "" } : one)),
  "outputs are lost": frames => frames.filter(({ type }) => type !== "tool-output-available")
}

describe("the checks notice", () => {
  const [response] = fc.sample(
    untilIdleResponse.filter(
      ({ chunks, way }) =>
        way === "stop" &&
        allText(chunks) !== "" &&
        ["tool-call-input-streaming-start", "background-task-completed"].every(type =>
          chunks.some(chunk => chunk.type === type)
        )
    ),
    { numRuns: 1, seed: 1 }
  )
  const chunks = response?.chunks ?? []

  const overFrames: Frames = ui(chunks).map(frame => ({ ...frame }))

  const faults = async (frames: Frames): Promise<ReadonlyArray<string>> => {
    try {
      const wrong = order(await validated(frames))
      const { errors, message } = await readUi(frames)
      const isTextWhole = uiText(message) === textByBlock(chunks)
      const isAnswered = partsOf(message, "tool-work").every(({ state }) =>
        String(state).startsWith("output-")
      )
      return [...wrong, ...errors, ...(isTextWhole ? [] : ["text"]), ...(isAnswered ? [] : ["outputs"])]
    } catch (error) {
      return [String(error)]
    }
  }

  it("nothing, when nothing is wrong", async () => {
    expect(await faults(overFrames)).toStrictEqual([])
  })

  for (const [name, mutate] of Object.entries(mutations)) {
    it(`that ${name}`, async () => {
      expect(await faults(mutate(overFrames))).not.toStrictEqual([])
    })
  }
})
