import { contest } from "../kit/contest.mjs"
import { number, times } from "../kit/format.mjs"
import { interval, median, paired } from "../kit/statistics.mjs"
import { taskContender } from "../kit/tasks.mjs"
import { againstItself, atLeast, atMost } from "../kit/verdict.mjs"
import { eddy } from "../systems/eddyTasks.mjs"
import { mastra } from "../systems/mastraTasks.mjs"

const counts = [200, 1000]
const concurrency = 10
const control = ["mastra, 1", "mastra, 1 again"]

export const run = async ({ repetitions = 11 }) => {
  const report = { tables: [], targets: [], controls: [], samples: {} }
  for (const count of counts) {
    const of = (system, readers) => taskContender(system, { count, concurrency, readers })
    const samples = await contest({
      contenders: {
        "eddy, 1": of(eddy, 1),
        "eddy, 100": of(eddy, 100),
        "mastra, 1": of(mastra, 1),
        "mastra, 1 again": of(mastra, 1),
        "mastra, 100": of(mastra, 100)
      },
      control,
      repetitions
    })
    const wall = label => samples[label].wall
    const title = `${number(count)} tasks, until the last reader has everything`
    report.samples[title] = samples
    report.tables.push({
      title,
      head: ["", "us/task wall", "cpu", "over 1 reader", "over eddy, wall"],
      lines: Object.keys(samples).map(label => {
        const [name, readers] = label.split(", ")
        const one = `${name}, 1`
        return [
          label,
          number((median(wall(label)) / count) * 1000),
          number((median(samples[label].cpu) / count) * 1000),
          label === one ? "" : times(interval(paired(wall(label), wall(one)))),
          name === "eddy"
            ? ""
            : times(interval(paired(wall(label), wall(`eddy, ${Number.parseInt(readers, 10)}`))))
        ]
      })
    })
    report.targets.push(
      atMost(`eddy, 100 readers / 1, ${number(count)} tasks`, paired(wall("eddy, 100"), wall("eddy, 1")), 2),
      atLeast(
        `mastra / eddy, 100 readers, ${number(count)} tasks`,
        paired(wall("mastra, 100"), wall("eddy, 100")),
        1
      )
    )
    report.controls.push(againstItself(samples, control, `${number(count)} tasks: mastra`))
  }
  return report
}
