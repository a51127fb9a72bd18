/** What the tests of traces share: OpenTelemetry in memory, and traces as trees that can be read. */
import { NodeSdk } from "@effect/opentelemetry"
import { SpanStatusCode } from "@opentelemetry/api"
import { InMemoryMetricExporter, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics"
import type { ReadableSpan, SpanProcessor } from "@opentelemetry/sdk-trace-base"

/** The name of a span, then those below it, in the order in which they began. */
export type Tree = readonly [string, ...ReadonlyArray<unknown>]

/** What OpenTelemetry was told. */
export class Traces implements SpanProcessor {
  private readonly began: Array<ReadableSpan> = []
  private readonly open = new Set<ReadableSpan>()
  private readonly reader = new PeriodicExportingMetricReader({
    exporter: new InMemoryMetricExporter(1),
    exportIntervalMillis: 1_000_000
  })

  /** What is handed to whoever makes spans. */
  readonly layer = NodeSdk.layer(() => ({
    resource: { serviceName: "eddy-tests" },
    spanProcessor: this,
    metricReader: this.reader
  }))

  onStart(span: unknown): void {
    this.began.push(span as ReadableSpan)
    this.open.add(span as ReadableSpan)
  }

  onEnd(span: ReadableSpan): void {
    // Handed over as it was when it began.
    for (const one of this.open) {
      if (one.spanContext().spanId === span.spanContext().spanId) this.open.delete(one)
    }
  }

  forceFlush = (): Promise<void> => Promise.resolve()
  shutdown = (): Promise<void> => Promise.resolve()

  /** Names of spans that have not ended. */
  get unfinished(): ReadonlyArray<string> {
    return Array.from(this.open, ({ name }) => name)
  }

  get spans(): ReadonlyArray<ReadableSpan> {
    return this.began
  }

  /** The spans of a name. */
  named(name: string): ReadonlyArray<ReadableSpan> {
    return this.began.filter(span => span.name === name)
  }

  /** The one span of a name. */
  only(name: string): ReadableSpan {
    const [span, ...others] = this.named(name)
    if (span === undefined || others.length > 0) {
      throw new Error(
        `${others.length + (span ? 1 : 0)} spans "${name}" of ${this.began.map(one => one.name)}`
      )
    }
    return span
  }

  /** The traces. */
  get trees(): ReadonlyArray<Tree> {
    const known = new Set(this.began.map(span => span.spanContext().spanId))
    const treeOf = (span: ReadableSpan): Tree => [
      span.name,
      ...this.began
        .filter(({ parentSpanContext }) => parentSpanContext?.spanId === span.spanContext().spanId)
        .map(treeOf)
    ]
    return this.began.filter(span => !known.has(span.parentSpanContext?.spanId ?? "")).map(treeOf)
  }

  /** The data points of a metric with this model. */
  async points(name: string, model: string) {
    const { resourceMetrics } = await this.reader.collect()
    return resourceMetrics.scopeMetrics
      .flatMap(({ metrics }) => metrics)
      .filter(({ descriptor }) => descriptor.name === name)
      .flatMap(({ dataPoints, descriptor }) =>
        dataPoints.map(({ attributes, value }) => ({ attributes, value, unit: descriptor.unit }))
      )
      .filter(({ attributes }) => attributes["gen_ai.request.model"] === model)
  }
}

export const { ERROR, OK } = SpanStatusCode

/** How a span ended: whether it failed, with what, and whether it was stopped. */
export const endOf = ({ attributes, status }: ReadableSpan) => ({
  code: status.code,
  ...(attributes["error.type"] === undefined ? {} : { error: attributes["error.type"] }),
  ...(attributes["status.interrupted"] === true ? { isStopped: true } : {})
})
