/**
 * The page of `examples/page` in a real Chromium: an agent whose model and tools a test plays by hand, and a tab that looks at it.
 * Where there is no Chromium the tests are skipped, unless `EDDY_TEST_CHROMIUM=required` says that there has to be one.
 */
import { existsSync } from "node:fs"
import { createServer, type Server } from "node:http"
import * as HttpServer from "@effect/platform/HttpServer"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import {
  Agent,
  BackgroundTasks,
  type LanguageModel,
  type ModelPart,
  RunStore,
  TaskStore,
  ThreadStore,
  Tool
} from "eddy"
import { ScriptedModel } from "eddy/testing"
import { Effect, Exit, Layer, Schema, Scope } from "effect"
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core"
import { afterAll, beforeAll, expect, onTestFinished } from "vitest"
import { app } from "../../examples/page/app.js"
import { type Latch, latch } from "../support/readers.js"

const executablePath = "/usr/bin/chromium"

/** Chromium, or somebody says that it has to be there: then its absence is a failure. */
export const isWanted = existsSync(executablePath) || process.env["EDDY_TEST_CHROMIUM"] === "required"

if (!isWanted)
  console.warn(`Skipped: there is no ${executablePath}. Install it with: apt-get install chromium`)

const args = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync"
]

/** One browser for the tests of a file. */
const useBrowser = (): { readonly get: () => Browser } => {
  let browser: Browser | undefined
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath, args })
  }, 30_000)
  afterAll(async () => {
    await browser?.close()
  })
  return {
    get: () => {
      if (browser === undefined) throw new Error("The browser has not started.")
      return browser
    }
  }
}

/** A part of an answer, or what it waits for. */
export type Step = ModelPart.ModelPart | Promise<void>

const { finish, text, toolCall } = ScriptedModel

export const saying = (words: string): ReadonlyArray<Step> => [...text(words), finish("stop")]

/** A text that stops in its middle until the latch is open. */
export const sayingInTwo = (first: string, middle: Latch, second: string): ReadonlyArray<Step> => [
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: first },
  middle.wait,
  { type: "text-delta", id: "t", delta: second },
  { type: "text-end", id: "t" },
  finish("stop")
]

export const calling = (words: string, toolName: string, input: object): ReadonlyArray<Step> => [
  ...text(words),
  toolCall("c1", toolName, input),
  finish("tool-calls")
]

/** A model that plays one turn for each call, in order. */
const playing = (turns: ReadonlyArray<ReadonlyArray<Step>>): LanguageModel.LanguageModel => {
  const rest = turns.values()
  const source = (steps: IterableIterator<Step>): ReadableStream<Step> =>
    new ReadableStream<Step>({
      async pull(controller) {
        const { done, value } = steps.next()
        if (done === true) return controller.close()
        if (!(value instanceof Promise)) return controller.enqueue(value)
        await value
        return this.pull?.(controller)
      }
    })
  return {
    provider: "played",
    modelId: "by-hand",
    answer: () => {
      const { value } = rest.next()
      return Effect.succeed({
        source: source((value ?? saying("There is no turn left.")).values()),
        // The source holds nothing but parts.
        normalize: element => element as ModelPart.ModelPart
      })
    }
  }
}

/** Tools, and what a test does with them. */
const playedTools = () => {
  const halfDone = latch()
  const done = latch()
  const deleted: Array<string> = []
  const research = Tool.make("research", {
    input: Schema.Struct({ topic: Schema.String }),
    background: { enabled: true },
    execute: Effect.fn(function* ({ topic }, { write }) {
      yield* write({ progress: 0.25, note: "Reading" })
      yield* Effect.promise(() => halfDone.wait)
      yield* write({ progress: 0.75, note: "Writing" })
      yield* Effect.promise(() => done.wait)
      return { finding: `Much about ${topic}` }
    })
  })
  const deleteReports = Tool.make("delete_reports", {
    input: Schema.Struct({ folder: Schema.String }),
    requireApproval: true,
    execute: ({ folder }) =>
      Effect.sync(() => {
        deleted.push(folder)
        return `${folder} is gone.`
      })
  })
  return { tools: [research, deleteReports], halfDone, done, deleted }
}

const stores = Layer.mergeAll(ThreadStore.layerMemory, TaskStore.layerMemory, RunStore.layerMemory)
const tasks = Layer.provideMerge(BackgroundTasks.layer({ progressInterval: "100 millis" }), stores)

