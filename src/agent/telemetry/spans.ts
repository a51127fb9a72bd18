/** Makes spans by hand, with the tracer of whoever is asked: nothing at all where nobody listens. */
import * as Cause from "effect/Cause"
import * as Batch from "effect/Chunk"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Tracer from "effect/Tracer"
import { squash } from "../../protocol/foreignValue.js"
import { errorType, shown } from "./failures.js"
import { attributes } from "./names.js"
import { Telemetry } from "./Telemetry.js"
import type { Settings } from "./telemetryOptions.js"

/** What a span is told: nothing for what is not known. */
export type Attributes = Readonly<
  Record<string, string | number | boolean | ReadonlyArray<string> | undefined>
>

/** How something ended. To be stopped is no failure. */
export type Ending =
  | { readonly _tag: "Done" }
  | { readonly _tag: "Failed"; readonly error: unknown }
  | { readonly _tag: "Stopped" }

export const done: Ending = { _tag: "Done" }

export const stopped: Ending = { _tag: "Stopped" }

/** What a span begins with. */
export interface Beginning {
  readonly name: string
  readonly kind: Tracer.SpanKind
  /** `undefined`: it is the first of its trace. */
  readonly parent: Tracer.AnySpan | undefined
  /**
   * Without a parent: whether the tracer may find one in its own surroundings, as those of OpenTelemetry do. Only right on the
   * stack of whoever asked.
   */
  readonly mayHaveOuter?: boolean
  readonly attributes: Attributes
}

/** Effect's bridge to OpenTelemetry prints lists; below it a span takes them as they are. */
const below = (
  span: Tracer.Span
): { readonly setAttribute: (key: string, value: unknown) => unknown } | undefined => {
  if (!Predicate.hasProperty(span, "span") || !Predicate.hasProperty(span.span, "setAttribute"))
    return undefined
  const { span: inner } = span
  const { setAttribute } = span.span
  return typeof setAttribute === "function"
    ? { setAttribute: (key, value) => Reflect.apply(setAttribute, inner, [key, value]) }
    : undefined
}

/** Tells a span what is known. */
export const tell = (span: Tracer.Span, known: Attributes): void => {
  for (const [key, value] of Object.entries(known)) {
    if (value === undefined) continue
    span.attribute(key, value)
    if (typeof value === "object") below(span)?.setAttribute(key, [...value])
  }
}

/** Makes the spans of one listener. */
export class Spans {
  constructor(
    readonly tracer: Tracer.Tracer,
    readonly settings: Settings,
    private readonly clock: Clock.Clock,
    /** What `Effect.annotateSpans` has said of every span. */
    private readonly annotations: HashMap.HashMap<string, unknown>,
    /** What `Effect.linkSpans` has. */
    private readonly links: ReadonlyArray<Tracer.SpanLink>
  ) {}

  begin({ attributes: known, kind, mayHaveOuter = false, name, parent }: Beginning): Tracer.Span {
    const root = parent === undefined && !mayHaveOuter
    const span = this.tracer.span(
      name,
      Option.fromNullable(parent),
      Context.empty(),
      this.links,
      this.clock.unsafeCurrentTimeNanos(),
      kind,
      { captureStackTrace: false, root }
    )
    HashMap.forEach(this.annotations, (value, key) => span.attribute(key, value))
    tell(span, known)
    return span
  }

  /** Ends a span, once. */
  end(span: Tracer.Span, ending: Ending): void {
    if (span.status._tag === "Ended") return
    if (ending._tag === "Failed") tell(span, { [attributes.errorType]: errorType(ending.error) })
    span.end(this.clock.unsafeCurrentTimeNanos(), this.exitOf(ending))
  }

  private exitOf(ending: Ending): Exit.Exit<void, Error> {
    switch (ending._tag) {
      case "Done":
        return Exit.void
      case "Failed":
        return Exit.fail(shown(ending.error, this.settings.captureContent))
      case "Stopped":
        return Exit.interrupt(FiberId.none)
    }
  }
}

/** A span, and who makes those below it. */
export interface Traced {
  readonly spans: Spans
  readonly span: Tracer.Span
}

/** What Effect has when nobody provides another one: its spans go nowhere. */
const silentTracer = Context.get(DefaultServices.liveServices, Tracer.Tracer)

type AnyFiber = Pick<
  Fiber.RuntimeFiber<unknown, unknown>,
  "currentContext" | "currentDefaultServices" | "currentSpan" | "currentTracer" | "getFiberRef"
>

/** The span that those of a fiber belong below. */
export const parentOf = ({ currentSpan }: AnyFiber): Tracer.AnySpan | undefined => {
  let span = currentSpan
  while (span !== undefined && Context.get(span.context, Tracer.DisablePropagation)) {
    span = span._tag === "Span" ? Option.getOrUndefined(span.parent) : undefined
  }
  return span
}

/** `undefined`: nobody listens here. */
export const spansOf = (fiber: AnyFiber): Spans | undefined => {
  const { currentSpan, currentTracer } = fiber
  if (currentTracer === silentTracer && currentSpan === undefined) return undefined
  if (!fiber.getFiberRef(FiberRef.currentTracerEnabled)) return undefined
  return new Spans(
    currentTracer,
    Context.get(fiber.currentContext, Telemetry),
    Context.get(fiber.currentDefaultServices, Clock.Clock),
    fiber.getFiberRef(FiberRef.currentTracerSpanAnnotations),
    Batch.toReadonlyArray(fiber.getFiberRef(FiberRef.currentTracerSpanLinks))
  )
}

/** The effect with this span as the current one. */
export const within = <A, E, R>(effect: Effect.Effect<A, E, R>, span: Tracer.Span): Effect.Effect<A, E, R> =>
  Effect.mapInputContext(effect, (services: Context.Context<R>) =>
    Context.add(services, Tracer.ParentSpan, span)
  )

/** How something that failed with this cause has ended. */
export const endingOf = (cause: Cause.Cause<unknown>): Ending =>
  Cause.isInterruptedOnly(cause) ? stopped : { _tag: "Failed", error: squash(cause) }
