import { Contract, dataSlice } from "ethers"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import * as Tour from "../../../src/hosts/cli/dev/Tour.js"
import * as DevService from "../../support/http/DevService.js"
import * as Accessibility from "./Accessibility.js"
import * as Browser from "./Browser.js"

const walletAbi = [
  "function configuration() view returns (tuple(uint8 custody, uint8 threshold, address[] owners, tuple(bytes32 x, bytes32 y)[] passkeys) config, uint64 configNonce)"
]

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

const text = async (id: string) => (await browser.page.locator(`#${id}`).textContent()) ?? ""

/** Presses a button and waits for the page's result. */
const press = async (name: string): Promise<string> => {
  const { page } = browser
  await page.getByRole("button", { name, exact: true }).click()
  await page.locator("#status.good, #status.bad").waitFor()
  return text("status")
}

/** Titles of the requests shown so far, oldest first. */
const exchanges = async () => (await browser.page.locator("#exchange summary").allTextContents()).toReversed()

describe("A passkey in a browser", () => {
  test("a passkey is created on the page that the development stack links to", async () => {
    const { authenticator, page, picture } = browser
    await page.goto(Tour.playground(service.info))
    expect(page.url()).toBe(`http://localhost:${new URL(service.info.baseUrl).port}/playground`)
    expect(await page.locator("#apiKey").inputValue()).toBe(service.info.apiKeys.pro)
    expect(await text("notice")).toBe("")

    expect(await press("Create a passkey")).toBe("The passkey is made.")
    expect(await authenticator.credentials()).toBe(1)
    await picture("1-passkey")
  })

  test("a passkey becomes the only key of an unfunded wallet", async () => {
    const { page, picture } = browser
    await page.getByLabel("Salt", { exact: true }).fill("browser")
    expect(await press("Predict the address")).toMatch(/^The address is 0x[0-9a-fA-F]{40}\.$/)
    expect(await text("deployed")).toBe("no")

    expect(await press("Create the wallet")).toBe("The wallet is created.")
    expect(await text("deployed")).toBe("yes")
    await picture("2-wallet")

    const wallet = await text("address")
    const point = `0x${Buffer.from(await text("publicKey"), "base64")
      .toString("hex")
      .slice(-128)}`
    const { config } = await new Contract(wallet, walletAbi, service.provider).getFunction("configuration")()
    expect({
      custody: config.custody,
      owners: [...config.owners],
      passkeys: config.passkeys.map((key: Readonly<Record<"x" | "y", string>>) => [key.x, key.y])
    }).toEqual({
      custody: 5n,
      owners: [],
      passkeys: [[dataSlice(point, 0, 32), dataSlice(point, 32)]]
    })
    expect(await service.provider.getBalance(wallet)).toBe(0n)
  })

  test("a passkey mints and transfers its tokens, and the page shows the result", async () => {
    const { page, picture } = browser
    const recipient = "0x00000000000000000000000000000000ca57e11a"
    const wallet = await text("address")
    const balance = async (of: string) => BigInt(await service.token.getFunction("balanceOf")(of))

    await page.getByLabel("Amount, in the token's smallest unit").fill("1000")
    expect(await press("Mint the amount to the wallet")).toBe("The operation succeeded.")
    expect(await balance(wallet)).toBe(1000n)

    await page.getByLabel("Recipient").fill(recipient)
    await page.getByLabel("Amount, in the token's smallest unit").fill("250")
    expect(await press("Transfer")).toBe("The operation succeeded.")
    expect(await balance(wallet)).toBe(750n)
    expect(await balance(recipient)).toBe(250n)

    expect(await text("balance")).toBe("750")
    const logs = page.getByRole("table", { name: "Decoded logs" })
    const transfer = logs.getByRole("row").filter({ hasText: "Transfer" })
    expect(await transfer.textContent()).toContain('"value":"250"')
    expect((await exchanges()).filter((title) => /executePasskey|passkeyHash|create/.test(title))).toEqual([
      "POST /create: 200",
      "POST /passkeyHash: 200",
      "POST /executePasskey: 200",
      "POST /passkeyHash: 200",
      "POST /executePasskey: 200"
    ])
    await page
      .locator("#exchange details")
      .filter({ hasText: "executePasskey" })
      .first()
      .locator("summary")
      .click()
    await picture("3-transfer")
  })

  test("the page is accessible: names, labels, contrast, in both schemes and on a phone", async () => {
    const { page, picture } = browser
    for (const colorScheme of ["light", "dark"] as const)
      for (const width of [1024, 360]) {
        await page.emulateMedia({ colorScheme })
        await page.setViewportSize({ width, height: 800 })
        expect(await Accessibility.breaches(page)).toEqual([])
        await picture(`4-${colorScheme}-${width}`)
      }
    await page.emulateMedia({ colorScheme: "light" })
    await page.setViewportSize({ width: 1024, height: 900 })
  })

  test("the accessibility check finds planted breaches", async () => {
    const { page } = browser
    const spoilt = await page.context().newPage()
    await spoilt.goto(Tour.playground(service.info))
    await spoilt.evaluate(`
      document.querySelector('label[for="rpc"]').remove()
      document.querySelector("button").textContent = ""
      document.querySelector("h2").style.color = "#999"
      document.querySelector("main").append(document.createElement("h4"))
      document.querySelector("h4").textContent = "deep"
    `)
    const found = (await Accessibility.breaches(spoilt)).map((breach) => breach.replace(/:.*$/s, ""))
    expect(found.sort()).toEqual([
      "contrast 2.8",
      "heading skips a level",
      "no label",
      "no name",
      "smaller than 24 pixels"
    ])
    await spoilt.close()
  })

  test("the page works by keyboard only, from top to bottom, with visible focus", async () => {
    const path = await Accessibility.walk(browser.page, 19)
    expect(path.map(({ name }) => name)).toEqual([
      "Skip to the content",
      "The script",
      "castellan/passkeys",
      "All endpoints",
      "apiKey",
      "rpc",
      "settings",
      "name",
      "Create a passkey",
      "salt",
      "Predict the address",
      "Create the wallet",
      "token",
      "recipient",
      "amount",
      "Mint the amount to the wallet",
      "Transfer",
      "Decoded logs",
      "POST /read: 200"
    ])
    expect(path.filter(({ inView, outlined }) => !(inView && outlined))).toEqual([])
  })

  test("a passkey signs nothing for an unverified user, and the page says so", async () => {
    const { authenticator, picture } = browser
    const before = (await exchanges()).length
    await authenticator.userIsVerified(false)
    expect(await press("Transfer")).toMatch(/not allowed|timed out/i)
    await authenticator.userIsVerified(true)
    expect(await browser.page.locator("#status").getAttribute("class")).toBe("bad")
    expect((await exchanges()).slice(before).some((title) => title.includes("executePasskey"))).toBe(false)
    await picture("6-refused")
  })

  test("a passkey survives a reload, and the page shows the reason of a refusal", async () => {
    const { page } = browser
    const publicKey = await text("publicKey")
    await page.reload()
    expect(await text("publicKey")).toBe(publicKey)
    await page.goto(Tour.playground(service.info))
    await page.getByLabel("Salt", { exact: true }).fill("browser")
    await page.getByLabel("Amount, in the token's smallest unit").fill("1000000")
    expect(await press("Transfer")).toContain("ERC20InsufficientBalance")
    await page.getByLabel("API key").fill("wrong")
    expect(await press("Predict the address")).toContain("invalid")
  })

  test("the page made no request to another host, and its policy blocked no request", () => {
    expect(browser.complaints.filter((complaint) => !/status of (401|422)/.test(complaint))).toEqual([])
  })
})
