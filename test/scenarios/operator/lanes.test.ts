import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { computeAddress } from "ethers"
import { devKeys } from "../../../src/hosts/cli/dev/DevKeys.js"
import * as DevService from "../../support/http/DevService.js"
import * as CommandLine from "../../support/process/CommandLine.js"
import * as Port from "../../support/process/Port.js"

const token = "an operator's token of the lanes"
const operators = [{ name: "ann", token: `${token} of ann` }]
const chain = "31337"
const eoa = computeAddress(devKeys.serviceEoa.privateKey)
const recipient = "0x000000000000000000000000000000000000dEaD"

const folder = mkdtempSync(join(tmpdir(), "castellan-lanes-"))
const database = { path: join(folder, "castellan.sqlite") }

let files = 0

/** The running service's configuration with the given operator's port. */
const configured = (admin: unknown): Readonly<Record<string, string>> => {
  files += 1
  const file = join(folder, `castellan-${files}.json`)
  const { deployer, serviceEoa, sponsor } = devKeys
  writeFileSync(
    file,
    JSON.stringify({
      profile: "development",
      listen: { host: "127.0.0.1", port: 0 },
      database,
      keyPepper: "development only, public",
      accounts: [{ id: "enterprise", name: "Enterprise", tier: "enterprise", keys: [] }],
      systemKeys: {
        deployer: deployer.privateKey,
        serviceEoa: serviceEoa.privateKey,
        sponsor: sponsor.privateKey
      },
      networks: [{ chainId: Number(chain) }],
      ...(admin !== null && { admin })
    })
  )
  return { CASTELLAN_CONFIG: file }
}

let service: DevService.DevService
let port: number
let env: Readonly<Record<string, string>>

beforeAll(async () => {
  port = await Port.free()
  env = configured({ port, token, operators })
  service = await DevService.start({
    // No automatic fee bump during a test.
    network: { bumpAfterMillis: 3_600_000 },
    config: { database, admin: { port, token, operators } }
  })
  const [wallet] = await service.create("payer")
  await (await service.token.getFunction("mint")(wallet, 100n)).wait()
}, 120_000)
afterAll(async () => {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
})

const said = (line: string, where = env) => Effect.runPromise(CommandLine.run(line.split(" "), where))
/** Newest entries of the operators' log: operator, act, subject, reason. */
const acts = (count: number) => {
  const file = new DatabaseSync(database.path, { readOnly: true, timeout: 5_000 })
  const rows = file
    .prepare("select operator, act, subject, reason from operator_acts order by entry_no desc limit ?")
    .all(count)
  file.close()
  return rows.map((row) => Object.values(row))
}

const json = async <A = unknown>(line: string): Promise<A> => JSON.parse(await said(`${line} --json`))
const refused = (line: string, where = env) =>
  Effect.runPromise(Effect.flip(CommandLine.run(line.split(" "), where)))

interface Unstuck {
  readonly replaced: ReadonlyArray<{
    readonly nonce: number
    readonly oldTxHash: string
    readonly newTxHash: string | null
    readonly maxFeePerGas: string
  }>
  readonly left: ReadonlyArray<unknown>
}

interface Shown {
  readonly transactions: ReadonlyArray<{
    readonly txHash: string
    readonly versions: number
    readonly requests: ReadonlyArray<string>
  }>
}

/** An op of a tenant's wallet for the service's EOA, with its expected answer. */
const submit = async () => {
  const settings = { rpc: service.info.rpc, entryPoint: service.info.settings.entryPoint }
  const { userOps } = await service.ok<DevService.Estimate>("/estimateGas", {
    operations: [
      {
        salt: "payer",
        walletCustody: 1,
        to: service.info.token,
        funcSignature: "transfer(address,uint256)",
        funcParams: [recipient, "1"]
      }
    ],
    settings
  })
  const op = DevService.first(userOps)
  expect(op.bundler).toBe(eoa)
  const answer = service.ask<DevService.TransactionResult>("/executeEncoded", {
    operations: [
      {
        encodedUserOp: op.encodedUserOp,
        userOpHash: op.userOpHash,
        walletCustody: 0,
        signature: service.signer.signingKey.sign(op.userOpHash).serialized
      }
    ],
    settings
  })
  while ((await service.provider.getTransactionCount(eoa, "pending")) === 0);
  return { answer }
}

