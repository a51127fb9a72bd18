/** AG-UI: what `HttpAgent` of `@ag-ui/client` posts. Options of the run stand in its `forwardedProps`. */
import * as Effect from "effect/Effect"
import { isRecord, messageOf } from "../protocol/safeJson.js"
import { type Asked, agentOf, type Handler } from "./asked.js"
import { toolsOf } from "./clientTools.js"
import { mapped } from "./dialect.js"
import * as AgUi from "./mapping/AgUi.js"
import * as AgUiRequest from "./mapping/AgUiRequest.js"
import { answer, goOn, instructionsOf, wellFormed } from "./protocols.js"
import { runStream } from "./responses.js"
import { readOptions } from "./runRequests.js"

/** What of `forwardedProps` is ours. Applications put into it whatever they like. */
const ours = ["memory", "requestContext", "untilIdle", "maxIdleMs"]

const optionsOf = (asked: Asked) => {
  const { forwardedProps } = asked.body
  const said = isRecord(forwardedProps) ? Object.entries(forwardedProps) : []
  const known = new Set<string>([...ours, ...asked.settings.clientOptions])
  // The protocol has a field of its own for them.
  known.delete("tools")
  return readOptions(
    { ...asked, body: Object.fromEntries(said.filter(([key]) => known.has(key))) },
    [],
    false
  )
}

export const post: Handler = asked =>
  Effect.gen(function* () {
    const agent = yield* agentOf(asked)
    const request = yield* wellFormed(AgUiRequest.read(asked.body))
    const { answers, messages, newMessages, openToolCallIds, runId, threadId, tools } = request
    const options = {
      ...(yield* optionsOf(asked)),
      ...(yield* instructionsOf(asked, request.instructions)),
      ...(yield* toolsOf(asked, tools, "tools"))
    }
    yield* asked.openStreams.enter(asked.principal)
    const reading =
      answers.length > 0
        ? yield* goOn(asked, agent, options, answers)
        : yield* answer(
            asked,
            agent,
            options,
            options.memory === undefined ? messages : newMessages,
            messages
          )
    const dialect = mapped({
      // Anything behind the last event is fatal there.
      isDoneTold: false,
      mapper: () => AgUi.make({ threadId, runId, openToolCallIds, errorText: messageOf })
    })
    return yield* runStream(reading, dialect, asked.settings)
  })
