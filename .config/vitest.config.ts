import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const root = fileURLToPath(new URL("..", import.meta.url))

/** Tests that count what a process has open, or measure, or begin processes: also where the others share theirs (`test/run.mjs`). */
const alone = [
  ...["browser", "invariants", "mcp", "package", "performance", "recovery"].map(
    room => `test/${room}/**/*.test.ts`
  ),
  "test/agent/backgroundIsolation.test.ts",
  "test/promise/backgroundRuns.test.ts"
]

export default defineConfig({
  root,
  resolve: {
    alias: [
      { find: /^eddy$/, replacement: `${root}src/index.ts` },
      { find: /^eddy\/effect-ai$/, replacement: `${root}src/effect-ai.ts` },
      { find: /^eddy\/http$/, replacement: `${root}src/http.ts` },
      { find: /^eddy\/mcp$/, replacement: `${root}src/mcp.ts` },
      { find: /^eddy\/promise$/, replacement: `${root}src/promise.ts` },
      { find: /^eddy\/testing$/, replacement: `${root}src/testing.ts` }
    ]
  },
  test: {
    pool: "forks",
    maxWorkers: "100%",
    testTimeout: 20_000,
    coverage: { include: ["src/**"] },
    projects: [
      {
        extends: true,
        test: {
          name: "together",
          include: ["test/*/**/*.test.ts"],
          exclude: ["test/bench/**", "test/clients/**", ...alone]
        }
      },
      { extends: true, test: { name: "alone", include: ["test/*.test.ts", ...alone] } }
    ]
  }
})
