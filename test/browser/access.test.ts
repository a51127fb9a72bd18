/** The page of example 22 for everybody: with a keyboard, in the dark, on a phone, and for whoever tries to put markup into it. */
import type { Page } from "playwright-core"
import { describe, expect, it } from "vitest"
import {
  approve,
  askToDelete,
  atRest,
  calling,
  conversation,
  expectNoTrouble,
  isWanted,
  lookUp,
  say,
  saying,
  sees,
  useVisits,
  waitsForTasks
} from "./kit.js"

describe.skipIf(!isWanted)("the page for everybody", { timeout: 60_000 }, () => {
  const start = useVisits()

  it("is used with a keyboard alone", async () => {
    const { deleted, page, trouble } = await start([
      askToDelete,
      saying("They are gone."),
      saying("At your service.")
    ])
    const { keyboard } = page
    const focused = () =>
      page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.id)
    expect(await focused()).toBe("message")
    await keyboard.type("Delete")
    await keyboard.press("Shift+Enter")
    await keyboard.type("them")
    expect(await page.inputValue("#message")).toBe("Delete\nthem")
    await keyboard.press("Enter")
    await approve(page).waitFor()
    await atRest(page)
    expect(await page.textContent("#announcer")).toContain("needs your approval")
    await keyboard.press("Shift+Tab")
    expect(await focused()).toBe("Decline Delete reports")
    await keyboard.press("Shift+Tab")
    expect(await focused()).toBe("Approve Delete reports")
    const outline = await page.evaluate(
      () => getComputedStyle(document.activeElement ?? document.body).outlineWidth
    )
    expect(Number.parseFloat(outline)).toBeGreaterThanOrEqual(2)
    await keyboard.press("Enter")
    await sees(page, "They are gone.")
    await atRest(page)
    expect(deleted).toEqual(["old"])
    expect(await focused()).toBe("Delete reports: Done")
    await keyboard.press("Tab")
    expect(await focused()).toBe("message")
    await keyboard.type("Thanks")
    await keyboard.press("Enter")
    await sees(page, "At your service.")
    expectNoTrouble(trouble)
  })

  it("keeps markup a text, whoever says it", async () => {
    const markup = '<img src=x onerror="window.isOwned=true"><b>bold</b>'
    const { done, halfDone, page, trouble } = await start([
      calling(`Said ${markup}`, "research", { topic: markup, "<i>name</i>": markup }),
      saying("On it."),
      saying("Done with it.")
    ])
    await say(page, `Hear ${markup}`)
    await sees(page, "On it.")
    halfDone.open()
    done.open()
    await sees(page, "Done with it.")
    await atRest(page)
    await page.reload()
    await atRest(page)
    expect(await page.locator("#entries :is(img, b, i)").count()).toBe(0)
    expect(await page.evaluate(() => "isOwned" in window)).toBe(false)
    for (const words of [`Hear ${markup}`, `Said ${markup}`, `Much about ${markup}`]) {
      expect(await conversation(page)).toContain(words)
    }
    expectNoTrouble(trouble)
  })

  it("is readable in the light and in the dark, fits a phone, and does not move where that is not wanted", async () => {
    const long = `a${"very".repeat(40)}longword`
    const { page, trouble } = await start([lookUp, saying(long), askToDelete], {
      viewport: { width: 360, height: 640 }
    })
    const readable = async () => {
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme })
        expect(await faintTexts(page), colorScheme).toEqual([])
      }
    }
    await readable()
    await say(page, "Look up the tides")
    await waitsForTasks(page)
    await say(page, `Delete ${long}`)
    await approve(page).waitFor()
    await page.getByRole("button", { name: "Time line" }).click()
    await page.locator("#lines li").first().waitFor()
    await readable()
    const [content, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth])
    expect(content).toBeLessThanOrEqual(width ?? 0)
    expect(await page.evaluate(() => document.getAnimations().length)).toBe(0)
    expectNoTrouble(trouble)
  })
})

/** Texts that are seen with a contrast below 4.5, and how much they have. */
const faintTexts = (page: Page): Promise<ReadonlyArray<string>> =>
  page.evaluate(() => {
    const channels = (colour: string) => (colour.match(/[\d.]+/g) ?? []).map(Number)
    const brightness = (colour: string) => {
      const [red = 0, green = 0, blue = 0] = channels(colour).map(value => {
        const part = value / 255
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
      })
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
    const ground = (element: Element | null): string => {
      if (element === null) return "rgb(255, 255, 255)"
      const { backgroundColor } = getComputedStyle(element)
      return channels(backgroundColor)[3] === 0 ? ground(element.parentElement) : backgroundColor
    }
    const isShown = (element: Element) =>
      element.checkVisibility() && element.closest(".unseen, :disabled") === null
    const hasText = (element: Element) =>
      Array.from(element.childNodes).some(
        ({ nodeType, textContent }) => nodeType === 3 && textContent?.trim() !== ""
      )
    return Array.from(document.body.querySelectorAll("*"))
      .filter(element => isShown(element) && hasText(element))
      .flatMap(element => {
        const [light = 0, dark = 0] = [getComputedStyle(element).color, ground(element)]
          .map(brightness)
          .sort((a, b) => b - a)
        const contrast = (light + 0.05) / (dark + 0.05)
        return contrast < 4.5 ? [`${element.textContent}: ${contrast.toFixed(2)}`] : []
      })
  })