/** A server of the page whose agent answers with these turns, until the test is over. */
const served = async (turns: ReadonlyArray<ReadonlyArray<Step>>) => {
  const played = playedTools()
  const guide = Agent.make({ id: "guide", model: playing(turns), tools: played.tools })
  const server: Server = createServer()
  const node = NodeHttpServer.layer(() => server, { port: 0, host: "127.0.0.1" })
  const serving = Layer.scopedDiscard(
    Effect.flatMap(app({ guide }), routes => HttpServer.serveEffect(routes))
  ).pipe(Layer.provide(tasks), Layer.provideMerge(node))
  const scope = Effect.runSync(Scope.make())
  const context = await Effect.runPromise(Layer.buildWithScope(serving, scope))
  onTestFinished(async () => {
    played.halfDone.open()
    played.done.open()
    server.closeAllConnections()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })
  const url = await Effect.runPromise(
    Effect.provide(
      HttpServer.addressFormattedWith(address => Effect.succeed(address)),
      context
    )
  )
  return { ...played, server, url }
}

export const approve = (page: Page) => page.getByRole("button", { name: "Approve Delete reports" })
export const decline = (page: Page) => page.getByRole("button", { name: "Decline Delete reports" })
export const cancelTask = (page: Page) => page.getByRole("button", { name: "Cancel Research" })
export const card = (page: Page, name: string) => page.getByRole("article", { name })

export const askToDelete = calling("That needs a yes.", "delete_reports", { folder: "old" })
export const lookUp = calling("I look it up.", "research", { topic: "tides" })

type ContextOptions = Parameters<Browser["newContext"]>[0]

/** A context of the browser, and what went wrong in its tabs: `trouble` has to be empty at the end. */
const visitor = async (browser: Browser, options: ContextOptions = {}) => {
  // Nothing moves: a machine that paints for nobody has other things to do.
  const still = { viewport: { width: 1200, height: 800 }, reducedMotion: "reduce" } as const
  const context = await browser.newContext({ ...still, ...options })
  context.setDefaultTimeout(10_000)
  const trouble: Array<string> = []
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", ({ blockedURI, effectiveDirective }) => {
      console.error(`CSP: ${effectiveDirective} ${blockedURI}`)
    })
  })
  context.on("console", message => {
    if (message.type() === "error" || message.type() === "warning") trouble.push(message.text())
  })
  context.on("weberror", error => trouble.push(String(error.error())))
  onTestFinished(() => context.close())
  return { context, trouble }
}

/** A tab with the page, which is ready to be used. */
export const openTab = async (context: BrowserContext, url: string): Promise<Page> => {
  const page = await context.newPage()
  await page.goto(url, { waitUntil: "commit" })
  await ready(page)
  return page
}

/** The page has read what is stored. */
export const ready = (page: Page): Promise<unknown> =>
  page.waitForSelector('body[data-state]:not([data-state="loading"])')

export const say = async (page: Page, words: string): Promise<void> => {
  await page.fill("#message", words)
  await page.press("#message", "Enter")
}

export const sees = (page: Page, words: string): Promise<void> =>
  page.getByText(words, { exact: false }).first().waitFor()

/** No turn is going on, and no response is being read. */
export const atRest = (page: Page): Promise<unknown> => page.waitForSelector('body[data-state="idle"]')

/** The turn is over, and the response is still read: something runs in the background. */
export const waitsForTasks = (page: Page): Promise<unknown> =>
  page.waitForSelector('body[data-state="reading"]')

/** The response is over, and tasks are watched that it has left. */
export const watchesTasks = (page: Page): Promise<unknown> =>
  page.waitForSelector('body[data-state="watching"]')

/** All that the conversation says, as it is seen. */
export const conversation = (page: Page): Promise<string> =>
  page.locator("#entries").evaluate(list => (list instanceof HTMLElement ? list.outerText : ""))

/** How often the conversation says it. */
export const count = async (page: Page, words: string): Promise<number> =>
  (await conversation(page)).split(words).length - 1

/** Network errors are told in the console whatever a page does about them. */
export const expectNoTrouble = (trouble: ReadonlyArray<string>, isNetworkBroken = false): void =>
  expect(trouble.filter(text => !(isNetworkBroken && text.includes("net::ERR")))).toEqual([])

/** Begins a visit: a server whose agent answers with these turns, and a tab with its page. One browser for all of a file. */
export const useVisits = () => {
  const browser = useBrowser()
  return async (turns: ReadonlyArray<ReadonlyArray<Step>>, options: ContextOptions = {}) => {
    const server = await served(turns)
    const { context, trouble } = await visitor(browser.get(), options)
    return { ...server, context, page: await openTab(context, server.url), trouble }
  }
}
