import { Wallet } from "ethers"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { devKeys } from "../../../src/hosts/cli/dev/DevKeys.js"
import * as DevService from "../../support/http/DevService.js"
import * as Port from "../../support/process/Port.js"
import { use } from "../../support/Use.js"
import * as Accessibility from "./Accessibility.js"
import * as Browser from "./Browser.js"

const token = "an operator's token of the console"
const recipient = "0x000000000000000000000000000000000000dEaD"

let service: DevService.DevService
const browser = use(Browser.start, 120_000)
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
}, 120_000)

afterAll(async () => {
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
  await browser.page.getByRole("navigation", { name: "Console" }).getByRole("link", { name: section }).click()
  if (section !== "Overview") expect(await heading()).toBe(section)
}

const isSound = async () => {
  // Its style sheet has arrived.
  await browser.page.waitForLoadState("load")
  expect(await Accessibility.breaches(browser.page)).toEqual([])
  const overflow = await browser.page.evaluate<number>("document.documentElement.scrollWidth - innerWidth")
  expect(overflow).toBeLessThanOrEqual(0)
}

/** Opens the dialog behind a button, gives a reason, and confirms. */
const act = async (button: string, confirm: string) => {
  const { page } = browser
  await page.getByRole("button", { name: button, exact: true }).first().click()
  const dialog = page.getByRole("dialog")
  await dialog.waitFor()
  await isSound()
  await dialog.getByLabel("Reason").fill("a trial of the console")
  await dialog.getByRole("button", { name: confirm }).click()
}

describe("the operator's console in a browser", () => {
  test("requires a token, and refuses a wrong one", async () => {
    const { page } = browser
    await page.goto(console_)
    expect(await heading()).toBe("Sign in")
    await isSound()
    await page.keyboard.type("another token")
    await page.keyboard.press("Enter")
    await page.getByRole("alert").waitFor()
    expect((await page.getByRole("alert").textContent())?.trim()).toBe("No operator has this token.")
    await page.getByLabel("Your operator's token").fill(token)
    await page.keyboard.press("Enter")
    await page.getByRole("navigation", { name: "Console" }).waitFor()
    expect(await heading()).toMatch(/^Money moves/)
  })

  test("shows the chain, and the decoded request with its timeline", async () => {
    const { page } = browser
    const { body, status } = await transfer()
    expect(status).toBe(200)
    await open("Overview")
    await expect.poll(() => page.getByRole("region", { name: "Chains" }).textContent()).toContain("ms")
    await isSound()
    await page.getByRole("region", { name: "Chains" }).getByRole("link", { name: "Development" }).click()
    expect(await heading()).toContain("Development chain")
    await isSound()
    await open("Requests")
    await isSound()
    await page
      .getByRole("link", { name: /^transfer/ })
      .first()
      .click()
    expect(await heading()).toMatch(/^transfer \S+ CTT to 0x0000…dEaD/)
    const main = await page.locator("main").textContent()
    for (const part of ["Accepted", "Included", "Final", "Succeeded", "What moved", "Fees"])
      expect(main).toContain(part)
    await isSound()
    await page.keyboard.press("/")
    await page.keyboard.type(body.txHash)
    await page.keyboard.press("Enter")
    await page.getByRole("region", { name: "Found" }).waitFor()
    expect(await page.getByRole("link", { name: /^transfer/ }).count()).toBe(1)
    await isSound()
    await page.locator("#q").fill("console")
    await page.keyboard.press("Enter")
    await page.getByRole("link", { name: "create wallet console" }).waitFor()
    expect(await page.getByRole("link", { name: /^transfer/ }).count()).toBe(1)
    await open("Audit")
    expect(await page.getByRole("row").count()).toBeGreaterThan(4)
    await isSound()
    await open("Webhooks")
    await isSound()
  })

  test("shows why a request was refused, to the operator and to its caller", async () => {
    const { page } = browser
    const { body, status } = await service.ask<DevService.Envelope>("/execute", {
      operations: [
        {
          salt: "console",
          walletCustody: 0,
          to: service.info.token,
          funcSignature: "transfer(address,uint256)",
          funcParams: [recipient, "1000000"]
        }
      ],
      settings: service.info.settings
    })
    expect([status, body.code]).toEqual([422, "execution_failed"])
    const told = await service.request(body.requestId)
    expect([told.status, told.body.state, told.body.httpStatus]).toEqual([200, "refused", 422])
    expect(told.body.answer).toMatchObject({ code: "execution_failed", error: body.error })
    await open("Overview")
    const failures = page.getByRole("region", { name: "Recent failures" })
    expect(await failures.textContent()).toContain("execution_failed")
    await failures.getByRole("row").nth(1).getByRole("link").click()
    expect(await heading()).toContain("Refused before acceptance")
    await isSound()
  })

  test("pauses an account, which stops its writes, and resumes it", async () => {
    const { page } = browser
    await open("Accounts")
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "enterprise" }) })
    await row.getByRole("button", { name: "Pause…" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.waitFor()
    await isSound()
    await dialog.getByLabel("Reason").fill("a trial of the console")
    await dialog.getByRole("button", { name: "Pause account enterprise" }).click()
    expect(await page.getByRole("status").textContent()).toContain("Paused: from the next second")
    await isSound()
    await expect.poll(async () => (await transfer()).status, { timeout: 10_000 }).not.toBe(200)
    await open("Rules")
    await act("Resume…", "Resume account enterprise")
    await expect.poll(async () => (await transfer()).status, { timeout: 10_000 }).toBe(200)
    await open("Audit")
    const acts = await page.getByRole("region", { name: "Acts of operators" }).textContent()
    for (const part of ["operator", "pause", "resume", "account enterprise", "a trial of the console"])
      expect(acts).toContain(part)
  })

  test("shows a waiting transaction and its new prices without sending one", async () => {
    const { page } = browser
    const { address } = new Wallet(devKeys.signer.privateKey)
    const lane = `${address.slice(0, 6)}…${address.slice(-4)}`
    await service.provider.send("evm_setAutomine", [false])
    try {
      const answer = transfer()
      await expect
        .poll(
          async () => {
            await open("Lanes")
            return page.getByRole("link", { name: lane, exact: false }).count()
          },
          { timeout: 20_000 }
        )
        .toBe(1)
      await isSound()
      await page.getByRole("link", { name: lane, exact: false }).click()
      expect(await heading()).toContain(lane)
      await isSound()
      await page.getByRole("button", { name: "Show new prices" }).click()
      expect(await heading()).toBe("New prices")
      expect(await page.locator("main").textContent()).toContain("Nothing was signed or sent yet.")
      await isSound()
      await act("Unstick…", "Replace")
      expect(await heading()).toBe("Replacements sent")
      await service.provider.send("evm_mine", [])
      expect((await answer).status).toBe(200)
    } finally {
      await service.provider.send("evm_setAutomine", [true])
    }
  })

  test("cancels a request that waits for its time, and revokes a key, each with a reason", async () => {
    const { page } = browser
    const validAfter = Math.floor(Date.now() / 1_000) + 3_600
    const { operations, settings } = service.mint("console", recipient, 1)
    const later = operations.map((operation) => ({ ...operation, validAfter, validUnitl: validAfter + 60 }))
    const { body, status } = await service.ask<DevService.Envelope>(
      "/execute",
      { operations: later, settings },
      { headers: { prefer: "respond-async" } }
    )
    expect(status).toBe(202)
    await page.goto(`${console_}/console/requests/${body.requestId}`)
    await act("Cancel…", "Cancel the request")
    expect(await page.getByRole("status").textContent()).toContain("Cancelled")
    const cancelled = (await service.request(body.requestId)).body
    expect([cancelled.state, cancelled.httpStatus]).toEqual(["final", 422])

    const asked = () => service.ask("/networks", undefined, { method: "GET", key: service.info.apiKeys.free })
    expect((await asked()).status).toBe(200)
    await open("Accounts")
    const row = page.getByRole("region", { name: "API keys" }).getByRole("row").filter({ hasText: "free" })
    await row.getByRole("button", { name: "Revoke…" }).click()
    const dialog = page.getByRole("dialog")
    await dialog.getByLabel("Reason").fill("a trial of the console")
    await dialog.getByLabel("to confirm").fill((await row.locator("code").first().textContent()) ?? "")
    await dialog.getByRole("button", { name: "Revoke" }).click()
    expect(await page.getByRole("status").textContent()).toContain("Revoked")
    await expect.poll(async () => (await asked()).status, { timeout: 10_000 }).toBe(401)
    await open("Audit")
    const acts = await page.getByRole("region", { name: "Acts of operators" }).textContent()
    for (const part of ["cancel", "revoke", "of free", "a trial of the console"]) expect(acts).toContain(part)
  })

  test("refreshes its contents without a reload", async () => {
    const { page } = browser
    await open("Requests")
    const rows = page.getByRole("region", { name: "List" }).getByRole("row")
    const before = await rows.count()
    expect((await transfer()).status).toBe(200)
    await expect.poll(() => rows.count(), { timeout: 20_000 }).toBe(before + 1)
  })

  test("works by keyboard only, in the dark, and on a phone", async () => {
    const { complaints, page } = browser
    await open("Accounts")
    const path = await Accessibility.walk(page, 8)
    expect(path[0]?.name).toBe("Skip to the content")
    expect(path.every(({ inView, outlined }) => inView && outlined)).toBe(true)
    for (const colorScheme of ["light", "dark"] as const)
      for (const width of [1_280, 390]) {
        await page.emulateMedia({ colorScheme })
        await page.setViewportSize({ width, height: 900 })
        for (const section of ["Overview", "Requests", "Lanes", "Rules", "Accounts", "Webhooks", "Audit"]) {
          await open(section)
          await isSound()
        }
        await open("Requests")
        await page
          .getByRole("link", { name: /^transfer/ })
          .first()
          .click()
        await isSound()
        await open("Overview")
        const failures = page.getByRole("region", { name: "Recent failures" })
        await failures.locator("tbody a").first().click()
        await isSound()
        await page.goto(`${console_}/console/runbooks`)
        await isSound()
      }
    await page.getByRole("button", { name: "Sign out" }).last().click()
    expect(await heading()).toBe("Sign in")
    // Expected refusals are not complaints.
    expect(complaints.filter((text) => !text.includes("401"))).toEqual([])
  }, 120_000)
})
