import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type BrowserContext, type CDPSession, chromium, type Page } from "playwright-core"

/** Debian's Chromium, headless, with its own profile and access only to localhost. */
export interface Browser {
  readonly context: BrowserContext
  readonly page: Page
  /** Errors in the page, policy violations and requests to other hosts; empty in a passing test. */
  readonly complaints: ReadonlyArray<string>
  readonly authenticator: Authenticator
  /** Saves a picture of the whole page and returns its path. */
  readonly picture: (name: string) => Promise<string>
  /** Calls `look` with the page 1280 and 390 pixels wide, light and dark. */
  readonly inEveryForm: (look: (form: string) => Promise<void>) => Promise<void>
  readonly stop: () => Promise<void>
}

/** A software platform authenticator for passkeys. */
export interface Authenticator {
  readonly userIsVerified: (verified: boolean) => Promise<void>
  readonly credentials: () => Promise<number>
}

const output = fileURLToPath(new URL("../../../test-output/browser", import.meta.url))

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium"

const args = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"
]

const virtualAuthenticator = async (session: CDPSession): Promise<Authenticator> => {
  await session.send("WebAuthn.enable")
  const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true
    }
  })
  return {
    userIsVerified: async (isUserVerified) => {
      await session.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified })
    },
    credentials: async () =>
      (await session.send("WebAuthn.getCredentials", { authenticatorId })).credentials.length
  }
}

/** Resolves when the page is drawn and its finite transitions have ended: until then, colours are between two schemes. */
const transitionsEnd = `new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))).then(() =>
  Promise.allSettled(
    document.getAnimations()
      .filter(({ effect }) => Number.isFinite(effect.getComputedTiming().endTime))
      .map(({ finished }) => finished)
  ))`

export const start = async (): Promise<Browser> => {
  const profile = mkdtempSync(join(tmpdir(), "castellan-chromium-"))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    headless: true,
    chromiumSandbox: false,
    args,
    viewport: { width: 1024, height: 900 }
  })
  const page = context.pages()[0] ?? (await context.newPage())
  const complaints: Array<string> = []
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text())
  })
  page.on("pageerror", (error) => complaints.push(error.message))
  page.on("request", (request) => {
    const url = new URL(request.url())
    if (url.protocol !== "data:" && url.hostname !== "localhost" && url.hostname !== "127.0.0.1")
      complaints.push(`asked ${url.host}`)
  })
  return {
    context,
    page,
    complaints,
    authenticator: await virtualAuthenticator(await context.newCDPSession(page)),
    picture: async (name) => {
      mkdirSync(output, { recursive: true })
      const path = join(output, `${name}.png`)
      await page.screenshot({ path, fullPage: true })
      console.log(`picture: ${path}`)
      return path
    },
    inEveryForm: async (look) => {
      const before = page.viewportSize() ?? { width: 1024, height: 900 }
      for (const colorScheme of ["light", "dark"] as const)
        for (const width of [1280, 390]) {
          await page.emulateMedia({ colorScheme })
          await page.setViewportSize({ width, height: 800 })
          await page.evaluate(transitionsEnd)
          await look(`${width}-${colorScheme}`)
        }
      await page.emulateMedia({ colorScheme: "light" })
      await page.setViewportSize(before)
    },
    stop: async () => {
      await context.close()
      rmSync(profile, { recursive: true, force: true })
    }
  }
}
