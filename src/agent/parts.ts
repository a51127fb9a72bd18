/**
 * Parts of the loop that only some runs need. Whoever makes such a run ready loads them first; the loop, which waits for nothing,
 * has them at hand then. Each is declared where it is used.
 */
import * as Effect from "effect/Effect"
import { lazily } from "../protocol/lazily.js"
import { streaming } from "./loop/asking.js"
import { dispatching } from "./loop/execution.js"
import { legs, stages, valued } from "./loop/loop.js"
import { stepTasks } from "./loop/stepEnd.js"
import { reporting } from "./loop/stopping.js"

const runProcessors = lazily(() => import("./processors/runProcessors.js"))
const inBackground = lazily(() => import("./tasks/inBackground.js"))
const structuring = lazily(() => import("./loop/structuring.js"))

/** Of runs with processors. */
export const processing = Effect.all([stages.load, streaming.load]).pipe(Effect.zipRight(runProcessors))

/** Of runs whose calls may run in the background. */
export const background = Effect.all([dispatching.load, stepTasks.load]).pipe(Effect.zipRight(inBackground))

/** Of runs that go on after they were suspended. */
export const goingOn = legs.load

/** Of runs that are to give a structured value. */
export const structured = Effect.all([valued.load, reporting.load]).pipe(Effect.zipRight(structuring))

/** Of runs whose caller has tools. */
export const toolsOfClients = lazily(() => import("../tool/clientTools.js"))
