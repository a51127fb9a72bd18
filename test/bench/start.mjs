// `npm run bench`: whatever Node runs this, the measuring is done by the pinned one in this folder.
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync, statSync } from "node:fs"
import { fileURLToPath } from "node:url"

const here = fileURLToPath(new URL(".", import.meta.url))
const root = fileURLToPath(new URL("../../", import.meta.url))
const wanted = JSON.parse(readFileSync(`${here}package.json`, "utf8")).dependencies.node

const run = (command, args, cwd) => {
  const { status, error } = spawnSync(command, args, { cwd, stdio: "inherit" })
  if (error) console.error(String(error))
  return status ?? 1
}

const must = (why, command, args, cwd) => {
  console.error(`bench: ${why}`)
  if (run(command, args, cwd) !== 0) {
    console.error(`bench: "${command} ${args.join(" ")}" failed in ${cwd}`)
    process.exit(1)
  }
}

// npm writes this file at the end of an install, so an interrupted one counts as missing.
const installed = `${here}node_modules/.package-lock.json`
const stale = () =>
  !existsSync(installed) || statSync(installed).mtimeMs < statSync(`${here}package-lock.json`).mtimeMs

// The package `node` fetches its binary in an install script, which an npm with scripts switched off skips.
const nodeBinary = () => {
  const path = `${here}node_modules/node/bin/node`
  const version = spawnSync(path, ["--version"], { encoding: "utf8" }).stdout?.trim()
  return version === `v${wanted}` ? path : undefined
}

if (stale()) must("installing the peers", "npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], here)
if (!nodeBinary()) {
  must(
    `fetching Node ${wanted}`,
    process.execPath,
    ["installArchSpecificPackage"],
    `${here}node_modules/node`
  )
}
const node = nodeBinary()
if (!node) {
  console.error(`bench: no Node ${wanted} in ${here}node_modules/node`)
  process.exit(1)
}

if (!process.env.EDDY_DIST) must("building eddy", "npm", ["run", "--silent", "build"], root)

process.exit(run(node, [`${here}run.mjs`, ...process.argv.slice(2)], root))
