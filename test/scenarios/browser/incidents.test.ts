import { execFileSync } from "node:child_process"
import { appendFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { Wallet } from "ethers"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type * as Incidents from "../../../src/application/operate/Incidents.js"
import { devKeys } from "../../../src/hosts/cli/dev/DevKeys.js"
import * as AwsKms from "../../adapters/keys/aws-kms/AwsKms.js"
import * as DevService from "../../support/http/DevService.js"
import * as Keys from "../../support/kms/Keys.js"
import type * as Server from "../../support/kms/Server.js"
import * as Port from "../../support/process/Port.js"
import * as Redis from "../../support/redis/Redis.js"
import * as FaultyNode from "../../support/stack/FaultyNode.js"
import * as Tools from "../../support/Tools.js"
import * as Accessibility from "./Accessibility.js"
import * as Browser from "./Browser.js"

const token = "an operator's token of the incidents"

let service: DevService.DevService
let browser: Browser.Browser
let console_: string
let node: FaultyNode.FaultyNode
let redis: Redis.Server
let kms: Server.Server
let scope: Scope.Closeable
let chainUrl: string
/** Lead of the service's clock, milliseconds. */
let clockAhead = 0
/** Another program's connection to the service's database. */
let lock: DatabaseSync
/** Requests that wait for the silent signer. */
let signing: Promise<unknown>

const dev = { clientId: "dev", versionId: "1" }
const held = { clientId: "held", versionId: "1" }

const folder = mkdtempSync(join(tmpdir(), "castellan-incidents-"))
/** Fills the database's disk. */
const ballast = join(folder, "ballast")

beforeAll(async () => {
  if (Tools.has("tmpfs")) execFileSync("mount", ["-t", "tmpfs", "-o", "size=16m", "tmpfs", folder])
  redis = await Redis.start()
  scope = await Effect.runPromise(Scope.make())
  const stored = [AwsKms.key("incidents", Keys.secp256k1(DevService.anvilKey(7).privateKey))]
  const { endpoint, server } = await Effect.runPromise(Scope.provide(AwsKms.make(stored), scope))
  kms = server
  service = await Port.withFree((port) => {
    console_ = `http://127.0.0.1:${port}`
    return DevService.start({
      clockAhead: () => clockAhead,
      // Heads of a development chain have no age.
      chainId: 100,
      network: { bumpAfterMillis: 2_000 },
      nodeUrl: (url) =>
        Effect.map(
          Effect.acquireRelease(
            Effect.promise(() => FaultyNode.startFaultyNode(url)),
            (started) => Effect.promise(started.stop)
          ),
          (started) => {
            chainUrl = url
            node = started
            return started.url
          }
        ),
      config: {
        database: { path: join(folder, "castellan.sqlite") },
        admin: { port, operators: [{ name: "ann", token }] },
        rateLimit: { redis: redis.url },
        providers: [
          {
            kind: "aws-kms",
            name: "kms",
            region: AwsKms.region,
            endpoint,
            credentials: { accessKeyId: AwsKms.accessKeyId, secretAccessKey: AwsKms.secretAccessKey }
          }
        ],
        signers: [
          { accounts: ["enterprise"], ...dev, privateKey: devKeys.signer.privateKey },
          { accounts: ["enterprise"], ...held, provider: "kms", key: AwsKms.arn("incidents") }
        ]
      }
    })
  })
  await service.create("incidents")
  browser = await Browser.start()
  const { page } = browser
  await page.setViewportSize({ width: 1_280, height: 900 })
  await page.goto(console_)
  await page.getByLabel("Your operator's token").fill(token)
  await page.keyboard.press("Enter")
  await page.getByRole("navigation", { name: "Console" }).waitFor()
}, 120_000)

afterAll(async () => {
  await browser?.stop()
  await service?.stop()
  await redis?.stop()
  await Effect.runPromise(Scope.close(scope, Exit.void))
  if (Tools.has("tmpfs")) execFileSync("umount", [folder])
  rmSync(folder, { recursive: true, force: true })
})

/** An honest node but for the answer to one method. */
const changed =
  (method: string, change: (result: never, params: ReadonlyArray<unknown>) => unknown): FaultyNode.Fault =>
  async (question, ask) => {
    const answer = await ask()
    return question.method === method && "result" in answer && answer.result !== null
      ? { result: change(answer.result as never, question.params) }
      : answer
  }

interface Head {
  readonly number: string
  readonly timestamp: string
}

/** Asks the chain itself, past the faulty node. */
const chain = async (method: string, ...params: ReadonlyArray<unknown>) => {
  const answer = await fetch(chainUrl, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })
  })
  expect(await answer.json()).not.toHaveProperty("error")
}

