/** What the next model call of a conversation is told, however the run before it ended; and how little it matters how parts come. */
import { Agent, type Chunk, Conversation, Id, type Message, ThreadStore } from "eddy"
import { Effect, Layer } from "effect"
import { beforeAll, describe, it } from "vitest"
import { promptFaults as requestFaults } from "../agent/memoryKit.js"
import { conversationFaults } from "../support/conversationFaults.js"
import { type Faults, finishMessagesFaults, promptFaults } from "./checks.js"
import { streamed } from "./effectFace.js"
import { holds, loadEverything, patience } from "./kit.js"
import { played } from "./promiseFace.js"
import { scenarios } from "./scenario.js"
import { lastAnswer, memory, type World } from "./world.js"

beforeAll(loadEverything, 30_000)

/** What a model is told in the next turn of the thread. */
const nextPrompt = async (world: World): Promise<ReadonlyArray<Message.Message>> => {
  world.heal()
  const before = world.asked.length
  const agent = Agent.make({ id: "next", model: world.model("next", "next", [lastAnswer]) })
  await Agent.generate(agent, "next", { memory }).pipe(
    Effect.provide(
      Layer.merge(
        Layer.succeed(ThreadStore.ThreadStore, world.store),
        Layer.succeed(Id.IdGenerator, world.ids)
      )
    ),
    Effect.runPromise
  )
  return world.asked[before]?.request.messages ?? []
}

/** What the models of the run itself were told. */
const ownFaults = ({ asked }: World): Faults =>
  asked.flatMap(({ agent, request }) => requestFaults(request.messages).map(fault => `${agent}: ${fault}`))

const nextFaults = async (
  world: World,
  chunks: ReadonlyArray<Chunk.Chunk>,
  isLeft: boolean
): Promise<Faults> => [
  ...ownFaults(world),
  ...finishMessagesFaults(chunks),
  ...promptFaults(world, chunks, isLeft, await nextPrompt(world))
]

describe("5: the next prompt is well formed, and tells what was told", () => {
  it(
    "on the thread of a cold stream, whether it ended, was stopped, or was left",
    () =>
      holds(scenarios({ hasThread: true, stops: ["signal", "interrupt", "leave"] }), 200, async scenario => {
        const { chunks, isLeft, world } = await streamed(scenario)
        return nextFaults(world, chunks, isLeft)
      }),
    patience
  )

  it(
    "on the thread of a hot run, whether it ended, was cancelled, or lost its container",
    () =>
      holds(
        scenarios({ hasThread: true, hasReaders: true, stops: ["signal", "cancel", "shutdown"] }),
        100,
        async scenario => {
          const { chunks, world } = await played(scenario)
          return nextFaults(world, chunks, false)
        }
      ),
    patience
  )

  it(
    "from what finish remembers, without a thread",
    () =>
      holds(scenarios({ hasThread: false, stops: ["signal"] }), 100, async scenario => {
        const { chunks, world } = await streamed(scenario)
        const finish = chunks.at(-1)
        if (finish?.type !== "finish") return ["no finish"]
        const next = await Effect.runPromise(Conversation.fromInput([...finish.payload.messages.all, "next"]))
        return [
          ...ownFaults(world),
          ...finishMessagesFaults(chunks),
          ...conversationFaults(next, () => false)
        ]
      }),
    patience
  )
})
