import { describe, expect, test } from "vitest"
import * as DevService from "../../support/http/DevService.js"
import { use } from "../../support/Use.js"
import * as Accessibility from "./Accessibility.js"
import * as Browser from "./Browser.js"

const service = use(DevService.start)
const browser = use(Browser.start)

/** The page as a first visitor sees it. */
const open = async () => {
  const { page } = browser
  await page.goto("about:blank")
  await page.goto(`http://localhost:${new URL(service.info.baseUrl).port}/docs`)
  await page.locator(".opblock-tag").first().waitFor()
}

const openGroups = async () => {
  for (const group of await browser.page.locator(".opblock-tag").all()) await group.click()
}

/** Opens an operation, sends its example, and returns the status and body shown. */
const tryOut = async (name: string): Promise<{ readonly status: string; readonly body: string }> => {
  const operation = browser.page.locator(`[id$="-${name}"].opblock`)
  await operation.locator(".opblock-summary-control").click()
  await operation.getByRole("button", { name: "Try it out" }).click()
  await operation.getByRole("button", { name: "Execute", exact: true }).click()
  const live = operation.locator(".live-responses-table .response")
  await live.locator(".response-col_status").waitFor()
  return {
    status: ((await live.locator(".response-col_status").textContent()) ?? "").trim().slice(0, 3),
    body: (await live.locator(".highlight-code").first().textContent()) ?? ""
  }
}

describe("The page of the interface in a browser", () => {
  test("shows every operation of the document under the service's own policy, without other hosts", async () => {
    const { complaints, page } = browser
    await open()
    expect(await page.locator(".opblock").count()).toBe(0)
    await openGroups()
    const document = (await (await fetch(`${service.info.baseUrl}/openapi.json`)).json()) as {
      readonly paths: Readonly<Record<string, object>>
    }
    const operations = Object.values(document.paths).flatMap((methods) => Object.keys(methods))
    expect(await page.locator(".opblock").count()).toBe(operations.length)
    const groups = page.locator(".opblock-tag-section")
    const title = `${operations.length} operations in ${await groups.count()} groups`
    expect(await page.getByRole("heading", { name: title }).isVisible()).toBe(true)
    for (const group of await groups.all()) {
      const own = await group.locator(".opblock").count()
      expect(await group.locator(".opblock-tag small").textContent()).toMatch(
        new RegExp(` ${own} operations?\\.$`)
      )
    }
    await page.locator("summary", { hasText: "Writing once" }).click()
    expect(await page.getByText("Choose a new key for each action").isVisible()).toBe(true)
    expect(complaints).toEqual([])
  })

  test("sends a request with the entered key only", async () => {
    const { complaints, page } = browser
    const enter = async (key: string) => {
      await page.getByRole("button", { name: "Authorize" }).first().click()
      const dialog = page.locator(".dialog-ux")
      await dialog.locator("input").fill(key)
      await dialog.getByRole("button", { name: "Apply credentials" }).click()
      await dialog.getByRole("button", { name: "Close" }).click()
    }
    await enter(service.info.apiKeys.pro)
    const answered = await tryOut("listNetworks")
    expect(answered.status).toBe("200")
    expect(answered.body).toContain("chainId")
    expect(complaints).toEqual([])
    // A key lasts as long as the page.
    await open()
    await openGroups()
    await enter("an unknown key")
    expect((await tryOut("listNetworks")).status).toBe("401")
  })

  // Axe reads an open page of some thousand elements four times.
  test("axe reports no problem, with groups closed and open, in both schemes, wide and on a phone", async () => {
    const { inEveryForm, page } = browser
    await open()
    const isSound = () =>
      inEveryForm(async (form) => {
        expect([form, ...(await Accessibility.violations(page))]).toEqual([form])
      })
    await isSound()
    await openGroups()
    for (const chapter of await page.locator(".info summary").all()) await chapter.click()
    await tryOut("execute")
    await isSound()
  }, 180_000)
})
