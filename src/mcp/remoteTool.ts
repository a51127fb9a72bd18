/** A tool of a server as a tool of an agent. */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { JsonSchema } from "../model/ModelPort.js"
import { InvalidConfiguration, InvalidToolOutput, ToolFailed, ToolTimedOut } from "../protocol/Errors.js"
import { isRecord, type JsonValue, toJson } from "../protocol/safeJson.js"
import * as Tool from "../tool/Tool.js"
import type { ToolContext } from "../tool/ToolContext.js"
import * as ToolSchema from "../tool/ToolSchema.js"
import type { Connection } from "./connection.js"
import type { McpError } from "./McpError.js"
import { modelOutputOf } from "./modelOutput.js"
import type { Progress } from "./session.js"

/** What a server says of one of its tools. */
export interface Declaration {
  /** The server's own name for it. */
  readonly name: string
  readonly description: string | undefined
  readonly inputSchema: JsonSchema
  readonly outputSchema: JsonSchema | undefined
  /** Whether the server declares that a second call with the same arguments changes nothing more. */
  readonly isRepeatable: boolean
}

const isJsonSchema = (value: JsonValue): value is JsonSchema => isRecord(value)

const schemaOf = (value: unknown): JsonSchema | undefined => {
  const json = toJson(value)
  return isJsonSchema(json) ? json : undefined
}

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined

/** Read leniently: a tool that is declared wrongly does not take the others with it. `undefined` for what is no tool. */
export const declarationOf = (value: unknown): Declaration | undefined => {
  if (!isRecord(value)) return undefined
  const { annotations, description, inputSchema, name, outputSchema, title } = value
  const named = textOf(name)
  if (named === undefined) return undefined
  const hints = isRecord(annotations) ? annotations : {}
  return {
    name: named,
    description: textOf(description) ?? textOf(title) ?? textOf(hints["title"]),
    inputSchema: schemaOf(inputSchema) ?? {},
    outputSchema: schemaOf(outputSchema),
    isRepeatable: hints["readOnlyHint"] === true || hints["idempotentHint"] === true
  }
}

/** Whether the tool can only be called as a task, which is not done here. */
export const needsTask = (value: unknown): boolean =>
  isRecord(value) && isRecord(value["execution"]) && value["execution"]["taskSupport"] === "required"

const written = ({ message, progress, total }: Progress) => ({
  type: "progress",
  progress,
  ...(total === undefined ? {} : { total }),
  ...(message === undefined ? {} : { message })
})

/** Asks, and meanwhile writes what the server says of its progress, in order; ends when both are done. */
const asking = (
  ask: (
    onProgress: (progress: Progress) => void
  ) => Effect.Effect<{ readonly [key: string]: unknown }, McpError>,
  write: ToolContext["write"]
) =>
  Effect.gen(function* () {
    const told = yield* Queue.unbounded<Progress | "end">()
    const writeAll: Effect.Effect<void> = Effect.flatMap(Queue.take(told), progress =>
      progress === "end" ? Effect.void : Effect.zipRight(write(written(progress)), writeAll)
    )
    const answer = ask(progress => void told.unsafeOffer(progress)).pipe(
      Effect.exit,
      Effect.zipLeft(Queue.offer(told, "end"))
    )
    const [exit] = yield* Effect.all([answer, writeAll], { concurrency: "unbounded" })
    return yield* exit
  })

const failureOf = (toolName: string, timeout: number) => (error: McpError) =>
  error.reason === "timeout"
    ? new ToolTimedOut({ toolName, milliseconds: timeout, message: error.message })
    : new ToolFailed({ toolName, message: error.message, cause: error })

/** Checks `structuredContent` where there is some, and a schema that can be used. */
const outputCheck = ({ outputSchema }: Declaration) => {
  const schema =
    outputSchema === undefined ? undefined : usable(() => ToolSchema.output(outputSchema, "outputSchema"))
  return (
    result: { readonly [key: string]: unknown },
    toolName: string
  ): Effect.Effect<unknown, InvalidToolOutput> => {
    const { structuredContent } = result
    if (schema === undefined || structuredContent === undefined || result["isError"] === true)
      return Effect.void
    return Effect.mapError(
      schema.decode(structuredContent),
      ({ message }) =>
        new InvalidToolOutput({ toolName, message: `Tool "${toolName}" returned a wrong output: ${message}` })
    )
  }
}

const usable = <A>(make: () => A): A | undefined => {
  try {
    return make()
  } catch (cause) {
    if (cause instanceof InvalidConfiguration) return undefined
    throw cause
  }
}

const anyArguments: JsonSchema = { type: "object" }

/**
 * The tool under a name that the model calls it with. A schema of arguments that cannot be used here is told to the model
 * all the same, and the arguments are left to the server to check. Throws `InvalidConfiguration` for a name that providers
 * refuse.
 */
export const makeTool = (connection: Connection, declaration: Declaration, name: string): Tool.Tool => {
  const { description, inputSchema } = declaration
  const check = outputCheck(declaration)
  const execute = (args: unknown, { toolName, write }: ToolContext) =>
    asking(
      onProgress =>
        connection.request(
          "tools/call",
          { name: declaration.name, arguments: args },
          { onProgress, isRepeatable: declaration.isRepeatable }
        ),
      write
    ).pipe(
      Effect.mapError(failureOf(toolName, connection.settings.timeout)),
      Effect.map(result => ({ content: [], ...result })),
      Effect.tap(result => check(result, toolName))
    )
  const made = (input: JsonSchema): Tool.Tool =>
    Tool.make(name, {
      ...(description === undefined ? {} : { description }),
      input,
      execute,
      toModelOutput: modelOutputOf
    })
  const tool = usable(() => made(inputSchema))
  if (tool !== undefined) return tool
  const lenient = made(anyArguments)
  return {
    ...lenient,
    definition: { ...lenient.definition, inputSchema: { ...inputSchema, type: "object" } }
  }
}
