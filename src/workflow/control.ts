/** What stops a run of a workflow. */
import { RunControl } from "../agent/loop/run.js"

/** Stops a run from outside. */
export class WorkflowControl extends RunControl {
  /** Whether what is stored of the run stays there, for whoever goes on with it. */
  isKept = false

  constructor(private readonly keeps: (reason: unknown) => boolean = () => false) {
    super()
  }

  /** Stops the run for whoever it works for. */
  readonly stopFor = (reason: unknown): void =>
    this.keeps(reason) ? this.shutDown(reason) : this.abort(reason)

  /** The process ends, and not the run. */
  readonly shutDown = (reason?: unknown): void => {
    if (this.halted === undefined) this.isKept = true
    this.abort(reason)
  }
}