const hex = (value: number) => `0x${value.toString(16)}`

const balanceOf = (receiver: string) => service.token.getFunction("balanceOf")(receiver)

const signer = () => service.signer.getAddress()

interface Trial {
  readonly name: string
  /** The incident's kind; default: the name. */
  readonly kind?: Incidents.Kind
  /** Title of the incident. */
  readonly title: string
  readonly begin: () => Promise<unknown>
  readonly end: () => Promise<unknown>
  /** Further expectations while the incident lasts. */
  readonly meanwhile?: () => Promise<void>
  /** Expectations after its end. */
  readonly after?: () => Promise<void>
  readonly needs?: Parameters<typeof Tools.need>[0]
}

/** The service's clock is off; money still moves. */
const clockOff = (millis: number): Omit<Trial, "name"> => ({
  kind: "clock-doubted",
  title: "the clock may be wrong",
  begin: async () => {
    clockAhead = millis
    // The head of a running chain is fresh.
    await chain("evm_mine")
  },
  meanwhile: async () => {
    const receiver = Wallet.createRandom().address
    await service.ok("/execute", service.mint("incidents", receiver, 3))
    expect(await balanceOf(receiver)).toBe(3n)
  },
  end: async () => {
    clockAhead = 0
  }
})

/** Writes to the database's disk until nothing fits any more. */
const fillDisk = () => {
  for (let size = 1 << 20; size > 0; )
    try {
      appendFileSync(ballast, Buffer.alloc(size))
    } catch (error) {
      expect(error).toMatchObject({ code: "ENOSPC" })
      size >>= 1
    }
}

const diskFull = (): Omit<Trial, "name"> => {
  const receiver = Wallet.createRandom().address
  const pay = (key: string) =>
    service.keyed<DevService.Envelope>("/execute", service.mint("incidents", receiver, 1), key, {
      headers: { prefer: "respond-async" }
    })
  const balance = () => balanceOf(receiver)
  const accepted: Array<string> = []
  let refused: string
  const settled = async (requestId: string) => {
    const ended = async () => (await service.request(requestId)).body
    await expect.poll(ended, { timeout: 30_000 }).toMatchObject({ state: "final", httpStatus: 200 })
  }
  return {
    kind: "database-fails",
    title: "the database fails",
    needs: "tmpfs",
    begin: async () => {
      await chain("evm_setAutomine", false)
      const first = (await pay("full-0")).body.requestId
      accepted.push(first)
      const sent = async () => (await service.request(first)).body.txHashes
      await expect.poll(sent, { timeout: 10_000 }).toHaveLength(1)
      fillDisk()
      // It is mined while nothing can be stored.
      await chain("evm_setAutomine", true)
      await chain("evm_mine")
      await expect.poll(balance).toBe(1n)
      // SQLite's log may have room left from its last turn.
      for (;;) {
        refused = `full-${accepted.length}`
        const answer = await pay(refused)
        if (answer.status !== 202) {
          expect([answer.status, answer.body]).toMatchObject([503, { code: "unavailable" }])
          expect(answer.headers.get("retry-after")).toMatch(/^\d+$/)
          return
        }
        accepted.push(answer.body.requestId)
      }
    },
    meanwhile: async () => {
      expect(await browser.page.locator("#incidents").textContent()).toContain("no write succeeds")
      expect((await fetch(`${service.info.baseUrl}/health/ready`)).status).toBe(503)
      expect((await pay(refused)).status).toBe(503)
      expect(Number(await balance())).toBeLessThanOrEqual(accepted.length)
    },
    end: async () => {
      await chain("evm_setAutomine", true)
      rmSync(ballast, { force: true })
    },
    after: async () => {
      accepted.push((await pay(refused)).body.requestId)
      for (const requestId of accepted) await settled(requestId)
      expect(await pay(refused)).toMatchObject({ status: 200 })
      expect(await balance()).toBe(BigInt(accepted.length))
    }
  }
}

const faulty = (fault: () => FaultyNode.Fault): Pick<Trial, "begin" | "end"> => ({
  begin: async () => node.behave(fault()),
  end: async () => node.behave()
})

