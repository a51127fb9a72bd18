/** What a run is made of again that was laid aside, and what it is told that its caller does not say again. Pure. */
import type { ToolDefinition } from "../../model/ModelPort.js"
import type { Message } from "../../protocol/Message.js"
import { given } from "../checkOptions.js"
import type { AnyRunOptions } from "../definition.js"
import type { Note } from "../loop/run.js"
import type { ToolApprovalPolicy } from "../RunOptions.js"
import type { Earlier } from "./runSuspension.js"
import { type KeptOptions, outcomeParts, type Snapshot } from "./snapshot.js"

/** A run as it was. What it has added begins with the outcomes of the calls that are decided. */
export const resumedFrom = (
  snapshot: Snapshot
): {
  readonly input: ReadonlyArray<Message>
  readonly added: Array<Message>
  readonly feedback: Array<Note>
  readonly earlier: Earlier
} => ({
  input: snapshot.messages,
  added: [{ role: "tool", content: outcomeParts(snapshot) }],
  feedback: [...snapshot.notes],
  // The step that is told again for the decision stands for the one that holds the calls.
  earlier: {
    usage: snapshot.usage,
    steps: snapshot.steps - 1,
    judgedSteps: snapshot.judgedSteps ?? 0,
    text: snapshot.text
  }
})

const keptSettings = ({
  headers: _,
  ...settings
}: NonNullable<AnyRunOptions["modelSettings"]>): NonNullable<KeptOptions["modelSettings"]> => given(settings)

const keptTools = (definitions: ReadonlyArray<ToolDefinition>): NonNullable<KeptOptions["clientTools"]> =>
  Object.fromEntries(definitions.map(({ name, ...definition }) => [name, definition]))

/** Options that hold for what follows. `clientTools` are the run's, as the model is told of them. */
export const keptOptions = (
  {
    activeTools,
    instructions,
    maxSteps,
    modelSettings,
    providerOptions,
    requireToolApproval,
    toolChoice
  }: AnyRunOptions,
  clientTools: ReadonlyArray<ToolDefinition>
): KeptOptions => ({
  ...(clientTools.length === 0 ? {} : { clientTools: keptTools(clientTools) }),
  ...(instructions === undefined ? {} : { instructions }),
  ...(maxSteps === undefined ? {} : { maxSteps }),
  ...(activeTools === undefined ? {} : { activeTools }),
  ...(toolChoice === undefined ? {} : { toolChoice }),
  ...(modelSettings === undefined ? {} : { modelSettings: keptSettings(modelSettings) }),
  ...(providerOptions === undefined ? {} : { providerOptions }),
  ...(requireToolApproval === undefined
    ? {}
    : {
        requireToolApproval: typeof requireToolApproval === "function" ? "policy" : requireToolApproval
      })
})

/**
 * The same, as they are told again. A policy that nobody has any more asks about everything; `policy` is that of the agent,
 * which may be the same.
 */
export const keptAgain = (
  { requireToolApproval, ...kept }: KeptOptions,
  policy: boolean | ToolApprovalPolicy | undefined
) => {
  if (requireToolApproval === undefined) return kept
  if (requireToolApproval !== "policy") return { ...kept, requireToolApproval }
  return { ...kept, requireToolApproval: typeof policy === "function" ? policy : true }
}
