/** What the bodies of both protocols of OpenAI share. */
import * as Schema from "effect/Schema"
import type { ModelSettings, ToolChoice } from "../../model/ModelPort.js"
import { loose } from "./requestShape.js"

export const ToolChoiceBody = Schema.Union(
  Schema.Literal("auto", "none", "required"),
  Schema.Struct({ type: Schema.Literal("function"), function: Schema.Struct({ name: Schema.String }) }),
  Schema.Struct({ type: Schema.Literal("function"), name: Schema.String })
)

export const sampling = { temperature: loose(Schema.Number), top_p: loose(Schema.Number) }

/** Of a data URL, what it says itself. */
export const mediaTypeOf = (url: string, otherwise: string): string =>
  /^data:([^;,]+)/.exec(url)?.[1] ?? otherwise

/** Settings that the request has, without those that it leaves out. */
export const settingsOf = (
  settings: { readonly [Key in keyof ModelSettings]?: ModelSettings[Key] | undefined }
) => Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)) as ModelSettings

export const toolChoiceOf = (choice: typeof ToolChoiceBody.Type | undefined): ToolChoice | undefined => {
  if (choice === undefined || typeof choice === "string") return choice
  return { type: "tool", toolName: "function" in choice ? choice.function.name : choice.name }
}
