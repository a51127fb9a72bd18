import { batch, textContender, toolContender } from "../kit/contender.mjs"
import { contest } from "../kit/contest.mjs"
import { number, times } from "../kit/format.mjs"
import { readFull } from "../kit/read.mjs"
import { textScript, toolScript } from "../kit/script.mjs"
import { interval, median, paired } from "../kit/statistics.mjs"
import { againstItself, atMost } from "../kit/verdict.mjs"
import { eddy } from "../systems/all.mjs"
import { eddyTraced } from "../systems/eddyTraced.mjs"

const control = ["off", "off again"]

const traced = eddyTraced()
const withContents = eddyTraced({ captureContent: true })

const table = (title, samples, count, unit) => ({
  title,
  head: ["telemetry", `us/${unit} wall`, "cpu", "of off, wall", "cpu"],
  lines: Object.entries(samples).map(([label, { wall, cpu }]) => [
    label,
    number((median(wall) / count) * 1000),
    number((median(cpu) / count) * 1000),
    times(interval(paired(wall, samples.off.wall))),
    times(interval(paired(cpu, samples.off.cpu)))
  ])
})

const compare = (contender, repetitions) =>
  contest({
    contenders: {
      off: contender(eddy),
      "off again": contender(eddy),
      on: contender(traced),
      "on, with contents": contender(withContents)
    },
    control,
    repetitions
  })

export const run = async ({ repetitions = 15 }) => {
  const report = { tables: [], targets: [], controls: [], samples: {} }
  const text = textScript(10000)
  const told = await compare(system => batch(3, textContender(system, text, readFull)), repetitions)
  report.samples.text = told
  report.tables.push(table("fullStream, 10 000 deltas", told, 30000, "chunk"))
  report.targets.push(atMost("on / off, 10 000 deltas", paired(told.on.wall, told.off.wall), 1.1, 1.05))
  report.controls.push(againstItself(told, control, "10 000 deltas: off"))

  const steps = 50
  const script = toolScript(steps)
  const looped = await compare(
    system => toolContender(system, script, { warmUp: script, runs: 4 }),
    repetitions
  )
  report.samples.tools = looped
  report.tables.push(table("50 steps with an instant tool: two spans each", looped, steps * 4, "step"))
  report.targets.push(atMost("on / off, 50 steps", paired(looped.on.wall, looped.off.wall), 4, 3))
  report.controls.push(againstItself(looped, control, "50 steps: off"))
  return report
}
