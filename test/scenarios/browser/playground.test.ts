import { Contract, dataSlice } from "ethers"
import { describe, expect, test } from "vitest"
import { playgroundOf } from "../../../src/hosts/cli/dev/DevStack.js"
import * as DevService from "../../support/http/DevService.js"
import { use } from "../../support/Use.js"
import * as Accessibility from "./Accessibility.js"
import * as Browser from "./Browser.js"

const walletAbi = [
  "function configuration() view returns (tuple(uint8 custody, uint8 threshold, address[] owners, tuple(bytes32 x, bytes32 y)[] passkeys) config, uint64 configNonce)"
]

const service = use(DevService.start)
const browser = use(Browser.start)

const balance = async (of: string) => BigInt(await service.token.getFunction("balanceOf")(of))

const text = async (id: string) => (await browser.page.locator(`#${id}`).textContent()) ?? ""

/** Presses a button and waits for the page's result. */
const press = async (step: 1 | 2 | 3): Promise<string> => {
  const { page } = browser
  await page.locator(`#step-${step}`).click()
  await page.locator("#status.good, #status.bad").waitFor({ state: "attached" })
  return text("status")
}

/** Titles of the requests shown so far, oldest first. */
const exchanges = async () => (await browser.page.locator("#exchange summary").allTextContents()).toReversed()

/** Opens the fold of the settings. */
const openSettings = async () => {
  if ((await browser.page.locator("#settings-box[open]").count()) === 0)
    await browser.page.getByText("Service and settings").click()
}

const createdWallet = async () =>
  (await browser.page.locator("#step-2-note code").getAttribute("title")) ?? ""

const recipient = "0x00000000000000000000000000000000ca57e11a"

