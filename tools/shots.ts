import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import { extname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { apiPageOf, playgroundOf } from "../src/hosts/cli/dev/DevStack.js"
import * as Accessibility from "../test/scenarios/browser/Accessibility.js"
import * as Browser from "../test/scenarios/browser/Browser.js"
import * as DevService from "../test/support/http/DevService.js"

/**
 * `npm run shots -- [NAME...]`: pictures of every page in test-output/browser, 1280 and 390 pixels wide, light and dark.
 * Prints what axe finds. Names choose from playground, docs, console and site.
 */

const names = process.argv.slice(2)
const isChosen = (name: string): boolean => names.length === 0 || names.includes(name)
const browser = await Browser.start()
const { page } = browser
let found = 0

/** `isFresh`: loads the page again at each width. */
const shoot = (name: string, isFresh = false): Promise<void> =>
  browser.inEveryForm(async (form) => {
    if (isFresh) await page.reload()
    // Menus slide when the width changes.
    await page.waitForTimeout(600)
    await browser.picture(`${name}-${form}`)
    for (const line of await Accessibility.violations(page)) {
      found += 1
      console.log(`  ${line}`)
    }
  })

const playground = async (link: string): Promise<void> => {
  await page.goto(link)
  await page.locator("#service-state.good").waitFor()
  await shoot("playground")
  for (const step of [1, 2, 3]) {
    await page.locator(`#step-${step}`).click()
    await page.locator("#status.good, #status.bad").waitFor({ state: "attached" })
    if ((await page.locator("#status.bad").count()) > 0)
      throw new Error(`step ${step}: ${await page.locator("#status").textContent()}`)
  }
  await page.locator("#result-body dl").waitFor()
  await shoot("playground-done")
}

const docs = async (link: string): Promise<void> => {
  await page.goto(link)
  await page.locator(".opblock-tag").first().waitFor()
  await shoot("docs")
  for (const tag of await page.locator(".opblock-tag").all()) await tag.click()
  await page.locator('[id$="-execute"].opblock .opblock-summary-control').click()
  await page.getByRole("button", { name: "Try it out" }).click()
  for (const chapter of await page.locator(".info summary").all()) await chapter.click()
  await shoot("docs-open")
}

/** A success, a refusal, and a transaction that no block takes. */
const traffic = async (service: DevService.DevService): Promise<void> => {
  const nobody = DevService.nobody
  await service.create("alice")
  await service.ok("/execute", service.mint("alice", nobody, 250, 40))
  const transfer = {
    salt: "alice",
    walletCustody: 1,
    to: service.info.token,
    funcSignature: "transfer(address,uint256)",
    funcParams: [nobody, "1000000000000000000"]
  }
  await service.refused(422, "/execute", { operations: [transfer], settings: service.info.settings })
  await service.automine(false)
  await service.ask("/execute", service.mint("alice", nobody, 7), { headers: { prefer: "respond-async" } })
}

const consolePages = async (service: DevService.DevService): Promise<void> => {
  const link = service.info.console ?? ""
  await traffic(service)
  await page.goto(new URL("/console/sign-in", link).href)
  await shoot("console-sign-in")
  await page.goto(link)
  const linksOf = (selector: string) =>
    page.locator(selector).evaluateAll((all) => all.map((a) => a.getAttribute("href") ?? ""))
  const look = async (path: string, name: string): Promise<void> => {
    await page.goto(new URL(path, link).href)
    await shoot(`console${name}`, true)
  }
  const found = new Map<string, string>()
  for (const path of await linksOf("nav a")) {
    await look(path, path.replace("/console", "").replaceAll("/", "-"))
    for (const each of await linksOf("main a[href^='/console/']")) {
      const [, kind = ""] = /^\/console\/(chains|lanes|requests)\/./.exec(each) ?? []
      if (kind !== "" && !found.has(kind)) found.set(kind, each)
    }
  }
  for (const [kind, path] of found) await look(path, `-${kind}-one`)
  await page.goto(new URL("/console/requests?state=final", link).href)
  const [done = ""] = await linksOf("main a[href^='/console/requests/']")
  await look(done, "-requests-done")
  await page.emulateMedia({ media: "print" })
  await browser.picture("console-requests-print")
  await page.emulateMedia({ media: "screen" })
  await look("/console/search?q=alice", "-search")
  await look("/console/runbooks", "-runbooks")
}

const types: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml"
}

/** The documentation's site, built afresh. */
const site = async (): Promise<void> => {
  const root = fileURLToPath(new URL("../", import.meta.url))
  execFileSync("npm", ["run", "--silent", "docs:site"], { cwd: root, stdio: "ignore" })
  const server = createServer(({ url = "/" }, response) => {
    const path = new URL(url, "http://localhost").pathname
    try {
      const file = join(root, ".site", path.endsWith("/") ? `${path}index.html` : path)
      const body = readFileSync(file)
      response.setHeader("content-type", types[extname(file)] ?? "application/octet-stream").end(body)
    } catch {
      response.writeHead(404).end()
    }
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  for (const path of ["index", "start", "concepts/requests", "reference/operations"]) {
    await page.goto(`http://127.0.0.1:${port}/${path}.html`)
    await shoot(`site-${path.replaceAll("/", "-")}`)
  }
  server.close()
}

try {
  if (isChosen("playground") || isChosen("docs") || isChosen("console")) {
    const service = await DevService.start({ consolePort: 0 })
    try {
      if (isChosen("playground")) await playground(playgroundOf(service.info))
      if (isChosen("docs")) await docs(apiPageOf(service.info))
      if (isChosen("console")) await consolePages(service)
    } finally {
      await service.stop()
    }
  }
  if (isChosen("site")) await site()
} finally {
  await browser.stop()
}
console.log(`${found} findings of axe`)
process.exitCode = found === 0 ? 0 : 1
