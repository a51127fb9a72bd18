/** What becomes of a run whose last reader has left, as a request asks for it. Pure. */
import * as Duration from "effect/Duration"
import { Refusal } from "./refusal.js"
import type { OnDisconnect, ServerSettings } from "./settings.js"

/** The header of a request that says so: `abort`, `continue`, or milliseconds. */
export const disconnectHeader = "x-on-disconnect"

/** A policy, or why it is refused. */
export const readPolicy = (
  asked: string | undefined,
  settings: Pick<ServerSettings, "onDisconnect" | "maxGrace">
): OnDisconnect | Refusal => {
  if (asked === undefined) return settings.onDisconnect
  if (asked === "abort" || asked === "continue") return asked
  const longest = Duration.toMillis(settings.maxGrace)
  if (/^\d{1,10}$/.test(asked) && Number(asked) <= longest) return { grace: Number(asked) }
  return new Refusal({
    status: 400,
    message: `${disconnectHeader} must be "abort", "continue", or milliseconds of at most ${longest}.`
  })
}
