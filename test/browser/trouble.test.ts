/** The page of example 22 where something is in the way: impatient hands, a browser that keeps nothing, a server that forgot. */
import type { Page } from "playwright-core"
import { describe, expect, it } from "vitest"
import { latch } from "../support/readers.js"
import {
  approve,
  askToDelete,
  atRest,
  cancelTask,
  card,
  conversation,
  count,
  expectNoTrouble,
  isWanted,
  lookUp,
  openTab,
  say,
  saying,
  sayingInTwo,
  sees,
  useVisits,
  waitsForTasks
} from "./kit.js"

/** Two clicks before the page can draw anything between them. */
const clickTwice = (page: Page, selector: string): Promise<void> =>
  page.locator(selector).evaluate(button => {
    if (!(button instanceof HTMLElement)) throw new Error("There is nothing to click.")
    button.click()
    button.click()
  })

const ask = (page: Page, path: string, how: RequestInit = {}): Promise<number> =>
  fetch(new URL(path, page.url()), how).then(async response => {
    await response.arrayBuffer()
    return response.status
  })

const threadOf = (page: Page): string => new URL(page.url()).searchParams.get("thread") ?? ""

describe.skipIf(!isWanted)("the page in trouble", { timeout: 60_000 }, () => {
  const start = useVisits()

  it("sends a suggestion once, however often it is clicked", async () => {
    const { page, trouble } = await start([saying("An eddy turns."), saying("Once more.")])
    await clickTwice(page, '[data-say="Explain what an eddy is"]')
    await sees(page, "An eddy turns.")
    await atRest(page)
    await page.reload()
    await atRest(page)
    expect(await count(page, "Explain what an eddy is")).toBe(1)
    expectNoTrouble(trouble)
  })

  it("does not complain of a task that was cancelled twice", async () => {
    const { page } = await start([lookUp, saying("I am on it."), saying("Then not.")])
    await say(page, "Look up the tides")
    await waitsForTasks(page)
    await clickTwice(page, '[aria-label="Cancel Research"]')
    await card(page, "Research: Cancelled").waitFor()
    await sees(page, "Then not.")
    await atRest(page)
    expect(await page.locator("#trouble").isVisible()).toBe(false)
  })

  it("lets nobody decide while an answer comes, and everybody afterwards", async () => {
    const middle = latch()
    const { deleted, page, trouble } = await start([
      askToDelete,
      sayingInTwo("Half", middle, " and whole."),
      saying("They are gone.")
    ])
    await say(page, "Delete them")
    await approve(page).waitFor()
    await atRest(page)
    expect(await approve(page).isEnabled()).toBe(true)
    await say(page, "And the weather?")
    await sees(page, "Half")
    expect(await approve(page).isEnabled()).toBe(false)
    middle.open()
    await atRest(page)
    await approve(page).click()
    await sees(page, "They are gone.")
    expect(deleted).toEqual(["old"])
    expectNoTrouble(trouble)
  })

  it.each([
    [
      "keeps nothing",
      () =>
        Object.defineProperty(window, "localStorage", {
          get: () => {
            throw new DOMException("No.", "SecurityError")
          }
        })
    ],
    [
      "has no room",
      () => {
        Storage.prototype.setItem = () => {
          throw new DOMException("Full.", "QuotaExceededError")
        }
      }
    ],
    [
      "has kept what is no JSON",
      () => {
        Storage.prototype.getItem = () => "{"
      }
    ]
  ] as const)("works in a browser that %s", async (_, breakStorage) => {
    const { context, trouble, url } = await start([saying("Here I am.")])
    await context.addInitScript(breakStorage)
    const page = await openTab(context, url)
    await say(page, "Hello")
    await sees(page, "Here I am.")
    await atRest(page)
    const seen = await conversation(page)
    await page.reload()
    await atRest(page)
    expect(await conversation(page)).toBe(seen)
    expect(await page.locator("#trouble").isVisible()).toBe(false)
    expectNoTrouble(trouble)
  })

  it("takes an address without a thread for a new one", async () => {
    const { context, trouble, url } = await start([saying("Here I am.")])
    const page = await openTab(context, `${url}/?thread=`)
    await say(page, "Hello")
    await sees(page, "Here I am.")
    expectNoTrouble(trouble)
  })

  it("says that the server has forgotten the conversation, and begins another", async () => {
    const { page } = await start([saying("Here I am."), saying("Here again.")])
    await say(page, "Hello")
    await sees(page, "Here I am.")
    await atRest(page)
    const path = `/api/memory/threads/${threadOf(page)}?resourceId=visitor`
    expect(await ask(page, path, { method: "DELETE" })).toBe(200)
    await say(page, "Are you there?")
    await sees(page, "Here again.")
    await atRest(page)
    expect(await page.getByRole("alert").textContent()).toMatch(/does not have this conversation any more/)
    expect(await conversation(page)).not.toContain("Here I am.")
    await say(page, "Hello")
    await sees(page, "There is no turn left.")
    expect(await page.locator("#trouble").isVisible()).toBe(false)
  })

  it("shows an answer in its place when the thread has gone on elsewhere", async () => {
    const { page, trouble } = await start([saying("The first."), saying("The second.")])
    await say(page, "One")
    await sees(page, "The first.")
    await atRest(page)
    const body = { messages: "Two", memory: { thread: threadOf(page), resource: "visitor" } }
    const headers = { "content-type": "application/json" }
    const path = "/api/agents/guide/generate"
    expect(await ask(page, path, { method: "POST", headers, body: JSON.stringify(body) })).toBe(200)
    await page.reload()
    await sees(page, "The second.")
    await atRest(page)
    expect(await conversation(page)).toMatch(
      /One\s+Agent:\s+The first\.\s+You:\s+Two\s+Agent:\s+The second\.$/
    )
    expectNoTrouble(trouble)
  })

  it("reads out that an answer was stopped", async () => {
    const never = latch()
    const { page, trouble } = await start([sayingInTwo("On and on", never, " and on")])
    await say(page, "Talk")
    await sees(page, "On and on")
    await page.getByRole("button", { name: "Stop" }).click()
    await atRest(page)
    expect(await page.getByRole("status").textContent()).toBe("You stopped this answer.")
    expectNoTrouble(trouble)
  })

  it("shows focus and progress in the colours of the system, tells tasks apart, and fits 320 pixels", async () => {
    const { halfDone, page, trouble } = await start([lookUp, saying("I am on it.")], {
      forcedColors: "active",
      viewport: { width: 320, height: 568 }
    })
    await say(page, "Look up the tides")
    await waitsForTasks(page)
    await sees(page, "Reading")
    const style = (selector: string, name: string) =>
      page
        .locator(selector)
        .evaluate((element, property) => getComputedStyle(element).getPropertyValue(property), name)
    await page.focus("#message")
    expect(await style(".field", "outline-style")).toBe("solid")
    expect(await style(".field", "outline-color")).not.toBe("rgba(0, 0, 0, 0)")
    const quarter = await page.locator("progress").screenshot()
    halfDone.open()
    await sees(page, "Writing")
    expect((await page.locator("progress").screenshot()).equals(quarter), "progress is seen").toBe(false)
    const described = await cancelTask(page).getAttribute("aria-describedby")
    expect(await page.locator(`#${described}`).textContent()).toContain("tides")
    const [content, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth])
    expect(content).toBeLessThanOrEqual(width ?? 0)
    expectNoTrouble(trouble)
  })

  it("shows some lines of a long message while it is written, and all of it afterwards", async () => {
    const long = "word".repeat(1250)
    const { page, trouble } = await start([saying("That was long.")], {
      viewport: { width: 320, height: 568 }
    })
    const height = () => page.locator("#message").evaluate(({ clientHeight }) => clientHeight)
    const empty = await height()
    await page.fill("#message", long)
    expect(await height()).toBeGreaterThan(empty * 3)
    expect(await height()).toBeLessThan(200)
    await page.press("#message", "Enter")
    await sees(page, "That was long.")
    await atRest(page)
    expect(await height()).toBe(empty)
    expect(await conversation(page)).toContain(long)
    const [content, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth])
    expect(content).toBeLessThanOrEqual(width ?? 0)
    expectNoTrouble(trouble)
  })
})
