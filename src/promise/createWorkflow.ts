/**
 * Workflows for plain TypeScript.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { InvalidConfiguration } from "../protocol/Errors.js"
import {
  at,
  checkOptions,
  id,
  isOptions,
  type Kind,
  type Known,
  number,
  read,
  shown,
  text,
  wrongValue
} from "../protocol/options.js"
import type * as ToolSchema from "../tool/ToolSchema.js"
import type { Given } from "../workflow/checking.js"
import {
  type Chosen,
  Draft,
  type Fitting,
  type ForeachOptions,
  type ItemOf,
  type MapOptions,
  type Together
} from "../workflow/Draft.js"
import type { DataContext, OutputOf, RoundContext, Step, Verdict } from "../workflow/definition.js"
import { headOf } from "../workflow/head.js"
import { type ToolBackground, toBackground } from "./background.js"
import { inFacadeWords } from "./createStep.js"
import { fromPromise } from "./fromPromise.js"
import { type AnyWorkflow, Workflow } from "./Workflow.js"

/** What a workflow is made of, but for its steps. @since 0.1.0 @category models */
export interface CreateWorkflowOptions<
  Id extends string,
  Input extends ToolSchema.Source,
  Output extends ToolSchema.Source
> {
  /** No dots: they stand between a workflow and its steps. */
  readonly id: Id
  /** What it is for; tells a model when to call it. */
  readonly description?: string
  /** What it takes: a Standard Schema (zod 4, valibot, arktype), an Effect Schema or a JSON Schema. Without it anything. */
  readonly inputSchema?: Input
  /** What its last step must give. Without it anything. */
  readonly outputSchema?: Output
  /** How often a step is tried again that says nothing of it. Default 0. */
  readonly retries?: number
  /** Milliseconds before the first of these; each further one waits twice as long, at most 30 000. Default 1000. */
  readonly retryDelayMs?: number
  /** How it runs in the background when it is a tool of an agent. Default: it does not. */
  readonly background?: ToolBackground
}

type Judge<Context> = (context: Context) => boolean | Promise<boolean>

/** A condition of plain TypeScript. What it throws fails the run. */
const toVerdict =
  <Context>(judge: Judge<Context>) =>
  (context: Context): Verdict => {
    const verdict = judge(context)
    return typeof verdict === "boolean" ? verdict : Effect.promise(() => Promise.resolve(verdict))
  }

type AnyStep<Data> = Step<string, Data, unknown, unknown>

/**
 * A workflow that is being written: `Data` is what its last node gives. Every method gives a new draft; `commit` gives the
 * workflow. A draft cannot be awaited.
 *
 * - `then`: the next step takes what the one before gave.
 *
 * @since 0.1.0
 * @category models
 */
export class WorkflowDraft<Id extends string, In, Init, Data, Output extends ToolSchema.Source> {
  /** Made by `createWorkflow`. */
  constructor(
    private readonly draft: Draft<Id, In, Init, Data, Output, unknown, never>,
    private readonly background: ToolBackground | undefined
  ) {}

  private next<Next>(
    draft: Draft<Id, In, Init, Next, Output, unknown, never>
  ): WorkflowDraft<Id, In, Init, Next, Output> {
    return new WorkflowDraft(draft, this.background)
  }

  // biome-ignore lint/suspicious/noThenProperty: the field's word for it; whoever awaits a draft is told that it is none.
  then<Next>(step: Step<string, Data, Next, unknown>): WorkflowDraft<Id, In, Init, Next, Output> {
    return this.next(this.draft.andThen(step))
  }

  /** Steps at the same time, each with what the one before gave. They give an object: what each gave, by its id. */
  parallel<const Steps extends ReadonlyArray<AnyStep<Data>>>(
    steps: Steps
  ): WorkflowDraft<Id, In, Init, Together<Steps[number]>, Output> {
    return this.next(
      this.draft.parallel(steps) as Draft<Id, In, Init, Together<Steps[number]>, Output, unknown, never>
    )
  }

  /** The steps whose condition holds, at the same time. They give an object: what each gave, by its id; the others are not there. */
  branch<const Arms extends ReadonlyArray<readonly [Judge<DataContext<Data, Init>>, AnyStep<Data>]>>(
    arms: Arms
  ): WorkflowDraft<Id, In, Init, Chosen<Arms[number][1]>, Output> {
    const translated = arms.map(([when, step]) => [toVerdict(when), step] as const)
    return this.next(
      this.draft.branch(translated) as Draft<Id, In, Init, Chosen<Arms[number][1]>, Output, unknown, never>
    )
  }

