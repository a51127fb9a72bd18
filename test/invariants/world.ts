/** What a scenario is played with: models and a store that keep count of what is done with them, a signal, a clock. */
import { getEventListeners } from "node:events"
import { type Id, type LanguageModel, type Message, type ModelPart, ThreadStore } from "eddy"
import { type Context, Effect } from "effect"
import * as memoryThreads from "../../src/storage/memoryThreads.js"
import { refusal, turn, turns } from "../agent/kit.js"
import { loosely } from "../support/randomParts.js"
import { JumpingClock } from "./jumpingClock.js"
import {
  type AgentScript,
  type AnswerScript,
  type Entry,
  flood,
  isAgent,
  type ModelScript,
  type Scenario,
  type SourceKind
} from "./scenario.js"

/** The id of the run at the top: it is the first to get one. */
export const topRun = "run-1"

/** The thread of every run that has one. */
export const memory = { thread: "t1", resource: "u1", lastMessages: 1_000_000 } as const

/** One call of a model. */
export interface Asked {
  /** Where the agent stands: `top`, `top.a`, `top.a.b`. */
  readonly agent: string
  readonly request: LanguageModel.ModelRequest
  /** Parts that were taken from it. */
  readonly handed: Array<ModelPart.ModelPart>
}

/** One execution of a tool. */
export interface Execution {
  readonly runId: string
  readonly toolCallId: string
  isOver: boolean
}

/** A signal that knows who listens. */
const watchedSignal = () => {
  const controller = new AbortController()
  const { signal } = controller
  const listeners = new Set<unknown>()
  const { addEventListener, removeEventListener } = signal
  signal.addEventListener = (...args: Parameters<AbortSignal["addEventListener"]>) => {
    listeners.add(args[1])
    addEventListener.apply(signal, args)
  }
  signal.removeEventListener = (...args: Parameters<AbortSignal["removeEventListener"]>) => {
    listeners.delete(args[1])
    removeEventListener.apply(signal, args)
  }
  return {
    signal,
    abort: (reason?: unknown) => controller.abort(reason),
    listening: () => Math.max(signal.aborted ? 0 : listeners.size, getEventListeners(signal, "abort").length)
  }
}

/** Ids that count from 1, of all runs of a world: one thread may hold several of them. */
const counted = () => {
  const counts = new Map<string, number>()
  return {
    next: (kind: Id.IdKind): string => {
      const count = (counts.get(kind) ?? 0) + 1
      counts.set(kind, count)
      return `${kind}-${count}`
    }
  }
}

/** Turns after which somebody who waits for something that hangs loses patience. */
const rescueAfter = 14

const never = (): Promise<never> => new Promise(() => undefined)

/** How the parts of an answer come: so many turns before each, over and over, from this kind of source. */
export interface Cut {
  readonly turns: ReadonlyArray<number>
  readonly source: SourceKind
}

export class World {
  readonly clock = new JumpingClock()
  readonly ids = counted()
  readonly asked: Array<Asked> = []
  readonly executions: Array<Execution> = []
  readonly faults: Array<string> = []
  private readonly watched = watchedSignal()
  /** Sources that were handed out, and are neither at their end nor cancelled. */
  readonly openSources = new Set<string>()
  private sources = 0
  private storeCalls = 0
  private isHealed = false
  readonly store: Context.Tag.Service<ThreadStore.ThreadStore>
  /** What the thread held, each time that something was added: what is there when the process ends without a word. */
  readonly moments: Array<ReadonlyArray<Message.Message>> = []

  constructor(
    readonly scenario: Scenario,
    private readonly cut: Cut | undefined = undefined
  ) {
    this.store = this.makeStore()
  }

  get signal(): AbortSignal {
    return this.watched.signal
  }

  readonly abort = (reason?: unknown): void => this.watched.abort(reason)

  /** Listeners of the signal. */
  get listening(): number {
    return this.watched.listening()
  }

  /** Something hangs. If nobody has stopped it after a while, the run is aborted. */
  readonly rescue = (isStopped: () => boolean): void => {
    const wait = async (): Promise<void> => {
      for (let count = 0; count < rescueAfter; count++) await turn()
      if (!isStopped()) this.abort("hung")
    }
    void wait()
  }

  /** The models of an agent, as `model` takes them. */
  modelsOf(
    agent: string,
    { models, tools }: AgentScript
  ): ReadonlyArray<{
    readonly model: LanguageModel.LanguageModel
    readonly maxRetries?: number
  }> {
    const nameOf = (name: string): string => {
      const tool = tools[name]
      return tool !== undefined && isAgent(tool) ? `agent-${name}` : name
    }
    return models.map(({ answers, maxRetries }, index) => ({
      model: this.model(agent, `${agent} model ${index}`, answers, nameOf),
      ...(maxRetries === undefined ? {} : { maxRetries })
    }))
  }

  /** A model that gives these answers, and "ok" behind them. */
  model(
    agent: string,
    modelId: string,
    answers: ModelScript["answers"],
    nameOf: (name: string) => string = name => name
  ): LanguageModel.LanguageModel {
    let calls = 0
    const answer: LanguageModel.LanguageModel["answer"] = (request, signal) => {
      const script = answers[calls++] ?? lastAnswer
      const asked: Asked = { agent, request, handed: [] }
      this.asked.push(asked)
      // By this a step tells which call of which model it comes from.
      const responseHeaders = { asked: String(this.asked.length - 1) }
      const begin = (): LanguageModel.ModelAnswer => ({
        source: this.source(script, asked, signal, nameOf),
        normalize: part => part as ModelPart.ModelPart,
        responseHeaders
      })
      switch (script.opening) {
        case "at once":
          return Promise.resolve().then(begin)
        case "as an effect":
          return Effect.map(turns(1), begin) as Effect.Effect<LanguageModel.ModelAnswer>
        case "late":
          return turn().then(turn).then(begin)
        case "busy":
          return Promise.reject(refusal(503))
        case "refused":
          return Promise.reject(refusal(400))
        case "rejected with a text":
          return Promise.reject("no")
        case "thrown":
          throw new Error("thrown")
        case "dead":
          return Effect.die(new Error("dead"))
        case "silent":
          this.rescue(() => signal.aborted)
          return never()
      }
    }
    return { provider: "kit", modelId, answer }
  }

