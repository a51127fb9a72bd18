/**
 * Runs the tests and ends with one plain line, `N passed, N failed, N skipped`, from the reports of both runs: most files share
 * processes, because to load the project again is most of what a small file costs; the others have one each. A failure may bring
 * others with it in its process. Look at the first by itself: `npx vitest run --config .config/vitest.config.ts <file>`.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "eddy-test-"))
const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url))

const run = (project, ...options) => {
  const report = join(folder, `${project}.json`)
  const { status } = spawnSync(
    process.execPath,
    [
      vitest,
      "run",
      "--config",
      ".config/vitest.config.ts",
      "--project",
      project,
      ...options,
      "--passWithNoTests",
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${report}`,
      ...process.argv.slice(2)
    ],
    { cwd: root, stdio: "inherit" }
  )
  try {
    const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(report, "utf8"))
    return { status, passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests }
  } catch {
    return { status, passed: 0, failed: 1, skipped: 0 }
  }
}

const runs = [run("together", "--no-isolate"), run("alone")]
rmSync(folder, { recursive: true, force: true })

const sum = name => runs.reduce((total, counts) => total + counts[name], 0)
console.log(`${sum("passed")} passed, ${sum("failed")} failed, ${sum("skipped")} skipped`)
process.exitCode =
  runs.every(({ status }) => status === 0) && sum("passed") > 0 && sum("failed") === 0 ? 0 : 1