describe("a lane of the service's own EOA", () => {
  it("a waiting transaction is listed, shown and repriced by the running service", async () => {
    expect(await json("lanes list")).toEqual([])
    expect(await said("lanes show 31337 deployer")).toContain("is under way")
    await service.automine(false)
    const { answer } = await submit()
    const shown = await json<Shown>(`lanes show ${chain} serviceEoa`)
    const { requests, txHash } = DevService.first(shown.transactions)
    const requestId = DevService.first(requests)

    expect(await json("lanes list")).toMatchObject([
      { chainId: 31337, signer: eoa, keys: ["serviceEoa"], waiting: 1, mined: 0 }
    ])
    expect(shown).toMatchObject({ signer: eoa, transactions: [{ state: "signed", versions: 1 }] })
    expect(await json("requests list --state pending --endpoint /executeEncoded")).toMatchObject([
      { requestId, account: "enterprise", chainId: 31337, state: "pending" }
    ])

    const dry = await json<Unstuck>(`lanes unstick --dry-run ${chain} ${eoa}`)
    expect(dry).toMatchObject({ replaced: [{ oldTxHash: txHash, newTxHash: null }], left: [] })
    expect(await json(`lanes show ${chain} ${eoa}`)).toMatchObject({
      transactions: [{ txHash, versions: 1 }]
    })

    const unstick = `lanes unstick ${chain} serviceEoa`
    expect(await refused(`${unstick} --operator bo`)).toBe(
      "--operator: no operator is called bo; there are: operator, ann"
    )
    expect(await refused(`${unstick} --reason ${"x".repeat(501)}`)).toContain("reason: expected at most 500")
    const done = await json<Unstuck>(`${unstick} --operator ann --reason stalled`)
    expect(acts(1)).toEqual([["ann", "unstick", `lane ${chain} ${eoa}`, "stalled"]])
    const [replaced] = done.replaced
    expect(replaced).toMatchObject({ oldTxHash: txHash, maxFeePerGas: dry.replaced[0]?.maxFeePerGas })
    const known = await service.provider.getTransaction(String(replaced?.newTxHash))
    expect(known).toMatchObject({ from: eoa, nonce: replaced?.nonce, blockHash: null })
    expect(known?.maxFeePerGas).toBe(BigInt(replaced?.maxFeePerGas ?? 0))
    const audited = await json<ReadonlyArray<{ hash: string; by: string }>>(
      `audit list --hash ${known?.hash}`
    )
    expect(audited).toMatchObject([{ by: "lanes unstick" }])

    // A command that cannot reach the service changes no state and reports why.
    expect(await refused(`lanes unstick ${chain} serviceEoa`, configured(null))).toContain(
      'configure its operator\'s port ("admin")'
    )
    expect(
      await refused(`lanes unstick ${chain} serviceEoa`, configured({ port: await Port.free(), token }))
    ).toContain("the service does not run there. Nothing was changed")
    const guess = "a guess of thirty-two characters."
    const unknown = await refused(`lanes unstick ${chain} serviceEoa`, configured({ port, token: guess }))
    expect(unknown).toContain("the service refused (401)")
    for (const secret of [guess, token]) expect(unknown).not.toContain(secret)
    expect(await json(`lanes show ${chain} ${eoa}`)).toMatchObject({ transactions: [{ versions: 2 }] })

    await service.automine(true)
    expect(await answer).toMatchObject({ status: 200, body: { status: 1, txHash: known?.hash } })
    expect(await json(`requests show ${requestId}`)).toMatchObject({
      requestId,
      account: "enterprise",
      endpoint: "/executeEncoded",
      signer: eoa,
      state: "final",
      txHashes: [known?.hash],
      ops: [{ index: 0, state: "settled", success: true, txHash: known?.hash }],
      httpStatus: 200
    })
    expect(await said(`requests show ${requestId}`)).not.toContain(service.info.rpc)
  }, 120_000)

  it("an empty lane cannot be repriced", async () => {
    expect(await refused(`lanes unstick ${chain} sponsor`)).toContain("castellan lanes list")
    expect(await refused("lanes unstick x serviceEoa")).toContain("expected a chain id")
    expect(await refused(`lanes show ${chain} 0x12`)).toContain("SIGNER")
    expect(await refused("requests show unknown")).toContain("castellan requests list")
  })
})