  /** The step for each item of the list that the one before gave. It gives the list of what it gave, in the same order. */
  foreach<Next>(
    step: Step<string, ItemOf<Data>, Next, unknown>,
    options: ForeachOptions = {}
  ): WorkflowDraft<Id, In, Init, ReadonlyArray<Next>, Output> {
    return this.next(this.draft.foreach(step, options))
  }

  /** The step again and again, with what it gave itself, until the condition holds; once at least. */
  dountil<Next>(
    step: Step<string, Data | NoInfer<Next>, Next, unknown>,
    when: Judge<RoundContext<NoInfer<Next>, Init>>
  ): WorkflowDraft<Id, In, Init, Next, Output> {
    return this.next(this.draft.dountil(step, toVerdict(when)))
  }

  /** The step again and again, with what it gave itself, as long as the condition holds; once at least. */
  dowhile<Next>(
    step: Step<string, Data | NoInfer<Next>, Next, unknown>,
    when: Judge<RoundContext<NoInfer<Next>, Init>>
  ): WorkflowDraft<Id, In, Init, Next, Output> {
    return this.next(this.draft.dowhile(step, toVerdict(when)))
  }

  /** A function of what the step before gave. It is a step: it is told of in chunks, and not called again when it is done. */
  map<Next>(
    change: (context: DataContext<Data, Init>) => Next | Promise<Next>,
    options: MapOptions = {}
  ): WorkflowDraft<Id, In, Init, Next, Output> {
    return this.next(this.draft.map<Next, unknown>(context => fromPromise(() => change(context)), options))
  }

  /** The workflow. What its last node gives must be what its output schema takes. */
  commit(..._: Fitting<Data, Given<Output>>): Workflow<Id, In, ToolSchema.Shown<Output, Data>> {
    // The types were compared here.
    return new Workflow(this.draft.commit(...(_ as never)), this.background)
  }
}

const known: Known = {
  kinds: {
    id,
    description: text,
    inputSchema: read,
    outputSchema: read,
    retries: read,
    retryDelayMs: number,
    background: read
  } satisfies Record<keyof CreateWorkflowOptions<string, ToolSchema.Source, ToolSchema.Source>, Kind>,
  places: {
    steps: "Add the steps one after the other: `createWorkflow({ id }).then(step).commit()`.",
    input: at("inputSchema"),
    output: at("outputSchema"),
    retryConfig: at("retries"),
    maxRetries: at("retries")
  }
}

/** What a workflow does, and a draft cannot do yet. */
const runMethods = [
  "stream",
  "start",
  "resumeStream",
  "resume",
  "restartStream",
  "restart",
  "listRuns",
  "deleteRun"
] as const satisfies ReadonlyArray<keyof AnyWorkflow>

for (const name of runMethods) {
  Object.defineProperty(WorkflowDraft.prototype, name, {
    value: async (): Promise<never> => {
      throw new InvalidConfiguration({
        field: "commit",
        message: `This workflow is a draft, and has no \`${name}\`. Call \`.commit()\` after its last step, and use the workflow that it returns.`
      })
    }
  })
}

/**
 * Begins a workflow: `createWorkflow({ id, inputSchema, outputSchema }).then(step).parallel([other, another]).commit()`. Throws
 * `InvalidConfiguration`, here or at the step, which names the field and the remedy, for what cannot work.
 *
 * @since 0.1.0
 * @category constructors
 */
export const createWorkflow = <
  const Id extends string,
  Input extends ToolSchema.Source = ToolSchema.Anything,
  Output extends ToolSchema.Source = ToolSchema.Anything
>(
  options: CreateWorkflowOptions<Id, Input, Output>
): WorkflowDraft<
  Id,
  Given<Input>,
  ToolSchema.Shown<Input, unknown>,
  ToolSchema.Shown<Input, unknown>,
  Output
> => {
  if (!isOptions(options)) throw wrongValue("options", options, "Give { id }.")
  checkOptions(`Workflow ${shown(options.id)}`, options, known)
  const {
    background,
    description,
    id: workflowId,
    inputSchema,
    outputSchema,
    retries,
    retryDelayMs
  } = options
  // Wrong options are found here, and not by the agent that uses it.
  if (background !== undefined) toBackground(background)
  const head = inFacadeWords(workflowId, () =>
    headOf(workflowId, {
      ...(description === undefined ? {} : { description }),
      ...(inputSchema === undefined ? {} : { input: inputSchema }),
      ...(outputSchema === undefined ? {} : { success: outputSchema }),
      ...(retries === undefined ? {} : { retries }),
      ...(retryDelayMs === undefined ? {} : { retryDelay: retryDelayMs })
    })
  )
  return new WorkflowDraft(new Draft(head, []), background)
}

/** What a step gives. @since 0.1.0 @category models */
export type StepOutput<S> = OutputOf<S>
