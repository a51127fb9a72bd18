/**
 * The output of a run of a workflow, as a stream and promises.
 *
 * @since 0.1.0
 */
import type { Chunk } from "../protocol/Chunk.js"
import type { Usage } from "../protocol/Usage.js"
import type { ResumeOptions } from "../workflow/RunOptions.js"
import type { WorkflowRecording } from "../workflow/recording.js"
import type { WorkflowResult } from "../workflow/result.js"
import type { StepState, WorkflowStatus } from "../workflow/state.js"
import { suspendedRun } from "../workflow/waiting.js"
import { RunStream } from "./RunStream.js"

const everything = (chunk: Chunk): Chunk => chunk

const ignore = (): void => undefined

const toError = (cause: unknown): Error =>
  cause instanceof Error ? cause : new Error(String(cause), { cause })

/** The error of a run that gives nothing. */
const failureOf = (full: WorkflowResult<unknown>): Error | undefined => {
  if (full.status === "suspended") return suspendedRun(full)
  return full.status === "success" ? undefined : toError(full.error)
}

/**
 * What `workflow.stream()` gives: the run is going, and anything of it may be asked for in any order, at any time, by any
 * number of readers, of which each begins at the first chunk. A promise that nobody reads never becomes an unhandled
 * rejection. A run waits for its readers: it is at most 64 chunks ahead of the furthest. Asking for a promise lets it run to
 * its end.
 *
 * @since 0.1.0
 * @category models
 */
export class WorkflowOutput<out A> {
  readonly #recording: WorkflowRecording
  readonly #resume: (options: ResumeOptions) => Promise<WorkflowOutput<A>>
  #full: Promise<WorkflowResult<A>> | undefined
  #result: Promise<A> | undefined

  /** Made by `workflow.stream()`. */
  constructor(
    readonly workflowId: string,
    recording: WorkflowRecording,
    resume: (options: ResumeOptions) => Promise<WorkflowOutput<A>>
  ) {
    this.#recording = recording
    this.#resume = resume
  }

  /** The id of this run; every chunk has it. It is the same when the run is resumed. */
  get runId(): string {
    return this.#recording.recorded.runId
  }

  /** Every chunk. A new stream each time it is asked for; closes without an error also when the run failed. */
  get fullStream(): RunStream<Chunk> {
    return new RunStream(this.#recording.recorded.log, everything)
  }

  /**
   * What the workflow gives. Rejects with the run's error when it failed, with `RunAborted` when it was aborted, and with
   * `RunSuspended` when it waits for somebody.
   */
  get result(): Promise<A> {
    this.#result ??= this.getFullOutput().then(full => {
      if (full.status === "success") return full.result
      throw failureOf(full)
    })
    this.#result.catch(ignore)
    return this.#result
  }

  /** Tokens of all steps, also those of before the run was resumed. Never rejects. */
  get usage(): Promise<Usage> {
    return this.getFullOutput().then(({ usage }) => usage)
  }

  /** Where the run stands now. */
  get status(): WorkflowStatus {
    return this.#recording.status()
  }

  /** Where its steps stand now, by id. */
  get steps(): { readonly [stepId: string]: StepState } {
    return this.#recording.steps()
  }

  /** Everything that the run came to. Resolves also when it failed: `status` says so. */
  readonly getFullOutput = (): Promise<WorkflowResult<A>> => {
    const { recorded, result } = this.#recording
    this.#full ??= new Promise(resolve => {
      recorded.log.wantAll()
      // What a workflow gives is what its type says: it was checked by its output schema.
      recorded.onSettled(() => resolve(result() as WorkflowResult<A>))
    })
    return this.#full
  }

  /** Lets the run go to its end. Rejects with its error when it failed, unless `onError` is there to get it. */
  readonly consumeStream = ({
    onError
  }: {
    readonly onError?: (error: Error) => unknown
  } = {}): Promise<void> => {
    const consumed = this.getFullOutput().then(full => {
      if (full.status === "success" || full.status === "suspended") return
      const error = toError(full.error)
      if (onError === undefined) throw error
      onError(error)
    })
    consumed.catch(ignore)
    return consumed
  }

  /** Goes on with this run, which was suspended: see `workflow.resumeStream`. */
  readonly resume = (options: Omit<ResumeOptions, "runId"> = {}): Promise<WorkflowOutput<A>> =>
    this.#resume({ ...options, runId: this.runId })

  /** Stops the run: its steps within 50 ms. Nothing of it stays in the storage. Resolves when it is over. */
  readonly cancel = async (reason?: unknown): Promise<void> => {
    this.#recording.abort(reason)
    await this.getFullOutput()
  }

  /** `await using` stops the run at the end of the block, when it is still going. */
  readonly [Symbol.asyncDispose] = (): Promise<void> => this.cancel("The output was disposed of.")
}
