/** An application that serves: with Node, and as a function. */
import { createHandler, serve } from "eddy/http"
import { Eddy } from "eddy/promise"

const eddy = new Eddy({ agents: {} })
await serve(eddy).then(
  ({ close }) => close(),
  ({ _tag, message }) => console.log(`${_tag}: ${message}`)
)
const { close, handler } = await createHandler(eddy)
const { status } = await handler(new Request("http://localhost/api/agents"))
console.log(status)
await close()
await eddy.shutdown()
