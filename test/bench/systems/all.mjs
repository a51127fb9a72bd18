export { ai } from "./ai.mjs"
export { eddy, eddyUnkept, openThreads, streamEffect } from "./eddy.mjs"
export { mastra } from "./mastra.mjs"
export { raw } from "./raw.mjs"
