/** A workflow, as traces have it: `invoke_workflow {name}`. */
import * as Effect from "effect/Effect"
import { attributes } from "./names.js"
import { type Ending, endingOf, parentOf, spansOf, type Traced, tell, within } from "./spans.js"

/** The span of one run of a workflow. Where nobody listens there is none, and nothing happens. */
export class WorkflowSpan {
  constructor(private readonly traced: Traced | undefined) {}

  /** The run is ready. */
  begun(runId: string): void {
    if (this.traced !== undefined) tell(this.traced.span, { [attributes.runId]: runId })
  }

  /** What the run does is below its span. */
  around<A, E, R>(running: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return this.traced === undefined ? running : within(running, this.traced.span)
  }

  /** The run is over, for this time. */
  end(ending: Ending): void {
    this.traced?.spans.end(this.traced.span, ending)
  }
}

const silent = new WorkflowSpan(undefined)

/**
 * Makes a run of a workflow ready in its span, below the one that is current; it is handed to whoever makes it ready, and ended
 * by whoever carries the run. A run that cannot begin ends it at once. Costs nothing where nobody listens.
 */
export const invokingWorkflow = <A, E, R>(
  name: string,
  prepare: (span: WorkflowSpan) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.withFiberRuntime<A, E, R>(fiber => {
    const spans = spansOf(fiber)
    if (spans === undefined) return prepare(silent)
    const span = spans.begin({
      name: `invoke_workflow ${name}`,
      kind: "internal",
      parent: parentOf(fiber),
      mayHaveOuter: true,
      attributes: { [attributes.operation]: "invoke_workflow", [attributes.workflowName]: name }
    })
    const made = new WorkflowSpan({ spans, span })
    return Effect.onError(made.around(prepare(made)), cause => Effect.sync(() => made.end(endingOf(cause))))
  })