const trials: ReadonlyArray<Trial> = [
  {
    name: "node-silent",
    title: "the node does not answer",
    ...faulty(() => async () => null)
  },
  {
    name: "node-behind",
    title: "the node is behind its chain",
    ...faulty(() =>
      changed("eth_getBlockByNumber", (block: Head) => ({
        ...block,
        number: hex(Math.max(1, Number(block.number) - 10)),
        timestamp: hex(Math.floor(Date.now() / 1_000) - 120)
      }))
    )
  },
  {
    name: "fee-cap",
    title: "the base fee is above the cap",
    ...faulty(() =>
      changed("eth_getBlockByNumber", (block: Head) => ({
        ...block,
        timestamp: hex(Math.floor(Date.now() / 1_000)),
        baseFeePerGas: hex(2e12)
      }))
    )
  },
  {
    name: "sponsor-empty",
    title: "the sponsor's deposit is empty",
    ...faulty(() =>
      changed("eth_call", (result: string, [call]) =>
        (call as { readonly data?: string }).data?.startsWith("0x70a08231") === true
          ? `0x${"0".repeat(64)}`
          : result
      )
    )
  },
  {
    name: "eoa-empty",
    title: "a submitting EOA is empty",
    begin: async () => chain("anvil_setBalance", await signer(), "0x0"),
    end: async () => chain("anvil_setBalance", await signer(), "0x21e19e0c9bab2400000")
  },
  {
    name: "transaction-stalled",
    title: "a transaction is not mined",
    begin: async () => {
      await chain("evm_setAutomine", false)
      await service.ask("/execute", service.mint("incidents", DevService.nobody, 1), {
        headers: { prefer: "respond-async" }
      })
    },
    end: () => chain("evm_setAutomine", true)
  },
  {
    name: "signer-fails",
    title: "a signer fails",
    begin: async () => {
      kms.fault = () => "hang"
      signing = service.ask("/sign", { messages: ["hello"], hashed: false, signer: held })
    },
    end: async () => {
      kms.fault = null
      await signing
    }
  },
  {
    name: "database-fails",
    title: "the database fails",
    begin: async () => {
      lock = new DatabaseSync(join(folder, "castellan.sqlite"))
      lock.exec("begin immediate")
    },
    end: async () => {
      lock.exec("rollback")
      lock.close()
    }
  },
  { name: "disk-full", ...diskFull() },
  { name: "clock-behind", ...clockOff(-120_000) },
  { name: "clock-ahead", ...clockOff(7_200_000) },
  {
    name: "rate-limit-store-gone",
    title: "the store of the rate limits does not answer",
    begin: async () => {
      await redis.end()
      await service.ask("/predict", {})
    },
    end: async () => {
      await redis.begin()
      await service.ask("/predict", {})
    }
  }
]

describe("incidents in the console", () => {
  test.each(trials)(
    "$name appears within 30 s, and disappears when it is over",
    async ({ name, kind = name, ...trial }) => {
      const { after, begin, end, meanwhile, needs, title } = trial
      if (needs !== undefined) await Tools.need(needs)
      const { page } = browser
      const incident = page.locator("#incidents > li").filter({ hasText: new RegExp(title, "i") })
      // A head of an honest node is fresh.
      await chain("evm_mine")
      await page.goto(`${console_}/console`)
      try {
        await begin()
        const began = Date.now()
        await incident.first().waitFor({ timeout: 30_000 })
        console.log(`${name}: shown after ${((Date.now() - began) / 1_000).toFixed(1)} s`)
        expect(await incident.first().getByRole("link", { name: "Runbook" }).getAttribute("href")).toBe(
          `/console/runbooks#${kind}`
        )
        expect(await Accessibility.breaches(page)).toEqual([])
        const metrics = await fetch(`${console_}/metrics`, { headers: { authorization: `Bearer ${token}` } })
        expect(await metrics.text()).toMatch(new RegExp(`castellan_incident\\{[^}]*kind="${kind}"[^}]*\\} 1`))
        await meanwhile?.()
      } finally {
        await end()
      }
      await chain("evm_mine")
      await expect
        .poll(
          async () => {
            // After an outage the service retries a store with the next request.
            await service.ask("/predict", {})
            return incident.count()
          },
          // Failed calls count for a minute.
          { interval: 1_000, timeout: 90_000 }
        )
        .toBe(0)
      await after?.()
    },
    240_000
  )
})
