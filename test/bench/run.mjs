// Runs the rows one after the other, prints what they found and writes it to results/.
import { mkdirSync, writeFileSync } from "node:fs"
import { parseArgs } from "node:util"
import { ask } from "./kit/child.mjs"
import { machine } from "./kit/machine.mjs"
import { printHead, printRow, printSummary } from "./kit/print.mjs"
import { rows } from "./rows.mjs"

const all = Object.keys(rows)
const enough = 11

const { values, positionals } = parseArgs({ allowPositionals: true, options: { reps: { type: "string" } } })
const unknown = positionals.filter(name => !all.includes(name))
if (unknown.length > 0 || (values.reps && !(Number(values.reps) > 0))) {
  console.error(`usage: npm run bench -- [${all.join(" | ")}]... [--reps n]`)
  process.exit(1)
}

const names = positionals.length > 0 ? all.filter(name => positionals.includes(name)) : all
const smoke = values.reps !== undefined && Number(values.reps) < enough
const runRow = async name => {
  const { title, flags, seconds } = rows[name]
  const [load] = machine().load
  const args = values.reps ? [name, values.reps] : [name]
  const report = await ask(new URL("row.mjs", import.meta.url), args, { flags, seconds }).catch(error => ({
    failed: error.message
  }))
  return { name, title, load: [load, machine().load[0]], ...report }
}

const started = new Date()
printHead(machine(), smoke)
const found = []
for (const name of names) {
  const row = await runRow(name)
  printRow(row, smoke)
  found.push(row)
}
printSummary(found, smoke)

const folder = new URL("results/", import.meta.url)
const report = `${JSON.stringify({ started, smoke, machine: machine(), rows: found }, null, 2)}\n`
mkdirSync(folder, { recursive: true })
for (const file of [`${started.toISOString().replaceAll(":", "-")}.json`, "latest.json"]) {
  writeFileSync(new URL(file, folder), report)
}
console.log(`results/latest.json written; ${Math.round((Date.now() - started) / 1000)} s`)

const broken = found.some(row => row.failed)
const voided = !smoke && found.some(row => row.controls?.some(({ state }) => state === "void"))
process.exit(broken || voided ? 1 : 0)