  private source(
    { ending, entries, source: kind }: AnswerScript,
    { handed }: Asked,
    signal: AbortSignal,
    nameOf: (name: string) => string
  ): LanguageModel.ModelAnswer["source"] {
    const { cut } = this
    const name = `source ${++this.sources}`
    this.openSources.add(name)
    const rest = entries
      .flatMap((entry): ReadonlyArray<Exclude<Entry, "flood">> => (entry === "flood" ? flood : [entry]))
      .values()
    let isFinished = false
    let isLetGo = false
    let place = 0
    const letGo = (): void => {
      isLetGo = true
      this.openSources.delete(name)
    }
    const pause = async (): Promise<void> => {
      // Turns of the event loop after a finish would make it a matter of luck what is read behind it.
      if (isFinished || cut === undefined) return
      const count = cut.turns[place++ % cut.turns.length] ?? 0
      for (let index = 0; index < count; index++) await turn()
    }
    const next = async (): Promise<IteratorResult<unknown, undefined>> => {
      if (isLetGo) return { done: true, value: undefined }
      for (;;) {
        const { done, value: entry } = rest.next()
        if (done === true) return end()
        if (entry === "turn") {
          if (!isFinished) await turn()
          continue
        }
        await pause()
        if (entry.type === "finish") isFinished = true
        const part = "toolName" in entry ? loosely({ ...entry, toolName: nameOf(entry.toolName) }) : entry
        handed.push(part)
        return { done: false, value: part }
      }
    }
    const end = async (): Promise<IteratorResult<unknown, undefined>> => {
      if (ending === "hang") {
        this.rescue(() => isLetGo || signal.aborted)
        return never()
      }
      letGo()
      if (ending === "throw") throw new Error("broken")
      return { done: true, value: undefined }
    }
    const returned = (): Promise<IteratorResult<unknown, undefined>> => {
      letGo()
      return Promise.resolve({ done: true, value: undefined })
    }
    switch (cut?.source ?? kind) {
      case "iterator":
        return { [Symbol.asyncIterator]: () => ({ next, return: returned }) }
      case "generator": {
        const generator = generate(next)
        // A generator that waits hears of `return` when it goes on, and not before.
        const leave = () => {
          letGo()
          return generator.return(undefined)
        }
        return { [Symbol.asyncIterator]: () => ({ next: () => generator.next(), return: leave }) }
      }
      case "stream":
        return new ReadableStream<unknown>(
          {
            pull: async controller => {
              const { done, value } = await next()
              if (isLetGo && done !== true) return
              if (done === true) controller.close()
              else controller.enqueue(value)
            },
            cancel: letGo
          },
          { highWaterMark: 0 }
        )
    }
  }

  private makeStore(): Context.Tag.Service<ThreadStore.ThreadStore> {
    const store = ThreadStore.make(memoryThreads.make())
    const { scenario } = this
    const troubled = <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
      Effect.suspend(() => {
        const { at, trouble } = scenario.store ?? { trouble: "none", at: 0 }
        if (this.isHealed || trouble === "none") return work
        const isNow = ++this.storeCalls === at
        if (trouble === "slow") return Effect.zipLeft(Effect.zipRight(turns(1), work), turns(1))
        if (!isNow) return work
        if (trouble === "fails") return Effect.die(new Error("the disk is full"))
        let isStopped = false
        this.rescue(() => isStopped)
        return Effect.onInterrupt(Effect.never, () => Effect.sync(() => (isStopped = true)))
      })
    const remember = (id: string) =>
      Effect.map(store.messages(id), all => this.moments.push(all.map(({ message }) => message)))
    return {
      ...store,
      open: thread => troubled(store.open(thread)),
      append: (id, messages) => troubled(Effect.tap(store.append(id, messages), () => remember(id))),
      messages: (id, options) => troubled(store.messages(id, options))
    }
  }

  /** From now on the store works. */
  heal(): void {
    this.isHealed = true
  }
}

async function* generate(next: () => Promise<IteratorResult<unknown, undefined>>) {
  for (;;) {
    const { done, value } = await next()
    if (done === true) return
    yield value
  }
}

export const lastAnswer: AnswerScript = {
  opening: "at once",
  source: "iterator",
  entries: [
    loosely({ type: "text-delta", id: "0", delta: "ok" }),
    loosely({ type: "finish", reason: "stop", usage: { inputTokens: 1 } })
  ],
  ending: "eof"
}

/** Turns of the event loop in which everything that is to settle has settled. */
const longEnough = 20_000

/** A promise that is to settle by itself: rejects when turns go by and it does not. */
export const inTurns = async <A>(what: string, promise: Promise<A>): Promise<A> => {
  let isSettled = false
  const note = () => {
    isSettled = true
  }
  promise.then(note, note)
  for (let count = 0; !isSettled; count++) {
    if (count === longEnough) throw new Error(`It never ends: ${what}`)
    await turn()
  }
  return promise
}
