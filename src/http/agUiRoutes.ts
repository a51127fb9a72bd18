/** AG-UI: what `HttpAgent` of `@ag-ui/client` posts. Options of the run stand in its `forwardedProps`. */
import * as Effect from "effect/Effect"
import { isRecord, messageOf } from "../protocol/safeJson.js"
import { type Asked, agentOf, type Handler } from "./asked.js"
import { toolsOf } from "./clientTools.js"
import { mapped } from "./dialect.js"
import * as AgUi from "./mapping/AgUi.js"
import * as AgUiRequest from "./mapping/AgUiRequest.js"
import { answer, goOn, instructionsOf, wellFormed } from "./protocols.js"
import * as Read from "./reading.js"
import { invalidBody } from "./refusal.js"
import { runStream } from "./responses.js"
import { readOptions } from "./runRequests.js"

/** What of `forwardedProps` is ours. Applications put into it whatever they like. */
const ours = ["memory", "requestContext", "untilIdle", "maxIdleMs"]

const optionsOf = Effect.fnUntraced(function* (asked: Asked, state: unknown) {
  const { clientContext, clientOptions } = asked.settings
  const { forwardedProps } = asked.body
  const said = isRecord(forwardedProps) ? Object.entries(forwardedProps) : []
  const known = new Set<string>([...ours, ...clientOptions])
  // The protocol has a field of its own for them.
  known.delete("tools")
  const body: Record<string, unknown> = Object.fromEntries(said.filter(([key]) => known.has(key)))
  if (state !== undefined) {
    if (!clientContext.has("state")) {
      return yield* invalidBody("state", "may not be set by clients: `clientContext` has no key `state`")
    }
    const { requestContext = {} } = body
    body["requestContext"] = isRecord(requestContext) ? { ...requestContext, state } : requestContext
  }
  return yield* readOptions({ ...asked, body }, [], false)
})

/** What the client says of its surroundings, as a message to the model that no thread keeps. */
const contextOf = ({ settings }: Asked, context: AgUiRequest.AgUiRequest["context"]) => {
  if (context.length === 0) return Effect.succeed([])
  if (!settings.clientOptions.has("instructions")) {
    return invalidBody("context", "may not be set by clients: `clientOptions` has no `instructions`")
  }
  const content = context.map(({ description, value }) => `${description}: ${value}`).join("\n\n")
  return Effect.succeed([{ role: "system" as const, content }])
}

export const post: Handler = asked =>
  Effect.gen(function* () {
    const agent = yield* agentOf(asked)
    const request = yield* wellFormed(AgUiRequest.read(asked.body))
    const { answers, messages, newMessages, openToolCallIds, runId, threadId, tools } = request
    yield* Read.id({ threadId }, "threadId")
    yield* Read.id({ runId }, "runId")
    const context = yield* contextOf(asked, request.context)
    const options = {
      ...(yield* optionsOf(asked, request.state)),
      ...(yield* instructionsOf(asked, request.instructions)),
      ...(yield* toolsOf(asked, tools, "tools"))
    }
    yield* asked.openStreams.enter(asked.principal)
    const said = options.memory === undefined ? messages : newMessages
    const reading =
      answers.length > 0
        ? yield* goOn(asked, agent, options, answers)
        : yield* answer(asked, agent, options, said.length === 0 ? said : [...context, ...said], messages)
    const dialect = mapped({
      // Anything behind the last event is fatal there.
      isDoneTold: false,
      mapper: () => AgUi.make({ threadId, runId, openToolCallIds, errorText: messageOf })
    })
    return yield* runStream(reading, dialect, asked.settings)
  })
