/**
 * Runs an example by its number or a part of its name; without an argument the one that shows most.
 *
 *     npm run example
 *     npm run example -- hello
 *     npm run example -- 5
 */
import { readdir } from "node:fs/promises"

const names = (await readdir(new URL(".", import.meta.url)))
  .filter(file => /^\d\d-.*\.ts$/.test(file))
  .map(file => file.slice(0, -".ts".length))
  .sort()

const wanted = process.argv[2] ?? "10"
const found = names.find(name =>
  /^\d+$/.test(wanted) ? Number(name.slice(0, 2)) === Number(wanted) : name.includes(wanted)
)

if (found === undefined) {
  console.error(`There is no example "${wanted}". There are:\n${names.map(name => `  ${name}`).join("\n")}`)
  process.exitCode = 1
} else {
  await import(new URL(`${found}.ts`, import.meta.url).href)
}
