/**
 * A server in a process of its own, for the tests of load and for `load.mjs`: what it holds is not mixed with what its clients
 * hold. Its parent asks with messages, and is answered with one message each.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Agent from "../../src/agent/Agent.ts"
import { OpenStreams } from "../../src/http/asked.ts"
import { hostOf } from "../../src/http/hostAgents.ts"
import { listen } from "../../src/http/nodeServer.ts"
import { routerOf } from "../../src/http/router.ts"
import { make } from "../../src/http/runs.ts"
import { settingsOf } from "../../src/http/settings.ts"

const gates = []
let said = 0

const modelOf = source => ({
  provider: "load",
  modelId: "load",
  answer: request => Effect.sync(() => ({ normalize: part => part, source: source(request) }))
})

/** Says a first word, and the rest when it is told to: the word that it was asked for, as often as it was asked. */
const gated = async function* (request) {
  const [, name, times] = /name:(\w+) times:(\d+)/.exec(JSON.stringify(request.messages))
  yield { type: "text-start", id: "t" }
  yield { type: "text-delta", id: "t", delta: "first " }
  await new Promise(resolve => gates.push(resolve))
  for (let time = 0; time < Number(times); time++) {
    yield { type: "text-delta", id: "t", delta: `${name} ` }
    if (time % 10 === 9) await new Promise(resolve => setImmediate(resolve))
  }
  yield { type: "text-end", id: "t" }
  yield { type: "finish", reason: "stop", usage: {} }
}

const kibibyte = "x".repeat(1024)

/** 50 MiB as fast as they are taken. */
const flood = async function* () {
  yield { type: "text-start", id: "t" }
  for (; said < 50 * 1024; said++) yield { type: "text-delta", id: "t", delta: kibibyte }
  yield { type: "text-end", id: "t" }
  yield { type: "finish", reason: "stop", usage: {} }
}

const settings = settingsOf({
  runLog: { maxAge: 300 },
  streams: { total: 5000, maxAge: "1 hour" },
  ...JSON.parse(process.argv[2] ?? "{}")
})
const openStreams = new OpenStreams(settings)
const scope = Effect.runSync(Scope.make())
const agents = {
  gated: Agent.make({ id: "gated", model: modelOf(gated) }),
  flood: Agent.make({ id: "flood", model: modelOf(flood) })
}
let runs
const routes = Effect.gen(function* () {
  const host = yield* hostOf(agents)
  runs = yield* make(settings)
  return routerOf({ host, settings, runs, openStreams })
})
const url = await Effect.runPromise(Scope.extend(listen(routes, { port: 0, hostname: "127.0.0.1" }), scope))

const cpu = () => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1000
}

const answers = {
  release: () => {
    for (const open of gates.splice(0)) open()
    return {}
  },
  collected: () => {
    globalThis.gc?.()
    return answers.figures()
  },
  figures: () => {
    const { heapUsed, rss } = process.memoryUsage()
    const sockets = process.getActiveResourcesInfo().filter(name => name === "TCPSocketWrap").length
    return {
      heap: heapUsed,
      rss,
      peak: process.resourceUsage().maxRSS * 1024,
      cpu: cpu(),
      streams: openStreams.size,
      runs: runs.size(),
      detached: runs.detached(),
      sockets,
      said
    }
  },
  close: async () => {
    const begun = { at: performance.now(), cpu: cpu() }
    const closing = Effect.runPromise(Scope.close(scope, Exit.void))
    while (openStreams.size > 0) await new Promise(resolve => setTimeout(resolve, 1))
    const ended = { wall: performance.now() - begun.at, cpu: cpu() - begun.cpu }
    await closing
    return {
      ended: ended.wall,
      endedCpu: ended.cpu,
      took: performance.now() - begun.at,
      tookCpu: cpu() - begun.cpu
    }
  }
}

process.on("message", async asked => process.send(await answers[asked]()))
process.on("disconnect", () => process.exit())
process.send({ url })
