/**
 * Structured output: a typed value instead of text, partial values while it comes, elements of a list one by one, and what
 * happens when an answer does not match.
 *
 * Run it: npm run example -- structured-output
 *
 * It prints the value as it grows, then each element as soon as it is complete, and last:
 *
 *     Ada Lovelace was born in 1815
 *     ✓ 200 g flour
 *     ✓ 2 eggs
 *     no valid value (invalid): age: Invalid input: expected number, received string
 *     used the fallback: {"name":"somebody","age":0}
 */
import { Agent, StructuredOutputError } from "eddy/promise"
import { ScriptedModel } from "eddy/testing"
import { z } from "zod"

const { reply } = ScriptedModel
const wrong = '{ "name": "Bob", "age": "old" }'
const model = ScriptedModel.make(
  [
    reply('{ "name": "Ada Lovelace", "born": 1815 }'),
    reply('{ "elements": [ { "amount": "200 g", "what": "flour" }, { "amount": "2", "what": "eggs" } ] }'),
    reply(wrong),
    reply(wrong)
  ],
  { pace: "20 millis" }
)
const agent = new Agent({ id: "reader", instructions: "Take what the text says.", model })

// An object: partial values as the text comes, and the valid one at last. The schema gives all of them their types.
const person = await agent.stream("Who wrote the first program?", {
  structuredOutput: { schema: z.object({ name: z.string(), born: z.number() }) }
})
for await (const partial of person.objectStream) console.log("…", JSON.stringify(partial))
const { born, name } = await person.object
console.log(`${name} was born in ${born}`)

// A list: each element as soon as it is complete and valid.
const recipe = await agent.stream("What do I need for noodles?", {
  structuredOutput: { schema: z.array(z.object({ amount: z.string(), what: z.string() })) }
})
for await (const { amount, what } of recipe.elementStream) console.log(`✓ ${amount} ${what}`)

// An answer that does not match: an error that says what is wrong, or a value to fall back on.
const guest = z.object({ name: z.string(), age: z.number() })
try {
  await agent.generate("Who is coming?", { structuredOutput: { schema: guest } })
} catch (error) {
  if (!(error instanceof StructuredOutputError)) throw error
  const [issue] = error.issues
  console.log(`no valid value (${error.reason}): ${issue?.path.join(".")}: ${issue?.message}`)
}
const fallbackValue = { name: "somebody", age: 0 }
const { object, usedFallbackValue } = await agent.generate("Who is coming?", {
  structuredOutput: { schema: guest, errorStrategy: "fallback", fallbackValue }
})
if (usedFallbackValue === true) console.log(`used the fallback: ${JSON.stringify(object)}`)
