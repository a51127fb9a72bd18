// Runs the tests and ends with one plain line, `N passed, N failed, N skipped`, from the report of the run.
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "eddy-test-"))
const report = join(folder, "report.json")
const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url))

const { status } = spawnSync(
  process.execPath,
  [
    vitest,
    "run",
    "--config",
    ".config/vitest.config.ts",
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${report}`,
    ...process.argv.slice(2)
  ],
  { cwd: root, stdio: "inherit" }
)

const count = () => {
  try {
    const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(report, "utf8"))
    return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests }
  } catch {
    return { passed: 0, failed: 1, skipped: 0 }
  }
}

const { failed, passed, skipped } = count()
rmSync(folder, { recursive: true, force: true })
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`)
process.exitCode = status === 0 && passed > 0 && failed === 0 ? 0 : 1
