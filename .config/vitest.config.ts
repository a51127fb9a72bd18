import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const root = fileURLToPath(new URL("..", import.meta.url))

/** Tests that count what a process has open, or measure, or change what it is: each file has a process of its own. */
const alone = ["invariants", "package", "performance", "recovery"].map(room => `test/${room}/**/*.test.ts`)

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
          exclude: ["test/bench/**", "test/clients/**", ...alone],
          // Files of one process share what they load: that is most of what a small file costs.
          isolate: false
        }
      },
      { extends: true, test: { name: "alone", include: ["test/*.test.ts", ...alone] } }
    ]
  }
})