describe("A passkey in a browser", () => {
  test("the first click creates a passkey on the page that the development stack links to", async () => {
    const { authenticator, page } = browser
    await page.goto(playgroundOf(service.info))
    expect(page.url()).toBe(`http://localhost:${new URL(service.info.baseUrl).port}/playground`)
    expect(await page.locator("#apiKey").inputValue()).toBe(service.info.apiKeys.pro)
    await expect.poll(() => text("service-state")).toBe("Development chain is ready")
    expect(await page.locator("#notice").isVisible()).toBe(false)
    expect(await page.locator("button:disabled").count()).toBe(2)
    expect(await press(1)).toBe("The passkey is created.")
    expect(await authenticator.credentials()).toBe(1)
  })

  test("the second click creates a wallet with tokens, and the passkey is its only key", async () => {
    const { page } = browser
    expect(await press(2)).toBe("The wallet is created.")

    const wallet = await createdWallet()
    const key = (await page.locator("#publicKey").getAttribute("title")) ?? ""
    const point = `0x${Buffer.from(key, "base64").toString("hex").slice(-128)}`
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
    expect(await balance(wallet)).toBe(1000n)
  })

  test("the third click transfers tokens, and the page shows sender, amount and recipient", async () => {
    const { page } = browser
    await openSettings()
    await page.getByLabel("Recipient").fill(recipient)
    expect(await press(3)).toBe("The transfer succeeded.")
    expect(await balance(recipient)).toBe(250n)
    expect(await balance(await createdWallet())).toBe(750n)

    expect(await page.getByRole("heading", { level: 1 }).textContent()).toBe("Your wallet sent 250 tokens")
    expect(await text("result-gas")).toMatch(/^[0-9,]+ gas, paid by the sponsor$/)
    expect(await page.locator(".flow").textContent()).toMatch(/^0x.*→250 tokens→to0x0000…e11[aA]$/)
    const transfer = page.locator(".log div").filter({ hasText: "Transfer" })
    expect(await transfer.textContent()).toContain("value 250")
    expect(await exchanges()).toEqual([
      "POST /create: 200",
      "POST /transactSigner: 200",
      "POST /passkeyHash: 200",
      "POST /executePasskey: 200"
    ])
    await page.getByText("Requests and answers").click()
    await page.locator("#exchange summary").first().click()
  })

  test("the page is accessible, in both schemes, on a wide screen and on a phone", async () => {
    const { inEveryForm, page } = browser
    await inEveryForm(async () => {
      expect(await Accessibility.breaches(page)).toEqual([])
      expect(await Accessibility.violations(page)).toEqual([])
    })
  })

  test("the accessibility checks find planted breaches", async () => {
    const { page } = browser
    const spoilt = await page.context().newPage()
    await spoilt.goto(playgroundOf(service.info))
    await spoilt.evaluate(`
      document.getElementById("settings-box").open = true
      document.querySelector('label[for="rpc"]').remove()
      document.querySelector("button").textContent = ""
      document.querySelector("h2").style.color = "#999"
      document.querySelector("main").append(document.createElement("h4"))
      document.querySelector("h4").textContent = "deep"
    `)
    const found = (await Accessibility.breaches(spoilt)).map((breach) => breach.replace(/:.*$/s, ""))
    expect(found.sort()).toEqual(["contrast 2.8", "heading skips a level", "no label", "no name"])
    const violations = (await Accessibility.violations(spoilt)).map((line) => line.replace(/ \(.*$/s, ""))
    expect(violations).toEqual(
      expect.arrayContaining(["critical: button-name", "serious: color-contrast", "critical: label"])
    )
    await spoilt.close()
  })

  test("the page works by keyboard only, from top to bottom, with visible focus", async () => {
    const path = await Accessibility.walk(browser.page, 13)
    expect(path.map(({ name }) => name.replace(/0x\w+…\w+/, "0x"))).toEqual([
      "Skip to the content",
      "All endpoints",
      "step-1",
      "step-2",
      "Copy the wallet 0x",
      "step-3",
      "Copy the recipient 0x",
      "Copy the wallet 0x",
      "Copy the recipient 0x",
      "Copy the transaction 0x",
      // prose-ignore-next the-same-of: the label of the page
      "The same in your page: two calls of cast",
      "Requests and answers 4, the newest first",
      "POST /executePasskey: 200"
    ])
    expect(path.filter(({ inView, outlined }) => !(inView && outlined))).toEqual([])
  })

  test("a passkey signs nothing for an unverified user, and the page reports it", async () => {
    const { authenticator } = browser
    const before = (await exchanges()).length
    await authenticator.userIsVerified(false)
    expect(await press(3)).toMatch(/not allowed|timed out/i)
    await authenticator.userIsVerified(true)
    expect(await text("result-state")).toBe("Failed")
    expect((await exchanges()).slice(before).some((title) => title.includes("executePasskey"))).toBe(false)
  })

  test("a passkey survives a reload, and the page shows the reason of a refusal", async () => {
    const { page } = browser
    const [wallet, salt] = [await createdWallet(), await page.locator("#salt").inputValue()]
    await page.reload()
    await page.goto(playgroundOf(service.info))
    expect(await text("step-1")).toBe("Create another")
    await openSettings()
    await page.getByLabel("Salt").fill(salt)
    expect(await press(2)).toBe("The wallet existed already.")
    expect(await createdWallet()).toBe(wallet)
    await page.getByLabel("Amount").fill("1000000")
    expect(await press(3)).toContain("ERC20InsufficientBalance")
    await page.getByLabel("API key").fill("wrong")
    expect(await press(3)).toContain("invalid")
  })

  test("another wallet of the passkey has another address", async () => {
    const { page } = browser
    await page.reload()
    await page.goto(playgroundOf(service.info))
    expect(await press(2)).toBe("The wallet is created.")
    const first = await createdWallet()
    expect(await press(2)).toBe("The wallet is created.")
    expect(await createdWallet()).not.toBe(first)
    expect(await page.locator("#step-3").isEnabled()).toBe(true)
  })

  test("without the link the page names the missing parts", async () => {
    const { page } = browser
    await page.goto(`http://localhost:${new URL(service.info.baseUrl).port}/playground?`)
    expect(await text("notice")).toContain("open the link that castellan dev prints")
    await page.locator("#step-2").click()
    expect(await exchanges()).toEqual([])
    await page.goto(`${service.info.baseUrl}/playground`)
    expect(await text("notice")).toContain("open this page at http://localhost:")
  })

  test("the page made no request to another host, and its policy blocked no request", () => {
    expect(browser.complaints.filter((complaint) => !/status of (401|422)/.test(complaint))).toEqual([])
  })
})
