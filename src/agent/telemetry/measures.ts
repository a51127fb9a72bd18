/** Measures model calls, with Effect's metrics: a few numbers for each call, kept whether anybody reads them or not. */
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"
import * as MetricLabel from "effect/MetricLabel"
import type { LanguageModel } from "../../model/ModelPort.js"
import type { Usage } from "../../protocol/tokens.js"
import { attributes, metrics, providerName, secondBounds, tokenBounds } from "./names.js"

const duration = Metric.histogram(
  metrics.duration,
  MetricBoundaries.fromIterable(secondBounds),
  "GenAI operation duration."
)

const timeToFirstChunk = Metric.histogram(
  metrics.timeToFirstChunk,
  MetricBoundaries.fromIterable(secondBounds),
  "Time from the request to the first chunk of the response."
)

const tokens = Metric.histogram(
  metrics.tokens,
  MetricBoundaries.fromIterable(tokenBounds),
  "Number of input and output tokens used."
)

type Labels = ReadonlyArray<MetricLabel.MetricLabel>

/** Labels of one kind of call. The same list each time: a metric finds its numbers by it. */
interface Kind {
  readonly seconds: Labels
  readonly input: Labels
  readonly output: Labels
}

/** `unit` is where the bridge to OpenTelemetry finds the unit. */
const kindOf = (model: LanguageModel, answeredBy: string | undefined, error: string | undefined): Kind => {
  const base = [
    MetricLabel.make(attributes.operation, "chat"),
    MetricLabel.make(attributes.provider, providerName(model.provider)),
    MetricLabel.make(attributes.requestModel, model.modelId),
    ...(answeredBy === undefined ? [] : [MetricLabel.make(attributes.responseModel, answeredBy)])
  ]
  const failed = error === undefined ? [] : [MetricLabel.make(attributes.errorType, error)]
  const counted = (type: string): Labels => [
    ...base,
    MetricLabel.make("unit", "{token}"),
    MetricLabel.make(attributes.tokenType, type)
  ]
  return {
    seconds: [...base, ...failed, MetricLabel.make("unit", "s")],
    input: counted("input"),
    output: counted("output")
  }
}

const kinds = new WeakMap<LanguageModel, Map<string, Kind>>()

const knownKind = (model: LanguageModel, answeredBy: string | undefined, error: string | undefined): Kind => {
  let ofModel = kinds.get(model)
  if (ofModel === undefined) {
    ofModel = new Map()
    kinds.set(model, ofModel)
  }
  const key = error === undefined ? (answeredBy ?? "") : `${answeredBy ?? ""} ${error}`
  let kind = ofModel.get(key)
  if (kind === undefined) {
    kind = kindOf(model, answeredBy, error)
    ofModel.set(key, kind)
  }
  return kind
}

/** What is known of a model call that is over. Times in seconds. */
export interface Measured {
  readonly model: LanguageModel
  /** The model that has answered, when the provider says so. */
  readonly answeredBy: string | undefined
  readonly errorType: string | undefined
  readonly seconds: number
  readonly secondsToFirstChunk: number | undefined
  readonly usage: Usage
}

/** Adds a call to the metrics. */
export const measure = (call: Measured): void => {
  const kind = knownKind(call.model, call.answeredBy, call.errorType)
  duration.unsafeUpdate(call.seconds, kind.seconds)
  if (call.secondsToFirstChunk !== undefined) {
    timeToFirstChunk.unsafeUpdate(
      call.secondsToFirstChunk,
      knownKind(call.model, call.answeredBy, undefined).seconds
    )
  }
  const { inputTokens, outputTokens } = call.usage
  if (inputTokens !== undefined) tokens.unsafeUpdate(inputTokens, kind.input)
  if (outputTokens !== undefined) tokens.unsafeUpdate(outputTokens, kind.output)
}
