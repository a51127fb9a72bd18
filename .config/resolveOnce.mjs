/**
 * The last step of the build: every module of effect is resolved once, by `dist/effect/*.js`, and our modules import that.
 *
 * Node looks up a package anew for each import of it, in a map of exports that has hundreds of entries where it is effect's:
 * two hundred of these look-ups took a sixth of the time that it takes to load the Promise face.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"

const dist = process.argv[2] ?? fileURLToPath(new URL("../dist", import.meta.url))
const modules = join(dist, "effect")
const names = new Set()

for (const path of readdirSync(dist, { recursive: true, encoding: "utf8" })) {
  if (!path.endsWith(".js") || /^effect[\\/]/.test(path)) continue
  const file = join(dist, path)
  const way = relative(dirname(file), modules).replaceAll("\\", "/")
  const prefix = way.startsWith(".") ? way : `./${way}`
  const text = readFileSync(file, "utf8").replace(
    /^((?:import|export) .*from )"effect\/(\w+)";$/gm,
    (_, words, name) => {
      names.add(name)
      return `${words}"${prefix}/${name}.js";`
    }
  )
  writeFileSync(file, text)
}

mkdirSync(modules, { recursive: true })
for (const name of names) writeFileSync(join(modules, `${name}.js`), `export * from "effect/${name}";\n`)
