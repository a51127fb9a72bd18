/** The doors: what each subpath of the package exports, and that the package knows every door. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as effectFace from "eddy"
import * as effectAi from "eddy/effect-ai"
import * as http from "eddy/http"
import * as mcp from "eddy/mcp"
import * as promiseFace from "eddy/promise"
import * as testing from "eddy/testing"
import { describe, expect, it } from "vitest"

const root = new URL("../", import.meta.url)
const manifest: unknown = JSON.parse(readFileSync(new URL("package.json", root), "utf8"))

const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null
    ? Object.entries(value).find(([key]) => key === name)?.[1]
    : undefined

const names = (module: object): ReadonlyArray<string> => Object.keys(module).sort()

describe("the doors", () => {
  it("are exactly the files at the root of src", () => {
    const exported = Object.keys(Object(field(manifest, "exports"))).filter(name => name !== "./package.json")
    const files = readdirSync(fileURLToPath(new URL("src", root))).filter(name => name.endsWith(".ts"))
    const expected = files.map(name => (name === "index.ts" ? "." : `./${name.replace(/\.ts$/, "")}`))
    expect(exported.sort()).toEqual(expected.sort())
  })

  it("are built where the package says", () => {
    for (const [name, target] of Object.entries(Object(field(manifest, "exports")))) {
      if (name === "./package.json") continue
      const file = String(field(target, "default"))
      expect(file).toMatch(/^\.\/dist\/[a-z-]+\.js$/)
      expect(String(field(target, "types"))).toBe(file.replace(/\.js$/, ".d.ts"))
      expect(existsSync(new URL(file.replace("./dist/", "src/").replace(/\.js$/, ".ts"), root))).toBe(true)
    }
  })

  it("admit no other major of effect", () => {
    expect(field(field(manifest, "peerDependencies"), "effect")).toMatch(/^\^3\.\d+\.\d+$/)
  })

  it("export the Effect face", () => {
    expect(names(effectFace)).toEqual([
      "Agent",
      "BackgroundTasks",
      "Chunk",
      "Conversation",
      "Errors",
      "FinishReason",
      "Id",
      "Json",
      "LanguageModel",
      "LibSqlStore",
      "Message",
      "ModelOutput",
      "ModelPart",
      "Nesting",
      "Objective",
      "PostgresStore",
      "Processor",
      "RunFold",
      "RunStore",
      "Task",
      "TaskStore",
      "Telemetry",
      "ThreadStore",
      "Tool",
      "ToolSchema",
      "Usage",
      "Workflow",
      "WorkflowStep"
    ])
  })

  it("export the Promise face", () => {
    expect(names(promiseFace)).toEqual([
      "Agent",
      "AgentDepthExceeded",
      "BackgroundTaskManager",
      "Eddy",
      "InMemoryStore",
      "InvalidConfiguration",
      "InvalidMessage",
      "InvalidResumeData",
      "InvalidStepInput",
      "InvalidStepOutput",
      "InvalidStepResumeData",
      "InvalidSuspendData",
      "InvalidTaskState",
      "InvalidToolArguments",
      "InvalidToolOutput",
      "LibSQLStore",
      "Mastra",
      "ModelError",
      "ModelOutput",
      "ObjectiveNotFound",
      "PostgresStore",
      "ProcessorFailed",
      "RunAborted",
      "RunBlocked",
      "RunNotFound",
      "RunSuspended",
      "RunTimedOut",
      "StepFailed",
      "StepNotSuspended",
      "StepTimedOut",
      "StorageError",
      "StructuredOutputError",
      "TaskExecutorNotFound",
      "TaskNotFound",
      "TaskReaderTooSlow",
      "TaskRejected",
      "ThreadBusy",
      "ThreadNotFound",
      "ToolCallCutOff",
      "ToolCallNotPending",
      "ToolFailed",
      "ToolNotFound",
      "ToolTimedOut",
      "Workflow",
      "WorkflowDraft",
      "WorkflowOutput",
      "WorkflowRunBusy",
      "WorkflowRunLost",
      "WorkflowRunNotFound",
      "blockWhen",
      "createStep",
      "createTool",
      "createWorkflow",
      "redact",
      "tokenLimiter",
      "unnest"
    ])
    expect(promiseFace.Mastra).toBe(promiseFace.Eddy)
  })

  it("export what tests need", () => {
    expect(names(testing)).toEqual([
      "RunStoreConformance",
      "ScriptedModel",
      "TaskStoreConformance",
      "ThreadStoreConformance"
    ])
  })

  it("export what needs packages of its own", () => {
    expect(names(effectAi)).toEqual(["EffectAi"])
    expect(names(http)).toEqual(["Http", "createHandler", "serve"])
    expect(names(mcp)).toEqual(["McpClient", "McpError", "McpTools"])
  })
})