describe("castellan requests cancel", () => {
  it("ends requests before signing, and the service answers their caller", async () => {
    const { rpc, settings, token } = service.info
    const listed = (endpoint: string) =>
      json<ReadonlyArray<{ readonly requestId: string }>>(
        `requests list --state pending --endpoint ${endpoint}`
      )
    await service.automine(false)
    const payment = service.ask<DevService.TransactionResult>("/transactSigner", {
      to: recipient,
      value: "1",
      settings: { rpc, signer: settings.signer }
    })
    const { address } = service.signer
    while ((await service.provider.getTransactionCount(address, "pending")) < 2);
    // It waits while a transaction of the other kind is in flight.
    const waiting = service.ask<DevService.Envelope>("/execute", {
      operations: [
        {
          salt: "payer",
          walletCustody: 1,
          to: token,
          funcSignature: "transfer(address,uint256)",
          funcParams: [recipient, "1"]
        }
      ],
      settings
    })
    await expect.poll(() => listed("/execute"), { timeout: 20_000 }).toHaveLength(1)
    const { requestId } = DevService.first(await listed("/execute"))
    const signed = DevService.first(await listed("/transactSigner"))
    expect(await json(`requests cancel ${signed.requestId}`)).toMatchObject({ cancelled: [], kept: [0] })
    const done = { requestId, state: "final", cancelled: [0], kept: [] }
    expect(await json(`requests cancel ${requestId}`)).toEqual(done)
    expect(await json(`requests cancel ${requestId}`)).toEqual(done)
    expect(await waiting).toMatchObject({ status: 422, body: { code: "request_cancelled" } })
    await service.automine(true)
    expect(await payment).toMatchObject({ status: 200, body: { status: 1 } })
    expect(await refused("requests cancel unknown")).toContain("castellan requests list")
  }, 120_000)
})

describe("castellan requests release and drop", () => {
  it("release and drop decide on held requests, which the list and the request name", async () => {
    const { rpc, settings, token: erc20 } = service.info
    const transfer = () =>
      service.ask<DevService.Envelope>("/execute", {
        operations: [
          {
            salt: "payer",
            walletCustody: 1,
            to: erc20,
            funcSignature: "transfer(address,uint256)",
            funcParams: [recipient, "1"]
          }
        ],
        settings
      })
    await service.automine(false)
    const before = await service.provider.getTransactionCount(service.signer.address, "pending")
    const payment = service.ask("/transactSigner", {
      to: recipient,
      value: "1",
      settings: { rpc, signer: settings.signer }
    })
    while ((await service.provider.getTransactionCount(service.signer.address, "pending")) <= before);
    const [one, other] = [transfer(), transfer()]
    const pending = () =>
      json<ReadonlyArray<{ readonly requestId: string }>>("requests list --state pending --endpoint /execute")
    await expect.poll(pending, { timeout: 20_000 }).toHaveLength(2)
    const ids = (await pending()).map(({ requestId }) => requestId)
    expect(await refused(`requests release ${ids[0]}`)).toContain("is not held")
    expect(await refused(`requests drop ${ids[0]}`)).toContain("is not held")
    const journal = new DatabaseSync(database.path, { timeout: 5_000 })
    journal
      .prepare("update requests set held = 'nobody knows' where state = 'open' and endpoint = '/execute'")
      .run()
    journal.close()
    expect(await json("requests list --state held")).toMatchObject(
      ids.map((requestId) => ({ requestId, state: "held" }))
    )
    const [first = "", second = ""] = ids
    expect(await json(`requests show ${first}`)).toMatchObject({ state: "held", held: "nobody knows" })
    expect(await said(`requests show ${first}`)).toContain("nobody knows")
    expect(await json(`requests cancel ${first}`)).toMatchObject({ state: "pending", cancelled: [] })
    expect(await refused(`requests drop ${first} --reason ${"x".repeat(501)}`)).toContain("--reason")
    expect(await json(`requests drop ${first} --operator Ada --reason duplicate`)).toEqual({
      requestId: first,
      state: "final"
    })
    expect(await json(`requests release ${second}`)).toEqual({ requestId: second, state: "pending" })
    expect(await refused(`requests release ${second}`)).toContain("is not held")
    expect(acts(3)).toEqual([
      ["command line", "release", second, "by command"],
      ["command line: Ada", "drop", first, "duplicate"],
      ["command line", "cancel", first, "by command"]
    ])
    await service.automine(true)
    const answers = await Promise.all([one, other])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 422])
    expect(answers.find(({ status }) => status === 422)?.body).toMatchObject({ code: "request_dropped" })
    expect(await payment).toMatchObject({ status: 200 })
  }, 120_000)
})

describe("the operator's port", () => {
  const ask = (query: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${port}/lanes/unstick?${query}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      ...init
    })

  it("reprices a lane only with the port's token, and never for a web page", async () => {
    const query = `chain=${chain}&signer=${eoa}`
    expect((await ask(query, { headers: {} })).status).toBe(401)
    const page = { authorization: `Bearer ${token}`, origin: "https://other.example" }
    expect((await ask(query, { headers: page })).status).toBe(403)
    expect((await ask(query, { method: "GET" })).status).toBe(405)
    const answer = await ask(query)
    expect([answer.status, await answer.json()]).toEqual([200, { replaced: [], left: [] }])
  })
})
