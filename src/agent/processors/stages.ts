/** What processors do between the states of a run. Loaded by the first run that has any. */
export { processedInput, processedPrompt } from "./inputs.js"
export { judged, rejected } from "./judging.js"
