import { contest } from "../kit/contest.mjs"
import { number, times } from "../kit/format.mjs"
import { readFull, verify } from "../kit/read.mjs"
import { textScript } from "../kit/script.mjs"
import { interval, median, paired } from "../kit/statistics.mjs"
import { againstItself, atMost } from "../kit/verdict.mjs"
import { eddy, openThreads } from "../systems/all.mjs"

const stored = [10, 100, 1000, 10000]
const recalled = [10, 100, 1000]
const largest = 10000
const turns = 25
const control = ["100 stored, 40 told", "again"]

const script = textScript(5)
const threads = openThreads(script)
const said = "A sentence of about sixty characters, as one writes them often."
const history = count =>
  Array.from({ length: count }, (_, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content: said }))

const takeTurns = async (thread, lastMessages, count) => {
  for (let at = 0; at < count; at++)
    verify(await readFull(await threads.turn(thread, lastMessages), eddy), script, thread)
}

const filled = async (thread, count) => {
  await threads.forget(thread)
  await threads.fill(thread, history(count - 1))
  // the run that filled it has answered
  if ((await threads.count(thread)) !== count) throw new Error(`not ${count} messages in the thread`)
  return thread
}

/** A thread for each sample, filled off the clock: a turn adds to it. */
const contender = (count, lastMessages) => {
  const thread = `${count} stored, ${lastMessages} told`
  const again = async () => takeTurns(await filled("small", 100), lastMessages, 5)
  return {
    warm: async () => {
      for (let at = 0; at < 10; at++) await again()
    },
    again,
    prepare: async () => {
      await filled(thread, count)
      // nor does a turn pay for the garbage of filling
      globalThis.gc?.()
    },
    run: () => takeTurns(thread, lastMessages, turns)
  }
}

export const run = async ({ repetitions = 15 }) => {
  const contenders = { again: contender(100, 40) }
  for (const count of stored) contenders[`${count} stored, 40 told`] = contender(count, 40)
  for (const told of recalled) contenders[`${largest} stored, ${told} told`] = contender(largest, told)
  const samples = await contest({ contenders, control, repetitions })
  const wall = label => samples[label].wall
  const line = (label, base) => [
    label,
    number(median(wall(label)) / turns),
    number(median(samples[label].cpu) / turns),
    label === base ? "" : times(interval(paired(wall(label), wall(base))))
  ]
  const told = count => `${largest} stored, ${count} told`
  const head = ["", "ms/turn wall", "cpu", "over the first"]
  const exponents = paired(wall(told(1000)), wall(told(100))).map(Math.log10)
  return {
    tables: [
      {
        title: "a turn of one text step, 40 messages told, by what the thread holds",
        head,
        lines: stored.map(count => line(`${count} stored, 40 told`, "10 stored, 40 told"))
      },
      {
        title: `a turn on a thread of ${number(largest)} messages, by what the model is told`,
        head,
        lines: recalled.map(count => line(told(count), told(10)))
      }
    ],
    targets: [
      atMost(
        "a turn with 10 000 stored / with 100",
        paired(wall(told(40)), wall("100 stored, 40 told")),
        1.5
      ),
      atMost("exponent of what is told, 100 to 1 000", exponents, 1.1, 1, "")
    ],
    controls: [againstItself(samples, control)],
    samples
  }
}
