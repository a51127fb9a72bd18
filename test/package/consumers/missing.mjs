/** An application that uses what it has not installed the packages for: the failure says what to install. */
import { McpClient } from "eddy/mcp"
import { Agent } from "eddy/promise"

const model = { id: "openai/gpt-5-mini", apiKey: "none" }
const agent = new Agent({ id: "guide", model, defaultOptions: { onError: () => undefined } })

const tell = ({ message }) => console.log(message)
await agent.generate("An umbrella in Oslo?").catch(tell)
await McpClient.connect({ command: "no-server" }).catch(tell)
