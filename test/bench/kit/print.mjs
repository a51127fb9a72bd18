// The terminal's view. Everything printed is in the JSON file too.
import { grid, number } from "./format.mjs"

const colour = code => text => (process.stdout.isTTY ? `\u001b[${code}m${text}\u001b[0m` : text)
const bold = colour(1)
const green = colour(32)
const red = colour(31)
const dim = colour(2)

const { log } = console

export const printHead = ({ node, platform, cores, cpu, load, versions, eddy }, smoke) => {
  log(bold("\neddy bench"))
  log(`Node ${node} on ${platform}, ${cores} x ${cpu}, load average ${load.join(" ")}; eddy from ${eddy}`)
  log(
    Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(", ")
  )
  log(dim("ratios: median of the paired ratios (bootstrap 95 % interval); over = how many times as long"))
  if (smoke) log(red("SMOKE: too few repetitions, the figures say only that the bench works"))
}

const targetLine = ({ label, sense, target, aim, unit, median, low, high, met }) => {
  const word = met ? green("met   ") : red("MISSED")
  const found = `${number(median)}${unit} (${number(low)}-${number(high)})`
  const wanted = `${sense} ${number(target)}${unit}${aim === undefined ? "" : ` [${number(aim)}${unit}]`}`
  return `  ${word} ${label}: ${found}, wanted ${wanted}`
}

const controlWord = {
  ok: "",
  noisy: " - noisy machine: more than 5 % off, no more than 10 %",
  void: " - VOID: more than 10 % off, this machine was too busy to tell"
}

const controlLine = (control, smoke) => {
  const word = smoke ? " - smoke, not judged" : controlWord[control.state]
  const figure = `${control.median.toFixed(3)} (${control.low.toFixed(3)}-${control.high.toFixed(3)})`
  return `  control: ${control.label} ${figure}, ${control.repetitions} repetitions${word}`
}

export const printRow = ({ name, title, load, failed, took, tables, targets, controls, notes }, smoke) => {
  log(
    bold(`\n${name} - ${title}`) + dim(` (load ${load.join(" -> ")}${took ? `, ${Math.round(took)} s` : ""})`)
  )
  if (failed) {
    log(red(`  BROKEN: ${failed}`))
    return
  }
  for (const table of tables) {
    log(`  ${dim(table.title)}`)
    log(grid([table.head, ...table.lines]))
  }
  for (const control of controls)
    log(control.state === "ok" && !smoke ? controlLine(control) : red(controlLine(control, smoke)))
  for (const note of notes ?? []) log(`  note: ${note}`)
  for (const target of targets) log(targetLine(target))
}

/** Losses last, where they are seen. */
export const printSummary = (rows, smoke) => {
  const targets = rows.flatMap(({ name, targets: own = [] }) => own.map(target => ({ ...target, row: name })))
  const missed = targets.filter(({ met }) => !met)
  log(bold(`\n${targets.length - missed.length} of ${targets.length} targets met${smoke ? " (smoke)" : ""}`))
  for (const target of missed) log(`  ${target.row}: ${targetLine(target).trim()}`)
  for (const { name, failed } of rows) if (failed) log(red(`  ${name}: BROKEN: ${failed.split("\n")[0]}`))
}
