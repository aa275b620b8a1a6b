import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { id as hashOf, Wallet } from "ethers"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import * as Config from "../../../src/hosts/config/Config.js"
import * as Service from "../../../src/hosts/node/Service.js"
import type { Seams } from "../../../src/hosts/Wiring.js"
import * as Random from "../../support/faults/Random.js"
import * as World from "../../support/faults/World.js"
import * as Journals from "../../support/journal/Journals.js"
import * as Postgres from "../../support/postgres/Postgres.js"

/** A service of this process, with a journal, an engine and a port of its own. */
interface Running {
  readonly url: string
  readonly stop: () => Promise<void>
}

/** As long as a key in an HSM takes: between the nonce and the bytes there is time for another process. */
const slowSigner: Seams = {
  journal: Journals.mapped((journal) => ({
    ...journal,
    recordSigned: (signed) => Effect.delay(journal.recordSigned(signed), "150 millis")
  }))
}

const start = async (config: Config.Config, seams: Seams = {}): Promise<Running> => {
  const scope = await Effect.runPromise(Scope.make())
  const stop = () => Effect.runPromise(Scope.close(scope, Exit.void))
  try {
    const { url } = await Effect.runPromise(Scope.extend(Service.start(config, seams), scope))
    return { url, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

interface Answer {
  readonly status: number
  readonly body: { readonly status?: number; readonly code?: string; readonly requestId?: string }
}

const databases = Postgres.perFile()
const folder = mkdtempSync(join(tmpdir(), "castellan-two-"))
const running = new Set<Running>()
let world: World.World
let rigs = 0

beforeAll(async () => {
  world = await World.start()
})
afterEach(async () => {
  await Promise.all([...running].map(({ stop }) => stop()))
  running.clear()
  await world.send("evm_setAutomine", true)
})
afterAll(async () => {
  await world.stop()
  rmSync(folder, { recursive: true })
})

/** A tenant with one signer and funded wallets, and the configuration of the services that serve it. */
const rigOn = async (database: { readonly path: string } | { readonly url: string }) => {
  rigs += 1
  const signer = new Wallet(hashOf(`two services ${rigs}`), world.provider)
  const tenant = await World.tenant(`tenant-${rigs}`)
  await world.send("anvil_setBalance", signer.address, "0x3635c9adc5dea00000")
  const file: Record<string, unknown> = JSON.parse(
    World.configFile(world, {
      nodeUrl: world.chain.url,
      confirmations: 1,
      settledDepth: 1,
      bumpAfterMillis: 5_000,
      receiptTimeoutMillis: 20_000,
      tenants: [tenant],
      signers: [{ tenants: [tenant], privateKey: signer.privateKey }]
    })
  )
  const config = Either.getOrThrow(
    Config.fromText(JSON.stringify({ ...file, database }), "of the test", {}, folder)
  )
  const begin = async (seams?: Seams): Promise<Running> => {
    const service = await start(config, seams)
    running.add(service)
    return service
  }
  const end = async (service: Running): Promise<void> => {
    running.delete(service)
    await service.stop()
  }
  const to = await world.counter.getAddress()
  const settings = { rpc: world.chain.url, entryPoint: World.entryPoint, signer: World.signerRef(0) }
  const accounts = Array.from({ length: 8 }, (_, n) => ({ salt: `two ${rigs} ${n}`, walletCustody: 1 }))

  const exchange = async (service: Running, path: string, key: string | null, body: unknown) => {
    const response = await fetch(`${service.url}${path}`, {
      method: body === null ? "GET" : "POST",
      headers: {
        "x-api-key": tenant.key,
        "content-type": "application/json",
        ...(key !== null && { "idempotency-key": key })
      },
      body: body === null ? null : JSON.stringify(body)
    })
    return { status: response.status, body: await response.json() } as Answer
  }
  /** Asks with the same key, whomever it finds, until the outcome is known. */
  const insist = async (
    services: () => Running,
    path: string,
    key: string,
    body: unknown
  ): Promise<Answer> => {
    for (;;) {
      const answer = await exchange(services(), path, key, body).catch(() => null)
      if (answer === null || answer.status === 503 || answer.body.code === "outcome_unknown") continue
      return answer
    }
  }
  const hit = (n: number, id: string) => ({
    operations: [{ ...accounts[n % accounts.length], to, funcSignature: "hit(bytes32)", funcParams: [id] }],
    settings
  })
  const prepare = async (service: Running) => {
    const predicted = await exchange(service, "/predict", null, {
      accounts,
      settings: {
        factory: world.chain.suite.factory,
        beaconAdminAddress: world.chain.suite.beacon,
        beaconAdminCreationCode: World.creationCode
      }
    })
    for (const { wallet } of predicted.body as unknown as ReadonlyArray<{ readonly wallet: string }>)
      await world.send("anvil_setBalance", wallet, "0x8ac7230489e80000")
    const created = await insist(() => service, "/create", "wallets", { accounts, settings })
    expect(created).toMatchObject({ status: 200, body: { status: 1 } })
  }
  const count = async (id: string) => Number(await world.counter.getFunction("count")(id))
  return { begin, end, exchange, insist, hit, prepare, count }
}

const freshUrl = async (): Promise<string> => {
  const address = await Effect.runPromise(databases.fresh)
  return "url" in address ? Redacted.value(address.url) : ""
}

describe("two services on one PostgreSQL database", { timeout: 240_000 }, () => {
  it("execute every operation once, at whichever of them, while one is replaced by a third", async () => {
    const rig = await rigOn({ url: await freshUrl() })
    const first = await rig.begin(slowSigner)
    const second = await rig.begin(slowSigner)
    await rig.prepare(first)
    const random = Random.make("two services")
    let serving: ReadonlyArray<Running> = [first, second]
    const ids = Array.from({ length: 60 }, (_, n) => hashOf(`two services ${n}`))
    let done = 0
    const executed = ids.map(async (id, n) => {
      const answer = await rig.insist(() => random.pick(serving), "/execute", `hit-${n}`, rig.hit(n, id))
      done += 1
      return answer
    })
    await expect.poll(() => done, { timeout: 60_000 }).toBeGreaterThan(10)
    const third = await rig.begin(slowSigner)
    serving = [second, third]
    await rig.end(first)
    for (const answer of await Promise.all(executed))
      expect(answer).toMatchObject({ status: 200, body: { status: 1 } })
    for (const id of ids) expect(await rig.count(id)).toBe(1)
  })

  it("with other keys leave each other's requests alone", async () => {
    const url = await freshUrl()
    const [mine, theirs] = [await rigOn({ url }), await rigOn({ url })]
    const first = await mine.begin()
    const other = await theirs.begin()
    await mine.prepare(first)
    await theirs.prepare(other)
    const [own, foreign] = [hashOf("own"), hashOf("foreign")]
    await world.send("evm_setAutomine", false)
    const pending = mine.exchange(first, "/execute", "pending", mine.hit(0, own))
    await expect
      .poll(async () => Object.keys((await txpool()).pending).length, { timeout: 20_000 })
      .toBeGreaterThan(0)
    await mine.end(first)
    expect((await pending).body.code).toBe("outcome_unknown")
    await world.send("evm_setAutomine", true)
    await world.send("evm_mine")
    // Long after its sweeps have seen it.
    for (const n of [1, 2, 3])
      expect(
        (await theirs.insist(() => other, "/execute", `foreign-${n}`, theirs.hit(n, hashOf(`foreign ${n}`))))
          .body
      ).toMatchObject({ status: 1 })
    const again = await mine.begin()
    expect(await mine.insist(() => again, "/execute", "pending", mine.hit(0, own))).toMatchObject({
      status: 200,
      body: { status: 1 }
    })
    expect([await mine.count(own), await theirs.count(foreign)]).toEqual([1, 0])
  })
})

const txpool = async () =>
  (await world.send("txpool_content")) as { readonly pending: Readonly<Record<string, unknown>> }

describe("two services on one file of SQLite", { timeout: 120_000 }, () => {
  it("are one: the second does not start, says why, and starts once the first has ended", async () => {
    const rig = await rigOn({ path: join(folder, "one.sqlite") })
    const first = await rig.begin()
    await expect(rig.begin()).rejects.toThrow(/another process uses the database file .*one\.sqlite/)
    await rig.prepare(first)
    await rig.end(first)
    const second = await rig.begin()
    const id = hashOf("after the first")
    expect(await rig.insist(() => second, "/execute", "hit", rig.hit(0, id))).toMatchObject({ status: 200 })
    expect(await rig.count(id)).toBe(1)
  })
})
