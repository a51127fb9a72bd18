/**
 * A model of a few rules, for the page without a key: it answers whatever a visitor types, calls tools where that helps, and
 * streams word by word as a model does.
 */
import type { LanguageModel, Message } from "eddy"
import { ScriptedModel } from "eddy/testing"

const { finish, reply, text, toolCall } = ScriptedModel

type Turn = ReadonlyArray<ScriptedModel.ScriptPart>

const textOf = (message: Message.Message | undefined): string => {
  if (message?.role !== "user") return ""
  return message.content.map(part => (part.type === "text" ? part.text : "")).join(" ")
}

let calls = 0

const calling = (words: string, toolName: string, inputs: ReadonlyArray<object>): Turn => [
  ...text(words),
  ...inputs.map(input => toolCall(`call-${++calls}`, toolName, input)),
  finish("tool-calls")
]

const capabilities =
  "I can research something in the background while we talk on, and I can delete old reports once you approve it. " +
  "I run without a model key here, so these are rules rather than thoughts."

/** What a visitor may say, and what that is answered with. The first that matches counts. */
const rules: ReadonlyArray<readonly [RegExp, (words: string, match: RegExpMatchArray) => Turn]> = [
  [
    /\b(?:research|investigate|look into|find out(?: about)?|compare)\b\s*(.*)/i,
    (_, [, subject = ""]) => {
      const topics = subject
        .replace(/\b(in the background|please|for me)\b/gi, "")
        .replace(/[.?!]+$/, "")
        .split(/\s+and\s+|,\s*/)
        .map(topic => topic.trim())
        .filter(topic => topic !== "")
      const inputs = (topics.length === 0 ? ["the tides"] : topics.slice(0, 3)).map(topic => ({ topic }))
      return calling("That takes a while, so I start it in the background.", "research", inputs)
    }
  ],
  [
    /\b(?:delete|remove|clean up|throw away)\b/i,
    () =>
      calling("I can do that. It cannot be undone, so it needs your approval first.", "delete_reports", [
        { folder: "reports", olderThan: "1 year" }
      ])
  ],
  [/\b(?:what can you|help|who are you|what are you|able to)\b/i, () => reply(capabilities)],
  [/\b(?:thanks|thank you|cheers)\b/i, () => reply("You are welcome. Is there anything else?")],
  [/\bhow are you\b/i, () => reply("Calm and afloat, thank you. What shall we look at?")],
  [
    /\b(?:story|long|explain|streaming)\b/i,
    () =>
      reply(
        "An eddy forms where a current meets something that does not move. The water turns back on itself, slows down, and " +
          "for a while goes its own way beside the stream. Nothing of it is lost: sooner or later it joins the current again.\n\n" +
          "A background task is much like that. The answer flows on while the task turns in its own time, and what it " +
          "brings comes back into the same conversation."
      )
  ],
  [/\b(?:hello|hi|hey|good (?:morning|day|evening))\b/i, () => reply(`Hello. ${capabilities}`)],
  [/^/, words => reply(`You said: “${words.slice(0, 200)}”. I have no rule for that. ${capabilities}`)]
]

const valueOf = ({ output }: Message.ToolResultPart): string =>
  typeof output.value === "string" ? output.value : JSON.stringify(output.value)

/** What the newest results of tools are answered with. */
const aboutResults = (results: ReadonlyArray<Message.ToolResultPart>): Turn => {
  if (results.some(({ toolName }) => toolName === "research")) {
    return reply("I am on it. Ask me anything meanwhile: you will see the result here when it is there.")
  }
  const [deleted] = results
  if (deleted === undefined || deleted.output.type.startsWith("error")) {
    return reply("All right, I leave everything as it is.")
  }
  return reply(`Done. The tool says: ${valueOf(deleted)}`)
}

/** What the system message says of tasks that have settled, one call a line. */
const settledLine = /^- call (\S+) of "[^"]+" \(task \S+\) (.*)\.$/gm

const aboutTasks = (said: string, messages: ReadonlyArray<Message.Message>): Turn => {
  const results = messages.flatMap(({ content, role }) => (role === "tool" ? content : []))
  const sentences = [...said.matchAll(settledLine)].map(([, id, outcome = ""]) => {
    const result = results.find(({ toolCallId }) => toolCallId === id)
    return outcome === "completed" && result !== undefined
      ? `The research is done. ${findingOf(result)}`
      : `The research ${outcome}.`
  })
  return reply(sentences.join(" "))
}

const findingOf = ({ output }: Message.ToolResultPart): string => {
  const { value } = output
  const finding =
    typeof value === "object" && value !== null && "finding" in value ? value["finding"] : undefined
  return typeof finding === "string" ? finding : JSON.stringify(value)
}

const turnFor = (messages: ReadonlyArray<Message.Message>): Turn => {
  const last = messages.at(-1)
  if (last?.role === "tool") return aboutResults(last.content)
  if (last?.role === "system" && last.content.includes("have settled"))
    return aboutTasks(last.content, messages)
  const words = textOf(messages.findLast(({ role }) => role === "user")).trim()
  for (const [pattern, turn] of rules) {
    const match = words.match(pattern)
    if (match !== null) return turn(words, match)
  }
  return reply(capabilities)
}

/** @param pace How long between two words. */
export const concierge = (pace = "45 millis" as const): LanguageModel.LanguageModel => ({
  provider: "eddy",
  modelId: "concierge",
  answer: request => ScriptedModel.make([turnFor(request.messages)], { pace }).answer(request)
})
