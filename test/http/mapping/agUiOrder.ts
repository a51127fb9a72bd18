/** The order of AG-UI events, as its own client checks it. */
import { HttpAgent } from "@ag-ui/client"
import { vi } from "vitest"
import { dataLine, sseResponse } from "./kit.js"

/** What its client warns of and fails with, but for a run that says itself that it failed; empty when all is in order. */
export const faultsOf = async (events: ReadonlyArray<object>): Promise<ReadonlyArray<string>> => {
  const faults: Array<string> = []
  const warn = vi.spyOn(console, "warn").mockImplementation((...said) => void faults.push(said.join(" ")))
  const error = vi.spyOn(console, "error").mockImplementation(() => undefined)
  let isTold = false
  const agent = new HttpAgent({
    url: "http://kit.test/agui",
    fetch: () => Promise.resolve(sseResponse(events.map(dataLine)))
  })
  try {
    await agent.runAgent(
      {},
      {
        onRunErrorEvent: () => {
          isTold = true
        }
      }
    )
  } catch (thrown) {
    if (!isTold) faults.push(String(thrown))
  } finally {
    warn.mockRestore()
    error.mockRestore()
  }
  return faults
}
