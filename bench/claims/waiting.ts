import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as References from "effect/References"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { id as hashOf, Wallet } from "ethers"
import * as Config from "../../src/hosts/config/Config.js"
import * as Service from "../../src/hosts/node/Service.js"
import * as World from "../../test/faults/support/World.js"
import * as Journals from "../../test/support/journal/Journals.js"
import * as Make from "../../test/support/journal/Make.js"
import { signerKey } from "../harness/Castellan.js"
import { type Claim, ensure } from "../harness/Claim.js"
import * as Client from "../harness/Client.js"
import type { Context } from "../harness/Context.js"
import { figure, median, ratio } from "../harness/Stats.js"

/** Duration of a journal write while many callers wait for unmined transactions, and without callers. */

const walletCount = 64

/** Starts the service in this process, to reach its journal. */
const start = async (context: Context, world: World.World) => {
  const folder = mkdtempSync(join(tmpdir(), "castellan-bench-"))
  context.defer(() => rmSync(folder, { recursive: true, force: true }))
  const tenant = await World.tenant("waiting")
  const signer = new Wallet(signerKey(0))
  await world.send("anvil_setBalance", signer.address, "0x3635c9adc5dea00000")
  const file = World.configFile(world, {
    nodeUrl: world.chain.url,
    confirmations: 1,
    settledDepth: 1,
    bumpAfterMillis: 600_000,
    receiptTimeoutMillis: 180_000,
    tenants: [tenant],
    signers: [{ tenants: [tenant], privateKey: signer.privateKey }],
    concurrentRequests: 2_048
  })
  const config = Result.getOrThrow(Config.fromText(file, "of the bench", {}, folder))
  const scope = await Effect.runPromise(Scope.make())
  context.defer(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  let journal: Journals.Methods | undefined
  const seams = {
    journal: Journals.mapped((methods) => {
      journal = methods
      return methods
    })
  }
  const { url } = await Effect.runPromise(
    Service.start(config, seams).pipe(
      Scope.provide(scope),
      Effect.provideService(References.MinimumLogLevel, "None")
    )
  )
  if (journal === undefined) throw new Error("the service has no journal")
  const client = Client.make(url)
  context.defer(client.close)
  const headers = { "content-type": "application/json", "x-api-key": tenant.key }
  const ok = async <Body>(path: string, body: unknown): Promise<Body> => {
    const { status, text } = await client.send("POST", path, headers, JSON.stringify(body))
    ensure(status === 200, `${path} answered ${status}: ${text.slice(0, 1_000)}`)
    return JSON.parse(text)
  }
  return { journal, ok }
}

type Started = Awaited<ReturnType<typeof start>>

const settingsOf = (world: World.World) => ({
  rpc: world.chain.url,
  entryPoint: World.entryPoint,
  signer: World.signerRef(0)
})

const accounts = Array.from({ length: walletCount }, (_, n) => ({ salt: `waiting ${n}`, walletCustody: 1 }))

const createWallets = async (world: World.World, { ok }: Started) => {
  const predicted = await ok<ReadonlyArray<{ readonly wallet: string }>>("/predict", {
    accounts,
    settings: {
      factory: world.chain.suite.factory,
      beaconAdminAddress: world.chain.suite.beacon,
      beaconAdminCreationCode: World.creationCode
    }
  })
  for (const { wallet } of predicted) await world.send("anvil_setBalance", wallet, "0x8ac7230489e80000")
  for (let at = 0; at < walletCount; at += 8) {
    const { status } = await ok<{ readonly status: number }>("/create", {
      accounts: accounts.slice(at, at + 8),
      settings: settingsOf(world)
    })
    ensure(status === 1, "wallets were not created")
  }
}

/** Median of alternating lease and release writes, in ms. */
const writeMillis = async ({ journal }: Started, pairs: number): Promise<number> => {
  const times: Array<number> = []
  for (let n = 0; n < pairs; n += 1) {
    const holder = `bench ${n} ${performance.now()}`
    const began = performance.now()
    const leased = await Effect.runPromise(
      Effect.tap(Make.lease(journal, Make.leaseRequest(holder)), journal.release(holder))
    )
    times.push((performance.now() - began) / 2)
    ensure(leased !== null, "no nonce key was free")
  }
  return median(times)
}

export const claim: Claim = {
  name: "waiting",
  title: "A write of the journal while 512 callers wait",
  boundSeconds: 240,
  run: async (context) => {
    const callers = context.size(512, 16)
    const pairs = context.size(1_000, 20)
    const world = await World.start()
    context.defer(world.stop)
    const service = await start(context, world)
    await createWallets(world, service)
    const to = await world.counter.getAddress()
    await writeMillis(service, pairs)
    const before = await writeMillis(service, pairs)

    await world.send("evm_setAutomine", false)
    const ids = Array.from({ length: callers }, (_, n) => hashOf(`waiting ${n}`))
    const answers = Promise.all(
      ids.map((id, n) =>
        service.ok<{ readonly status: number }>("/execute", {
          operations: [{ ...accounts[n % walletCount], to, funcSignature: "hit(bytes32)", funcParams: [id] }],
          settings: settingsOf(world)
        })
      )
    )
    const waiting = async () =>
      (await Effect.runPromise(service.journal.going)).reduce((sum, { requests }) => sum + requests, 0)
    while ((await waiting()) < callers) await new Promise((resolve) => setTimeout(resolve, 100))
    const during = await writeMillis(service, pairs)
    ensure((await waiting()) === callers, "callers did not wait to the end of the measurement")

    await world.send("evm_setAutomine", true)
    await world.send("evm_mine")
    ensure(
      (await answers).every(({ status }) => status === 1),
      "an execution failed"
    )
    const after = await writeMillis(service, pairs)
    const alone = (before + after) / 2
    return {
      rows: [
        {
          what: `a write, while ${callers} callers wait for their transactions`,
          castellan: `${figure(during)} ms`,
          against: `no caller waits: ${figure(before)} ms before and ${figure(after)} ms after`,
          ratio: ratio(during / alone),
          demand: "at most 1.5 x",
          met: during / alone <= 1.5
        }
      ],
      notes: [
        `The middle of ${figure(pairs)} leases of a nonce key and their releases, one after the other, on SQLite on disk. The callers' operations are accepted, bundled and in the node's pool, and no block comes.`
      ],
      raw: { callers, before, during, after }
    }
  }
}
