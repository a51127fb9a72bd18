/** The library as it is built, for processes that a test starts: once for all of them. */
import { execFile } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** Builds it into a folder of its own, from which it finds its packages. */
export const build = async (): Promise<{ readonly folder: string; readonly remove: () => Promise<void> }> => {
  const folder = await mkdtemp(join(root, "node_modules", ".recovery-"))
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc")
  // Types are checked elsewhere.
  const options = ["-p", join(root, ".config", "tsconfig.build.json"), "--outDir", folder, "--noCheck"]
  await promisify(execFile)(process.execPath, [
    compiler,
    ...options,
    "--declaration",
    "false",
    "--declarationMap",
    "false"
  ])
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) }
}
