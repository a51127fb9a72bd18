/** A workflow, as traces have it: `invoke_workflow {name}`. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { attributes } from "./names.js"
import { done, endingOf, parentOf, spansOf, within } from "./spans.js"

/** Which workflow runs. */
export interface InvokedWorkflow {
  readonly name: string
  readonly runId: string
}

/**
 * Runs a workflow in its span: what runs in it is below. Costs nothing where nobody listens. To be interrupted is no failure.
 */
export const invokingWorkflow = <A, E, R>(
  { name, runId }: InvokedWorkflow,
  running: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.withFiberRuntime<A, E, R>(fiber => {
    const spans = spansOf(fiber)
    if (spans === undefined) return running
    const span = spans.begin({
      name: `invoke_workflow ${name}`,
      kind: "internal",
      parent: parentOf(fiber),
      mayHaveOuter: true,
      attributes: {
        [attributes.operation]: "invoke_workflow",
        [attributes.workflowName]: name,
        [attributes.runId]: runId
      }
    })
    return Effect.onExit(within(running, span), exit =>
      Effect.sync(() => spans.end(span, Exit.isSuccess(exit) ? done : endingOf(exit.cause)))
    )
  })
