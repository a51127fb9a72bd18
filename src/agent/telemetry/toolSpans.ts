/** Calls of tools, as traces have them: `execute_tool {tool}`. */
import type * as Tracer from "effect/Tracer"
import type { ToolDefinition } from "../../model/ModelPort.js"
import { RunAborted } from "../../protocol/Errors.js"
import { isErrorValue } from "../../tool/Tool.js"
import { contentAttributes } from "./chat.js"
import { contentOf } from "./contents.js"
import { ErrorResult } from "./failures.js"
import { attributes } from "./names.js"
import { type Attributes, done, type Ending, type Spans, stopped, tell } from "./spans.js"

/** A call that is executed. */
export interface Execution {
  readonly tool: ToolDefinition
  readonly toolCallId: string
  readonly args: unknown
}

/** Begins the span of a call. */
export const beginTool = (
  spans: Spans,
  parent: Tracer.AnySpan | undefined,
  { args, tool, toolCallId }: Execution,
  more: Attributes = {}
): Tracer.Span => {
  const { captureContent, contentLimit } = spans.settings
  return spans.begin({
    name: `execute_tool ${tool.name}`,
    kind: "internal",
    parent,
    attributes: {
      [attributes.operation]: "execute_tool",
      [attributes.toolName]: tool.name,
      [attributes.toolType]: "function",
      [attributes.toolDescription]: tool.description,
      [attributes.toolCallId]: toolCallId,
      ...more,
      ...(captureContent
        ? contentAttributes({ [attributes.toolArguments]: contentOf(args, contentLimit) })
        : {})
    }
  })
}

/** How a call that failed with this has ended. */
export const failedWith = (error: unknown): Ending =>
  error instanceof RunAborted ? stopped : { _tag: "Failed", error }

/** Ends it with what the call gave. */
export const endTool = (spans: Spans, span: Tracer.Span, result: unknown): void => {
  const { captureContent, contentLimit } = spans.settings
  if (captureContent && span.status._tag !== "Ended") {
    tell(span, contentAttributes({ [attributes.toolResult]: contentOf(result, contentLimit) }))
  }
  spans.end(span, isErrorValue(result) ? { _tag: "Failed", error: new ErrorResult() } : done)
}
