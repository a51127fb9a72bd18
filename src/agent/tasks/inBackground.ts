/** What a run is made of whose calls may run in the background. Loaded by the first one. */
export { RunTasks } from "./runTasks.js"
export { settledMessage } from "./settled.js"
export { executorOf, noRun } from "./taskExecutor.js"
