/** What runs workflows. The Promise face loads it when the first of them runs: to write one takes none of it. */
export { restart, resume, start } from "./beginning.js"
export { list, remove } from "./listing.js"
export { record } from "./recording.js"
