// The control: the model's own ReadableStream, read by nobody in between.
import { scripted } from "../kit/model.mjs"

export const raw = {
  name: "raw",
  textOf: part => part.delta,
  resultOf: part => part.result,
  open: script => {
    const model = scripted(script, "v3")
    const prompt = [{ role: "user", content: [{ type: "text", text: "hi" }] }]
    return { model, stream: async () => ({ fullStream: (await model.doStream({ prompt })).stream }) }
  }
}
