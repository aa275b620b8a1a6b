import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { devKeys } from "../../../src/hosts/cli/dev/DevKeys.js"
import * as AwsKms from "../../adapters/keys/aws-kms/AwsKms.js"
import * as DevService from "../../support/http/DevService.js"
import * as Keys from "../../support/kms/Keys.js"
import type * as Server from "../../support/kms/Server.js"
import * as Port from "../../support/process/Port.js"
import * as Redis from "../../support/redis/Redis.js"
import * as FaultyNode from "../../support/stack/FaultyNode.js"
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
/** Another program's connection to the service's database. */
let lock: DatabaseSync
/** Requests that wait for the silent signer. */
let signing: Promise<unknown>

const dev = { clientId: "dev", versionId: "1" }
const held = { clientId: "held", versionId: "1" }

const folder = mkdtempSync(join(tmpdir(), "castellan-incidents-"))

beforeAll(async () => {
  redis = await Redis.start()
  scope = await Effect.runPromise(Scope.make())
  const stored = [AwsKms.key("incidents", Keys.secp256k1(DevService.anvilKey(7).privateKey))]
  const { endpoint, server } = await Effect.runPromise(Scope.provide(AwsKms.make(stored), scope))
  kms = server
  service = await Port.withFree((port) => {
    console_ = `http://127.0.0.1:${port}`
    return DevService.start({
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

const signer = () => service.signer.getAddress()

interface Trial {
  readonly name: string
  /** Title of the incident. */
  readonly title: string
  readonly begin: () => Promise<unknown>
  readonly end: () => Promise<unknown>
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
    async ({ begin, end, name, title }) => {
      const { page, picture } = browser
      const incident = page.locator("#incidents > li").filter({ hasText: new RegExp(title, "i") })
      // A head of an honest node is fresh.
      await chain("evm_mine")
      await page.goto(`${console_}/console`)
      await begin()
      const began = Date.now()
      await incident.first().waitFor({ timeout: 30_000 })
      console.log(`${name}: shown after ${((Date.now() - began) / 1_000).toFixed(1)} s`)
      expect(await incident.first().getByRole("link", { name: "Runbook" }).getAttribute("href")).toBe(
        `/console/runbooks#${name}`
      )
      expect(await Accessibility.breaches(page)).toEqual([])
      await picture(`incident-${name}`)
      const metrics = await fetch(`${console_}/metrics`, { headers: { authorization: `Bearer ${token}` } })
      expect(await metrics.text()).toMatch(new RegExp(`castellan_incident\\{[^}]*kind="${name}"[^}]*\\} 1`))
      await end()
      await chain("evm_mine")
      await expect
        .poll(
          async () => {
            // After an outage the service retries a store with the next request.
            await service.ask("/predict", {})
            return incident.count()
          },
          { interval: 1_000, timeout: 60_000 }
        )
        .toBe(0)
    },
    120_000
  )
})
