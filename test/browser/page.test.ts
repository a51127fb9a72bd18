/** The page of example 22, as a visitor sees it. */
import type { Page, Route } from "playwright-core"
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
  decline,
  expectNoTrouble,
  isWanted,
  lookUp,
  openTab,
  ready,
  type Step,
  say,
  saying,
  sayingInTwo,
  sees,
  useVisits,
  waitsForTasks,
  watchesTasks
} from "./kit.js"

describe.skipIf(!isWanted)("the page", { timeout: 60_000 }, () => {
  const start = useVisits()

  it("shows text while it comes, and keeps it", async () => {
    const middle = latch()
    const { page, trouble } = await start([sayingInTwo("The first half,", middle, " and the second.")])
    await page.getByRole("button", { name: "Explain an eddy" }).click()
    await sees(page, "The first half,")
    expect(await conversation(page)).not.toContain("second")
    expect(await page.getByRole("button", { name: "Stop" }).isVisible()).toBe(true)
    middle.open()
    await sees(page, "The first half, and the second.")
    await atRest(page)
    expect(await count(page, "Explain what an eddy is")).toBe(1)
    expect(await page.getByRole("button", { name: "Stop" }).isVisible()).toBe(false)
    await expect(page.locator("#lines li").allTextContents()).resolves.toEqual([
      "0start",
      "1step-start",
      "2text-start",
      "3text-delta× 2",
      "5text-end",
      "6step-finishstop",
      "7finishstop"
    ])
    expectNoTrouble(trouble)
  })

  it("shows a task as it goes on, and the answer to it in the same response", async () => {
    const { done, halfDone, page, trouble } = await start([
      lookUp,
      saying("I am on it."),
      saying("There is much.")
    ])
    await say(page, "Look up the tides")
    await card(page, "Research: Running").waitFor()
    await sees(page, "I am on it.")
    await waitsForTasks(page)
    const progress = page.getByRole("progressbar", { name: "Progress of Research" })
    await sees(page, "Reading")
    expect(await progress.getAttribute("value")).toBe("0.25")
    halfDone.open()
    await sees(page, "Writing")
    expect(await progress.getAttribute("value")).toBe("0.75")
    await sees(page, "One task is running.")
    done.open()
    await card(page, "Research: Done").waitFor()
    await sees(page, "Much about tides")
    await sees(page, "There is much.")
    await atRest(page)
    expect(await progress.count()).toBe(0)
    expectNoTrouble(trouble)
  })

  it("goes on talking while a task runs", async () => {
    const { done, halfDone, page, trouble } = await start([
      lookUp,
      saying("I am on it."),
      saying("It is a fine day."),
      saying("There is much.")
    ])
    await say(page, "Look up the tides")
    await waitsForTasks(page)
    await say(page, "How is the weather?")
    await sees(page, "It is a fine day.")
    halfDone.open()
    done.open()
    await sees(page, "There is much.")
    await atRest(page)
    const seen = await conversation(page)
    for (const words of ["I am on it.", "It is a fine day.", "Much about tides", "There is much."]) {
      expect(seen.split(words), words).toHaveLength(2)
    }
    await page.reload()
    await atRest(page)
    expect(await conversation(page)).toBe(seen)
    expectNoTrouble(trouble)
  })

  it("runs a tool that was approved, once, and not one that was declined", async () => {
    const { deleted, page, trouble } = await start([
      askToDelete,
      saying("As you wish."),
      askToDelete,
      saying("They are gone.")
    ])
    await say(page, "Delete them")
    await decline(page).click()
    await card(page, "Delete reports: Declined").waitFor()
    await sees(page, "As you wish.")
    await atRest(page)
    expect(deleted).toEqual([])

    await say(page, "Delete them, please")
    await approve(page).click()
    await card(page, "Delete reports: Done").waitFor()
    await sees(page, "They are gone.")
    await atRest(page)
    expect(deleted).toEqual(["old"])
    const seen = await conversation(page)
    await page.reload()
    await atRest(page)
    expect(await conversation(page)).toBe(seen)
    expectNoTrouble(trouble)
  })

  it("cancels a task", async () => {
    const { page, trouble } = await start([lookUp, saying("I am on it."), saying("Then not.")])
    await say(page, "Look up the tides")
    await waitsForTasks(page)
    await cancelTask(page).click()
    await card(page, "Research: Cancelled").waitFor()
    await sees(page, "Then not.")
    await atRest(page)
    const seen = await conversation(page)
    await page.reload()
    await atRest(page)
    expect(await conversation(page)).toBe(seen)
    expectNoTrouble(trouble)
  })

  it("stops a run, and says so after a reload and later", async () => {
    const never = latch()
    const { page, trouble } = await start([sayingInTwo("On and on", never, " and on"), saying("Yes?")])
    await say(page, "Talk")
    await sees(page, "On and on")
    await page.getByRole("button", { name: "Stop" }).click()
    await sees(page, "You stopped this answer.")
    await atRest(page)
    const seen = await conversation(page)
    await page.reload()
    await atRest(page)
    expect(await conversation(page)).toBe(seen)
    await say(page, "Are you there?")
    await sees(page, "Yes?")
    await atRest(page)
    expect(await conversation(page)).toContain(seen)
    expectNoTrouble(trouble)
  })

  it("says that an answer failed, and not why, and goes on", async () => {
    const failure: Step = { type: "error", error: new Error("sk-123") }
    const { page, trouble } = await start([[failure], saying("Here I am.")])
    await say(page, "Hello")
    await sees(page, "The model could not answer.")
    await atRest(page)
    await say(page, "Hello again")
    await sees(page, "Here I am.")
    await atRest(page)
    const seen = await conversation(page)
    expect(seen).toMatch(/Hello\s+The model could not answer\.\s+You:\s+Hello again\s+Agent:\s+Here I am\./)
    expect(await page.content()).not.toContain("sk-123")
    await page.reload()
    await atRest(page)
    expect(await conversation(page)).toBe(seen)
    expectNoTrouble(trouble)
  })

  it("watches a task to its end when its run was stopped", async () => {
    const never = latch()
    const { done, halfDone, page, trouble } = await start([lookUp, sayingInTwo("I am", never, " on it.")])
    await say(page, "Look up the tides")
    await sees(page, "I am")
    await page.getByRole("button", { name: "Stop" }).click()
    await sees(page, "You stopped this answer.")
    await watchesTasks(page)
    halfDone.open()
    await sees(page, "Writing")
    done.open()
    await card(page, "Research: Done").waitFor()
    await sees(page, "Much about tides")
    await atRest(page)
    expectNoTrouble(trouble)
  })

  describe("loses nothing and doubles nothing", () => {
    type Break = (page: Page, drop: () => void) => Promise<void>

    /** A visit that is interrupted in the middle of a text, of a task, and while a call waits. What is seen at its end. */
    const visit = async (interrupt: Break, isNetworkBroken = false): Promise<string> => {
      const middle = latch()
      const { deleted, done, halfDone, page, server, trouble } = await start([
        lookUp,
        sayingInTwo("I am on it,", middle, " be patient."),
        saying("There is much."),
        askToDelete,
        saying("They are gone.")
      ])
      const broken = () => interrupt(page, () => server.closeAllConnections())
      await say(page, "Look up the tides")
      await sees(page, "I am on it,")
      await broken()
      await sees(page, "I am on it,")
      middle.open()
      await sees(page, "be patient.")
      halfDone.open()
      await sees(page, "Writing")
      await broken()
      await sees(page, "Writing")
      done.open()
      await sees(page, "There is much.")
      await atRest(page)
      await say(page, "Delete them")
      await approve(page).waitFor()
      await atRest(page)
      await broken()
      await approve(page).click()
      await sees(page, "They are gone.")
      await atRest(page)
      expect(deleted).toEqual(["old"])
      expectNoTrouble(trouble, isNetworkBroken)
      const seen = await conversation(page)
      for (const words of [
        "Look up the tides",
        "I look it up.",
        "I am on it, be patient.",
        "Much about tides",
        "There is much.",
        "Delete them",
        "That needs a yes.",
        "They are gone."
      ]) {
        expect(seen.split(words), words).toHaveLength(2)
      }
      return seen
    }

    const whole = visit.bind(undefined, async () => undefined)
    let seen: Promise<string> | undefined
    /** What an uninterrupted visit comes to. */
    const uninterrupted = (): Promise<string> => {
      seen ??= whole()
      return seen
    }

    it("when the page is reloaded", async () => {
      const reloaded = await visit(async page => {
        await page.reload()
        await ready(page)
      })
      expect(reloaded).toBe(await uninterrupted())
    })

    it("when the server drops every connection", async () => {
      expect(await visit(async (_, drop) => drop(), true)).toBe(await uninterrupted())
    })

    it("when the network is gone for a while, and says so", async () => {
      const { page, trouble, context } = await start([saying("One."), saying("Two.")])
      await say(page, "First")
      await sees(page, "One.")
      await atRest(page)
      await context.setOffline(true)
      await say(page, "Second")
      await page.getByText("Connection lost. Trying again…").waitFor()
      expect(await count(page, "Second")).toBe(1)
      await context.setOffline(false)
      await sees(page, "Two.")
      await page.getByText("Connected", { exact: true }).waitFor()
      await atRest(page)
      expect(await count(page, "Second")).toBe(1)
      expect(await count(page, "Two.")).toBe(1)
      expectNoTrouble(trouble, true)
    })

    it("when what was asked arrives, and its answer gets lost", async () => {
      const { deleted, page, trouble } = await start([askToDelete, saying("They are gone.")])
      for (const path of ["stream-until-idle", "approve-tool-call"]) {
        const lose = async (route: Route) => {
          await route.fetch()
          await route.abort()
        }
        await page.route(`**/${path}`, lose, { times: 1 })
      }
      await say(page, "Delete them")
      await approve(page).click()
      await sees(page, "They are gone.")
      await atRest(page)
      expect(await count(page, "Delete them")).toBe(1)
      expect(await count(page, "That needs a yes.")).toBe(1)
      expect(deleted).toEqual(["old"])
      expect(trouble.filter(text => !/net::ERR|409|404/.test(text))).toEqual([])
    })

    it("in two tabs of one thread", async () => {
      const middle = latch()
      const { context, deleted, page, trouble } = await start([
        sayingInTwo("Half", middle, " and whole."),
        askToDelete,
        saying("They are gone.")
      ])
      const other = await openTab(context, page.url())
      await say(page, "Hello")
      await sees(other, "Half")
      middle.open()
      await sees(other, "Half and whole.")
      await atRest(other)
      await say(other, "Delete them")
      await approve(other).waitFor()
      // A tab behind another one gets few frames, and is slow to be clicked.
      await page.bringToFront()
      await approve(page).click()
      for (const tab of [page, other]) {
        await tab.bringToFront()
        await sees(tab, "They are gone.")
        await atRest(tab)
        expect(await approve(tab).isVisible()).toBe(false)
      }
      expect(await conversation(other)).toBe(await conversation(page))
      expect(deleted).toEqual(["old"])
      expectNoTrouble(trouble)
    })
  })
})
