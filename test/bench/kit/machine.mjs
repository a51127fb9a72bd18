import { readFileSync } from "node:fs"
import { cpus, loadavg } from "node:os"

const versionOf = name => {
  for (const folder of ["../node_modules/", "../../../node_modules/"]) {
    try {
      return JSON.parse(readFileSync(new URL(`${folder}${name}/package.json`, import.meta.url), "utf8"))
        .version
    } catch {}
  }
}

/** What a reader has to know before believing a figure. */
export const machine = () => ({
  node: process.version,
  platform: `${process.platform} ${process.arch}`,
  cores: cpus().length,
  cpu: cpus()[0]?.model,
  load: loadavg().map(load => Math.round(load * 100) / 100),
  versions: Object.fromEntries(
    ["@mastra/core", "@mastra/libsql", "@libsql/client", "ai", "effect", "zod"].map(name => [
      name,
      versionOf(name)
    ])
  ),
  eddy: process.env.EDDY_DIST ?? "dist"
})
