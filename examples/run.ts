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
// A whole name comes first: `http` is one, and a part of another.
const found = /^\d+$/.test(wanted)
  ? names.find(name => Number(name.slice(0, 2)) === Number(wanted))
  : (names.find(name => name.slice(3) === wanted) ?? names.find(name => name.includes(wanted)))

if (found === undefined) {
  console.error(`There is no example "${wanted}". There are:\n${names.map(name => `  ${name}`).join("\n")}`)
  process.exitCode = 1
} else {
  await import(new URL(`${found}.ts`, import.meta.url).href)
}
