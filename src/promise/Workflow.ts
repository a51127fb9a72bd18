/**
 * A workflow for plain TypeScript.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import { InvalidConfiguration } from "../protocol/Errors.js"
import { lazily } from "../protocol/lazily.js"
import type * as Tool from "../tool/Tool.js"
import { asTool } from "../workflow/asTool.js"
import { WorkflowControl } from "../workflow/control.js"
import type { Workflow as CoreWorkflow } from "../workflow/Draft.js"
import { type Body, type Step, TypeId } from "../workflow/definition.js"
import type { Begun } from "../workflow/executing.js"
import type { ListOptions, UnfinishedRunPage } from "../workflow/listing.js"
import type { RestartOptions, ResumeOptions, RunOptions } from "../workflow/RunOptions.js"
import type { WorkflowResult } from "../workflow/result.js"
import { type ToolBackground, toBackground } from "./background.js"
import { ownRuntime } from "./logging.js"
import * as Runs from "./runs.js"
import { WorkflowOutput } from "./WorkflowOutput.js"

/** Loaded when the first workflow runs. */
const engine = lazily(() => import("../workflow/engine.js"))

type Engine = Effect.Effect.Success<typeof engine>

type Nested = Extract<Body<never>, { readonly _tag: "Nested" }>

/** Of workflows that belong to no container. */
const ownHost: Runs.Host = { runFork: Runtime.runFork(ownRuntime) }

/** Any workflow. @since 0.1.0 @category models */
export type AnyWorkflow = Workflow<string, never, unknown>

/**
 * A workflow, made by `createWorkflow`. It works on its own; in a container (`Eddy`) it shares the container's runtime and
 * storage, and its runs end with it. It is a step of other workflows, too.
 *
 * @since 0.1.0
 * @category models
 */
export class Workflow<out Id extends string, in In, out Out> implements CoreWorkflow<Id, In, Out, unknown> {
  readonly [TypeId]: Step<Id, In, Out, unknown>[TypeId]
  readonly id: Id
  readonly description: string | undefined
  readonly retries: undefined = undefined
  readonly retryDelayMs: undefined = undefined
  readonly timeout: undefined = undefined
  readonly body: Nested
  readonly inputSource: CoreWorkflow<Id, In, Out>["inputSource"]
  readonly #background: ToolBackground | undefined
  #runs: Runs.Runs = Runs.make(ownHost)

  /** Made by `createWorkflow`. */
  constructor(core: CoreWorkflow<Id, In, Out, unknown>, background: ToolBackground | undefined) {
    this[TypeId] = core[TypeId]
    this.id = core.id
    this.description = core.description
    this.body = core.body
    this.inputSource = core.inputSource
    this.#background = background
  }

  /** Runs in somebody else's runtime from now on. */
  static readonly adopt = (workflow: AnyWorkflow, runs: Runs.Runs): void => {
    workflow.#runs = runs
  }

  /** A workflow as the tool of an agent. */
  static readonly toTool = (workflow: AnyWorkflow, name: string): Tool.Tool => {
    checkWorkflow(name, workflow)
    const background = workflow.#background
    const tool = asTool(workflow, {
      name: `workflow-${name}`,
      ...(background === undefined ? {} : { background: toBackground(background) })
    })
    return { ...tool, aliases: [...tool.aliases, name] }
  }

  /**
   * Starts a run and gives its output at once. Rejects with `InvalidStepInput` or `InvalidConfiguration` when input or options
   * are wrong; what happens to the run later is in its output.
   */
  stream(options: RunOptions<In>): Promise<WorkflowOutput<Out>> {
    return this.#start(({ start }, control) => start(this.body.graph, options, control))
  }

  /** Runs to the end, or until it waits for somebody. Resolves also when the run failed: `status` says so. */
  async start(options: RunOptions<In>): Promise<WorkflowResult<Out>> {
    return (await this.stream(options)).getFullOutput()
  }

  /**
   * Goes on with a run that was suspended: with one step of it, which gets `resumeData`. Rejects, and changes nothing, with
   * `WorkflowRunNotFound`, `StepNotSuspended`, `InvalidStepResumeData`, or `WorkflowRunBusy` when somebody goes on with it.
   */
  resumeStream(options: ResumeOptions): Promise<WorkflowOutput<Out>> {
    return this.#start(({ resume }, control) => resume(this.body.graph, options, control))
  }

  /** `resumeStream`, to the end, or until it waits again. */
  async resume(options: ResumeOptions): Promise<WorkflowResult<Out>> {
    return (await this.resumeStream(options)).getFullOutput()
  }

  /**
   * Goes on with a run that another process has left: what its steps have done is not done again. Rejects with
   * `WorkflowRunNotFound`, or with `WorkflowRunBusy` when somebody goes on with it already: a process that has died has it for
   * 15 seconds at most.
   */
  restartStream(options: RestartOptions): Promise<WorkflowOutput<Out>> {
    return this.#start(({ restart }, control) => restart(this.body.graph, options, control))
  }

  /** `restartStream`, to the end, or until it waits. */
  async restart(options: RestartOptions): Promise<WorkflowResult<Out>> {
    return (await this.restartStream(options)).getFullOutput()
  }

  /** The runs that have not ended: those that go on, that wait to be resumed, and that wait to be restarted. */
  listRuns(options: ListOptions = {}): Promise<UnfinishedRunPage> {
    return this.#runs.ask(Effect.flatMap(engine, ({ list }) => list(this, options)))
  }

  /** Deletes a run that waits. Whether there was one. Rejects with `WorkflowRunBusy` when it goes on: cancel it there. */
  deleteRun(runId: string): Promise<boolean> {
    return this.#runs.ask(Effect.flatMap(engine, ({ remove }) => remove(this, runId)))
  }

  async #start(
    begin: (engine: Engine, control: WorkflowControl) => Effect.Effect<Begun<never>, unknown>
  ): Promise<WorkflowOutput<Out>> {
    const control = new WorkflowControl()
    const recorded = Effect.flatMap(engine, loaded => loaded.record(begin(loaded, control), control))
    const recording = await this.#runs.start(recorded, control.shutDown)
    return new WorkflowOutput<Out>(this.id, recording, options => this.resumeStream(options))
  }
}

/** Throws `InvalidConfiguration`. */
export const checkWorkflow = (name: string, workflow: unknown): void => {
  if (workflow instanceof Workflow) return
  throw new InvalidConfiguration({
    field: `workflows.${name}`,
    message: `\`workflows.${name}\` is no workflow. Make it with createWorkflow({ id }).then(step).commit().`
  })
}
