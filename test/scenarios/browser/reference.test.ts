import { afterAll, beforeAll, describe, expect, test } from "vitest"
import * as DevService from "../../support/http/DevService.js"
import * as Browser from "./Browser.js"

let service: DevService.DevService
let browser: Browser.Browser

beforeAll(async () => {
  service = await DevService.start()
  browser = await Browser.start()
})

afterAll(async () => {
  await browser?.stop()
  await service?.stop()
})

/** The page as a first visitor sees it. */
const open = async () => {
  const { page } = browser
  await page.goto("about:blank")
  await page.goto(`http://localhost:${new URL(service.info.baseUrl).port}/docs`)
  await page.locator(".opblock").first().waitFor()
}

/** Opens an operation, sends its example, and returns the status and body shown. */
const tryOut = async (name: string): Promise<{ readonly status: string; readonly body: string }> => {
  const operation = browser.page.locator(`[id$="-${name}"].opblock`)
  await operation.locator(".opblock-summary-control").click()
  await operation.getByRole("button", { name: "Try it out" }).click()
  await operation.getByRole("button", { name: "Execute" }).click()
  const live = operation.locator(".live-responses-table .response")
  await live.locator(".response-col_status").waitFor()
  return {
    status: ((await live.locator(".response-col_status").textContent()) ?? "").trim().slice(0, 3),
    body: (await live.locator(".highlight-code").first().textContent()) ?? ""
  }
}

describe("The page of the interface in a browser", () => {
  test("shows every operation of the document under the service's own policy, without other hosts", async () => {
    const { complaints, page, picture } = browser
    await open()
    const document = (await (await fetch(`${service.info.baseUrl}/openapi.json`)).json()) as {
      readonly paths: Readonly<Record<string, object>>
    }
    const operations = Object.values(document.paths).flatMap((methods) => Object.keys(methods))
    expect(await page.locator(".opblock").count()).toBe(operations.length)
    expect(await page.getByRole("heading", { name: "Writing once" }).count()).toBe(1)
    expect(complaints).toEqual([])
    await picture("reference")
  })

  test("sends a request with the entered key only", async () => {
    const { complaints, page, picture } = browser
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
    await picture("reference-answer")
    // A key lasts as long as the page.
    await open()
    await enter("a key that nobody has issued")
    expect((await tryOut("listNetworks")).status).toBe("401")
  })
})
