import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const root = fileURLToPath(new URL("..", import.meta.url))

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
    include: ["test/**/*.test.ts"],
    exclude: ["test/bench/**", "test/clients/**"],
    pool: "forks",
    maxWorkers: "100%",
    testTimeout: 20_000,
    coverage: { include: ["src/**"] }
  }
})
