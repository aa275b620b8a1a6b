import { computeAddress } from "ethers"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { devKeys } from "../../../src/hosts/cli/dev/DevKeys.js"
import * as DevService from "../../support/http/DevService.js"
import * as Port from "../../support/process/Port.js"
import * as Accessibility from "./Accessibility.js"
import * as Browser from "./Browser.js"

const token = "an operator's token of the console"
const recipient = "0x000000000000000000000000000000000000dEaD"

let service: DevService.DevService
let browser: Browser.Browser
let console_: string

beforeAll(async () => {
  service = await Port.withFree((port) => {
    console_ = `http://127.0.0.1:${port}`
    return DevService.start({
      // No automatic fee bump during a test.
      network: { bumpAfterMillis: 3_600_000 },
      config: { admin: { port, token } }
    })
  })
  const [wallet] = await service.create("console")
  await (await service.token.getFunction("mint")(wallet, 100n)).wait()
  browser = await Browser.start()
}, 120_000)

afterAll(async () => {
  await browser?.stop()
  await service?.stop()
})

const transfer = () =>
  service.ask<DevService.TransactionResult>("/execute", {
    operations: [
      {
        salt: "console",
        walletCustody: 0,
        to: service.info.token,
        funcSignature: "transfer(address,uint256)",
        funcParams: [recipient, "1"]
      }
    ],
    settings: service.info.settings
  })

const heading = () => browser.page.locator("h1").textContent()

const open = async (section: string) => {
  await browser.page.getByRole("navigation").getByRole("link", { name: section }).click()
  expect(await heading()).toBe(section)
}

const isSound = async () => expect(await Accessibility.breaches(browser.page)).toEqual([])

describe("the operator's console in a browser", () => {
  test("requires the token, and refuses a wrong one", async () => {
    const { page, picture } = browser
    await page.goto(console_)
    expect(await heading()).toBe("Sign in")
    await isSound()
    await page.keyboard.type("another token")
    await page.keyboard.press("Enter")
    await page.getByRole("alert").waitFor()
    expect(await page.getByRole("alert").textContent()).toBe("This is not the operator's token.")
    await picture("console-sign-in")
    await page.getByLabel("The operator's token").fill(token)
    await page.keyboard.press("Enter")
    await page.getByRole("navigation").waitFor()
    expect(await heading()).toBe("Overview")
  })

  test("shows the chain, the EOA and the executed operations", async () => {
    const { page, picture } = browser
    expect((await transfer()).status).toBe(200)
    await open("Overview")
    expect(await page.getByRole("region", { name: "Chains" }).textContent()).toContain(
      String(service.info.chainId)
    )
    expect(await page.getByRole("region", { name: /^Requests since/ }).textContent()).toContain("/execute")
    await isSound()
    await picture("console-overview")
    await open("Requests")
    await isSound()
    await picture("console-requests")
    await page.getByRole("region").getByRole("row").nth(1).getByRole("link").click()
    expect(await heading()).toBe("Request")
    expect(await page.locator("main").textContent()).toContain("settled, succeeded")
    expect(await page.locator("pre").textContent()).toContain('"status": 1')
    await isSound()
    await picture("console-request")
    await open("Audit")
    expect(await page.getByRole("row").count()).toBeGreaterThan(4)
    await isSound()
    await open("Budgets")
    await isSound()
  })

  test("pauses an account, which stops its writes, and resumes it", async () => {
    const { page, picture } = browser
    await open("Accounts")
    await page.getByRole("button", { name: "pause account enterprise" }).click()
    expect(await page.getByRole("status").textContent()).toContain("Paused")
    await isSound()
    await picture("console-accounts")
    const resume = page
      .getByRole("region", { name: "Accounts" })
      .getByRole("button", { name: "resume account enterprise" })
    expect(await resume.count()).toBe(1)
    await expect.poll(async () => (await transfer()).status, { timeout: 10_000 }).not.toBe(200)
    await resume.click()
    expect(await page.getByRole("status").textContent()).toContain("Resumed")
    await expect.poll(async () => (await transfer()).status, { timeout: 10_000 }).toBe(200)
  })

  test("shows a waiting transaction and its new prices without sending one", async () => {
    const { page, picture } = browser
    const signer = computeAddress(devKeys.signer.privateKey)
    await service.provider.send("evm_setAutomine", [false])
    try {
      const answer = transfer()
      await expect
        .poll(
          async () => {
            await open("Lanes")
            return page.getByRole("link", { name: signer, exact: false }).count()
          },
          { timeout: 20_000 }
        )
        .toBe(1)
      await isSound()
      await picture("console-lanes")
      await page.getByRole("link", { name: signer, exact: false }).click()
      expect(await heading()).toBe("Lane")
      await isSound()
      await page.getByRole("button", { name: "See what new prices would be" }).click()
      expect(await heading()).toBe("New prices: dry run")
      expect(await page.locator("main").textContent()).toContain("no transaction was sent")
      await isSound()
      await picture("console-dry-run")
      await service.provider.send("evm_mine", [])
      expect((await answer).status).toBe(200)
    } finally {
      await service.provider.send("evm_setAutomine", [true])
    }
  })

  test("works by keyboard only, and in a dark colour scheme", async () => {
    const { complaints, page, picture } = browser
    await open("Accounts")
    const path = await Accessibility.walk(page, 8)
    expect(path[0]?.name).toBe("Skip to the content")
    expect(path.every(({ inView, outlined }) => inView && outlined)).toBe(true)
    await page.emulateMedia({ colorScheme: "dark" })
    await isSound()
    await picture("console-dark")
    await page.setViewportSize({ width: 380, height: 800 })
    await isSound()
    await picture("console-narrow")
    await page.getByRole("button", { name: "Sign out" }).click()
    expect(await heading()).toBe("Sign in")
    // Expected refusals are not complaints.
    expect(complaints.filter((text) => !text.includes("401"))).toEqual([])
  })
})
