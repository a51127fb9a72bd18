/** What the end of a step has to do with tasks. Loaded by the first run whose calls may run in the background. */
export { answerable, oneSettled, remaining } from "./finishing.js"
export { startProgress } from "./progress.js"
export { settledMessage } from "./settled.js"
