/** The tools of a server: every page of its list, each tool under the name that the model calls it with. */
import * as Effect from "effect/Effect"
import { logWarning } from "../protocol/logging.js"
import type * as Tool from "../tool/Tool.js"
import type { Connection } from "./connection.js"
import { sentence } from "./failures.js"
import { McpError } from "./McpError.js"
import { type Declaration, declarationOf, makeTool, needsTask } from "./remoteTool.js"
import { toolNames } from "./toolNames.js"

/** A tool of a server, to be made under any name. */
export interface RemoteTool {
  readonly name: string
  readonly description: string | undefined
  readonly named: (name: string) => Tool.Tool
}

const pages = Effect.fnUntraced(function* ({ request, settings }: Connection) {
  const found: Array<unknown> = []
  const cursors = new Set<unknown>()
  let cursor: unknown
  do {
    const page = yield* request("tools/list", cursor === undefined ? {} : { cursor }, { isRepeatable: true })
    if (Array.isArray(page["tools"])) found.push(...page["tools"])
    cursor = page["nextCursor"]
    if (cursors.has(cursor)) {
      const message = sentence(`${settings.who} lists its tools in a circle: it gave one cursor twice.`)
      return yield* new McpError({ reason: "request", message })
    }
    cursors.add(cursor)
    // Empty is said by servers that mean the end.
  } while (typeof cursor === "string" && cursor !== "")
  return found
})

const declarations = Effect.fnUntraced(function* (connection: Connection) {
  const byName = new Map<string, Declaration>()
  const leaveOut = (what: string) =>
    logWarning(`Left out of the tools of ${connection.settings.who}: ${what}.`)
  for (const tool of yield* pages(connection)) {
    const declaration = declarationOf(tool)
    if (declaration === undefined) yield* leaveOut("one without a name")
    else if (byName.has(declaration.name)) yield* leaveOut(`a second "${declaration.name}"`)
    else if (needsTask(tool)) yield* leaveOut(`"${declaration.name}", which can only be called as a task`)
    else byName.set(declaration.name, declaration)
  }
  return [...byName.values()]
})

/** Reads the list. A server without tools has an empty one. */
export const readTools = Effect.fnUntraced(function* (connection: Connection) {
  if (!connection.hasTools) return []
  const declared = yield* declarations(connection)
  const names = toolNames(
    declared.map(({ name }) => name),
    connection.settings.prefix
  )
  return declared.map((declaration, index): RemoteTool => {
    const name = names[index] ?? declaration.name
    return {
      name,
      description: declaration.description,
      named: other => makeTool(connection, declaration, other)
    }
  })
})
