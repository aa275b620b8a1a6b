import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { devKeys } from "../../../src/hosts/cli/dev/DevKeys.js"
import { make, until } from "../../support/accounts/Castellan.js"
import { endpoints } from "../../support/http/Contract.js"
import {
  anvilKey,
  type Envelope,
  type Estimate,
  type TransactionResult
} from "../../support/http/DevService.js"
import * as CommandLine from "../../support/process/CommandLine.js"
import { begin, type Tenant, type TwoTenants } from "./TwoTenants.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-pauses-"))
const database = { path: join(folder, "castellan.sqlite") }
const { env } = make(
  folder,
  {
    database,
    allowPrivateKeys: true,
    accounts: [{ id: "alice", name: "Alice", tier: "enterprise", keys: [] }],
    signers: [{ accounts: ["alice"], clientId: "of alice", versionId: "1", privateKey: { env: "ALICE" } }],
    systemKeys: { deployer: { env: "DEPLOYER" } },
    networks: [{ chainId: 31337 }]
  },
  { ALICE: anvilKey(7).privateKey, DEPLOYER: devKeys.deployer.privateKey }
)
const command = (...args: ReadonlyArray<string>) => Effect.runPromise(CommandLine.run(args, env))

let world: TwoTenants
let alice: Tenant
let bob: Tenant
let encoded: { readonly encodedUserOp: string; readonly userOpHash: string; readonly walletCustody: 1 }

const salt = "s"
const accounts = [{ salt, walletCustody: 1 }]

beforeAll(async () => {
  world = await begin({ database })
  alice = world.alice
  bob = world.bob
  const { body } = await alice.ask<ReadonlyArray<{ wallet: string }>>("/check", {
    accounts,
    settings: alice.settings
  })
  await world.service.fund(body[0]?.wallet ?? "")
  await alice.ask("/create", { accounts, settings: alice.settings })
  const estimate = await alice.ask<Estimate>("/estimateGas", request().execute)
  const [op] = estimate.body.userOps
  if (op === undefined) throw new Error(estimate.text)
  encoded = { encodedUserOp: op.encodedUserOp, userOpHash: op.userOpHash, walletCustody: 1 }
})
afterAll(async () => {
  await world.service.stop()
  rmSync(folder, { recursive: true, force: true })
})

const request = ({ settings }: Tenant = alice) => ({
  execute: {
    operations: [
      {
        salt,
        walletCustody: 1,
        to: world.service.info.token,
        funcSignature: "mint(address,uint256)",
        funcParams: [bob.eoa.address, "1"]
      }
    ],
    settings
  },
  transfer: { to: bob.eoa.address, value: "1", settings }
})

/** A message of alice's wallet. */
const message = () => ({ salt, walletCustody: 1, message: "m", settings: alice.settings })

/** A write without an effect. */
const harmless = () => ({ settings: alice.settings, dryRun: true })

/** A write of alice's at each writing endpoint. */
const writes = (): Readonly<Record<string, unknown>> => {
  const { settings } = alice
  const { signer: _, ...unsigned } = settings
  const { walletCustody: __, ...op } = encoded
  const validationData = {
    signature: Buffer.alloc(64, 1).toString("base64"),
    authenticatorData: Buffer.alloc(37, 1).toString("base64"),
    clientDataJSON: Buffer.from("{}").toString("base64")
  }
  return {
    "/create": { accounts: [{ salt: "another", walletCustody: 1 }], settings },
    "/execute": request().execute,
    "/executeEncoded": { operations: [encoded], settings },
    "/executePasskey": { operations: [{ ...op, validationData }], settings: unsigned },
    "/transactSigner": request().transfer,
    "/unstuck": { settings }
  }
}

const nonces = () =>
  Promise.all(
    [alice.eoa.address, devKeys.serviceEoa.address].map((address) =>
      world.service.provider.getTransactionCount(address)
    )
  )

const codeOf = async (path: string, body: unknown, { ask }: Tenant = alice) => {
  const { body: answer } = await ask<Partial<Envelope>>(path, body)
  return { code: answer.code ?? null }
}

