/** The processors of one run. Plain data: the loop carries it. */
import type { JsonValue } from "../../protocol/safeJson.js"
import type { Settings } from "../settings.js"
import type { Bound } from "./context.js"
import type { Hooks, Processor } from "./definition.js"

type With<Name extends keyof Hooks> = Bound & {
  readonly processor: Processor & Required<Pick<Hooks, Name>>
}

const has =
  <Name extends keyof Hooks>(name: Name) =>
  (bound: Bound): bound is With<Name> =>
    bound.processor[name] !== undefined

export class RunProcessors {
  readonly input: ReadonlyArray<With<"processInput">>
  readonly inputStep: ReadonlyArray<With<"processInputStep">>
  readonly stream: ReadonlyArray<With<"processOutputStream">>
  readonly step: ReadonlyArray<With<"processOutputStep">>
  readonly result: ReadonlyArray<With<"processOutputResult">>
  /** What the last result was given for the user interface. */
  metadata: { readonly [key: string]: JsonValue } | undefined
  private rejected = { stepNumber: 0, count: 0 }

  constructor(
    input: ReadonlyArray<Bound>,
    output: ReadonlyArray<Bound>,
    private readonly maxRetries: number,
    /** Whether the run was handed something that nobody has processed. */
    hasNewInput: boolean
  ) {
    this.input = hasNewInput ? input.filter(has("processInput")) : []
    this.inputStep = input.filter(has("processInputStep"))
    this.stream = output.filter(has("processOutputStream"))
    this.step = output.filter(has("processOutputStep"))
    this.result = output.filter(has("processOutputResult"))
  }

  /** Whether an answer is judged as a whole before it is remembered. */
  get areJudging(): boolean {
    return this.step.length > 0 || this.result.length > 0
  }

  /** How often this step was rejected. */
  retriesOf(stepNumber: number): number {
    return this.rejected.stepNumber === stepNumber ? this.rejected.count : 0
  }

  /** Whether a step may be tried again. */
  mayRetry(stepNumber: number): boolean {
    return this.retriesOf(stepNumber) < this.maxRetries
  }

  /** A step is tried again. */
  retries(stepNumber: number): void {
    this.rejected = { stepNumber, count: this.retriesOf(stepNumber) + 1 }
  }

  /** The metadata of the answer that ended the run. */
  get uiMetadata(): { readonly metadata: { readonly [key: string]: JsonValue } } | undefined {
    return this.metadata === undefined ? undefined : { metadata: this.metadata }
  }
}

/** `undefined` for a run without processors: it costs nothing then. */
export const processorsOf = (settings: Settings, hasNewInput: boolean): RunProcessors | undefined => {
  const { inputProcessors = [], maxProcessorRetries, outputProcessors = [] } = settings
  if (inputProcessors.length === 0 && outputProcessors.length === 0) return undefined
  const states = new Map<Processor, Bound["state"]>()
  const bound = (processor: Processor): Bound => {
    const state = states.get(processor) ?? {}
    states.set(processor, state)
    return { processor, state }
  }
  return new RunProcessors(
    inputProcessors.map(bound),
    outputProcessors.map(bound),
    maxProcessorRetries,
    hasNewInput
  )
}
