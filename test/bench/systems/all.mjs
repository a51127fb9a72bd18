export { ai } from "./ai.mjs"
export { eddy, eddyProcessed, eddyUnkept, openThreads, streamEffect } from "./eddy.mjs"
export { mastra } from "./mastra.mjs"
export { raw } from "./raw.mjs"