describe("a paused chain", () => {
  it("rejects new writes at every endpoint that writes, and serves reads", async () => {
    const writing = endpoints.filter(({ idempotent }) => idempotent).map(({ path }) => path)
    expect(Object.keys(writes()).sort()).toEqual(writing.sort())
    const before = await nonces()
    await command("chains", "pause", "31337")
    await until("writes_paused", () => codeOf("/unstuck", harmless()))
    for (const [path, body] of Object.entries(writes())) {
      const answer = await alice.ask<Envelope>(path, body)
      expect({ path, status: answer.status, code: answer.body.code }).toEqual({
        path,
        status: 422,
        code: "writes_paused"
      })
      expect(answer.body.error).toBe("writes are paused")
    }
    expect(await codeOf("/transactSigner", request(bob).transfer, bob)).toEqual({ code: "writes_paused" })
    expect(await nonces()).toEqual([before[0], before[1]])
    expect(await codeOf("/signMessage", message())).toEqual({ code: "writes_paused" })
    expect((await alice.ask<Estimate>("/estimateGas", request().execute)).body.status).toBe(1)
    expect((await alice.ask("/check", { accounts, settings: alice.settings })).status).toBe(200)
    await command("chains", "resume", "31337")
    const resumed = async () => {
      const { code } = await codeOf("/execute", request().execute)
      return { code: code ?? "executed" }
    }
    await until("executed", resumed)
  })

  it("settles the work under way", async () => {
    await world.service.automine(false)
    const { provider } = world.service
    const before = await provider.getTransactionCount(bob.eoa.address, "pending")
    const sending = bob.ask<TransactionResult>("/transactSigner", request(bob).transfer)
    const sent = async () => ({
      code: (await provider.getTransactionCount(bob.eoa.address, "pending")) > before ? "sent" : "not sent"
    })
    await until("sent", sent)
    await command("chains", "pause", "31337")
    await until("writes_paused", () => codeOf("/unstuck", harmless()))
    await world.service.automine(true)
    const { body, status } = await sending
    expect([status, body.status]).toEqual([200, 1])
    await command("chains", "resume", "31337")
    const going = async () => ({
      code: (await codeOf("/unstuck", harmless())).code ?? "going"
    })
    await until("going", going)
  })
})

describe("a paused signer", () => {
  it("signs nothing new, under any of its names; others do, and its name is still resolved", async () => {
    await command("signers", "pause", alice.eoa.address)
    const signing = (signer: unknown) => ({ messages: ["m"], signer })
    await until("writes_paused", () => codeOf("/sign", signing(alice.settings.signer)))
    for (const signer of [alice.settings.signer, { clientId: "hsm", versionId: "7" }]) {
      const settings = { ...alice.settings, signer }
      expect(await codeOf("/sign", signing(signer))).toEqual({ code: "writes_paused" })
      expect(await codeOf("/execute", { ...request().execute, settings })).toEqual({ code: "writes_paused" })
      expect(await codeOf("/unstuck", { settings })).toEqual({ code: "writes_paused" })
      expect(await codeOf("/signMessage", { ...message(), settings })).toEqual({ code: "writes_paused" })
      expect((await alice.ask("/getSigner", { signer })).status).toBe(200)
      expect(
        (await alice.ask<Estimate>("/estimateGas", { ...request().execute, settings })).body.status
      ).toBe(1)
    }
    expect((await bob.ask("/sign", signing(bob.settings.signer))).status).toBe(200)
    expect((await bob.ask<TransactionResult>("/transactSigner", request(bob).transfer)).body.status).toBe(1)
    // Only the paused account learns of the pause.
    expect(await codeOf("/sign", signing(alice.settings.signer), bob)).toEqual({
      code: "client_id_incorrect"
    })
    await command("signers", "resume", alice.eoa.address)
    await until("signed", async () => ({
      code: (await codeOf("/sign", signing(alice.settings.signer))).code ?? "signed"
    }))
  })

  it("may be the deployer: then no wallet is created", async () => {
    await command("signers", "pause", devKeys.deployer.address)
    const body = { accounts: [{ salt: "third", walletCustody: 1 }], settings: alice.settings }
    await until("writes_paused", () => codeOf("/create", body))
    const [account] = body.accounts
    const undeployed = { account, message: "m", settings: alice.settings }
    expect(await codeOf("/signMessage", undeployed)).toEqual({ code: "writes_paused" })
    expect(await codeOf("/signMessage", message())).toEqual({ code: null })
    expect((await alice.ask<TransactionResult>("/execute", request().execute)).body.status).toBe(1)
    await command("signers", "resume", devKeys.deployer.address)
  })
})
