import { type TransactionRequest, Wallet } from "ethers"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import {
  type DevService,
  type Envelope,
  elementAt,
  first,
  type RequestState,
  type TransactionResult
} from "../../support/http/DevService.js"
import { start } from "../../support/http/SharedService.js"

interface Replaced {
  readonly nonce: number
  readonly oldTxHash: string | null
  readonly newTxHash: string | null
  readonly maxFeePerGas: string
  readonly maxPriorityFeePerGas: string
}

interface Unstuck extends TransactionResult {
  readonly replaced: ReadonlyArray<Replaced>
  readonly unknown: ReadonlyArray<number>
}

interface Receipts {
  readonly requestStatus: number
  readonly receipts: ReadonlyArray<{ readonly txHash: string; readonly requestedHash?: string }>
  readonly pending: ReadonlyArray<string>
  readonly unknown: ReadonlyArray<string>
}

interface Waiting {
  readonly hash: string
  readonly nonce: number
  readonly to: string
  readonly value: bigint
  readonly input: string
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

const network = { receiptTimeoutMillis: 1_000 }

let service: DevService
/** An address that was never paid. */
let recipient: string
beforeEach(async () => {
  service = await start(network)
  recipient = Wallet.createRandom().address
})
afterEach(() => service.stop())

const gwei = 10n ** 9n

const settings = (more: object = {}) => ({
  rpc: service.info.rpc,
  signer: service.info.settings.signer,
  ...more
})
const request = (rest: object = {}, more: object = {}) => ({ settings: settings(more), ...rest })
const unstuck = (rest: object = {}, more: object = {}) => service.ok<Unstuck>("/unstuck", request(rest, more))
const pay = (value: number) => ({ to: recipient, value: String(value), settings: settings() })
const receiptOf = (...txHashes: ReadonlyArray<string>) =>
  service.ok<Receipts>("/receipt", { txHashes, rpc: service.info.rpc })

const nonce = () => service.provider.getTransactionCount(service.signer.address)

/** A transaction of the signer that waits to be mined: its request's id, and its hash. */
const stuck = async (value: number) => {
  const { body } = await service.ask<Envelope>("/transactSigner", pay(value))
  expect(body.code).toBe("outcome_unknown")
  return { requestId: body.requestId, txHash: String(body.txHash) }
}

/** A foreign transaction of the same key, straight to the node. */
const foreign = async (at: number, more: TransactionRequest = {}): Promise<string> => {
  const { hash } = await service.signer.sendTransaction({
    to: recipient,
    value: 1n,
    nonce: at,
    gasLimit: 21_000n,
    maxFeePerGas: 4n * gwei,
    maxPriorityFeePerGas: 1n,
    ...more
  })
  return hash
}

/** The signer's transactions in the node's pool, by nonce. */
const pool = async (): Promise<ReadonlyArray<Waiting>> => {
  const { pending } = await service.provider.send("txpool_content", [])
  const own = Object.entries<Record<string, Record<string, string>>>(pending).find(
    ([address]) => address.toLowerCase() === service.signer.address.toLowerCase()
  )
  return Object.values(own?.[1] ?? {})
    .map(
      ({ hash = "", input = "", maxFeePerGas = 0, maxPriorityFeePerGas = 0, nonce, to = "", value = 0 }) => ({
        hash,
        input,
        to: to.toLowerCase(),
        nonce: Number(nonce),
        value: BigInt(value),
        maxFeePerGas: BigInt(maxFeePerGas),
        maxPriorityFeePerGas: BigInt(maxPriorityFeePerGas)
      })
    )
    .sort((a, b) => a.nonce - b.nonce)
}

let keys = 0

/** A replacement that was sent and is not mined; `outcome` mines it and returns the answer. */
const replacing = async (rest: object = {}, more: object = {}) => {
  keys += 1
  const [key, body] = [`again-${keys}`, request(rest, more)]
  const sent = await service.keyed<Envelope>("/unstuck", body, key)
  expect([sent.status, sent.body.code]).toEqual([422, "outcome_unknown"])
  return {
    txHashes: sent.body.txHashes ?? [],
    outcome: async (): Promise<Unstuck> => {
      await service.automine(true)
      const answer = await service.keyed<Unstuck>("/unstuck", body, key)
      expect(answer.status).toBe(200)
      return answer.body
    }
  }
}

const settled = async (requestId: string): Promise<RequestState> => {
  await expect
    .poll(async () => (await service.request(requestId)).body.state, { timeout: 10_000 })
    .toBe("final")
  return (await service.request(requestId)).body
}

const nothingSent = {
  txHash: "",
  cumulativeGasUsed: 0,
  gasUsed: 0,
  effectiveGasPrice: "0",
  returnData: [],
  logs: [],
  txHashes: []
}

describe("without waiting transactions", () => {
  it("there is nothing to replace: status 2 and empty lists", async () => {
    await service.ok("/transactSigner", pay(1))
    for (const rest of [{}, { dryRun: true }, { fillUnknown: true }, { dryRun: true, fillUnknown: true }])
      expect(await unstuck(rest)).toEqual({ ...nothingSent, status: 2, replaced: [], unknown: [] })
    expect(await nonce()).toBe(1)
  })
})

describe("transactions that wait", () => {
  it("are listed by a dry run with their next prices, and stay unchanged", async () => {
    await service.automine(false)
    const [one, two] = [await stuck(1), await stuck(2)]
    const before = await pool()
    const answer = await unstuck({ dryRun: true })
    expect(answer).toMatchObject({ ...nothingSent, status: 2, unknown: [] })
    expect(
      answer.replaced.map(({ newTxHash, nonce, oldTxHash }) => ({ nonce, oldTxHash, newTxHash }))
    ).toEqual([
      { nonce: 0, oldTxHash: one.txHash, newTxHash: null },
      { nonce: 1, oldTxHash: two.txHash, newTxHash: null }
    ])
    for (const [index, { maxFeePerGas, maxPriorityFeePerGas }] of answer.replaced.entries()) {
      const old = before[index]
      if (old === undefined) throw new Error("the node has lost a transaction")
      expect(BigInt(maxFeePerGas) * 10n).toBeGreaterThanOrEqual(old.maxFeePerGas * 11n)
      expect(BigInt(maxPriorityFeePerGas) * 10n).toBeGreaterThanOrEqual(old.maxPriorityFeePerGas * 11n)
    }
    expect(await pool()).toEqual(before)
    const raised = await unstuck({ dryRun: true }, { percentTxGasPriceOvershoot: "900" })
    expect(BigInt(first(raised.replaced).maxFeePerGas)).toBeGreaterThan(
      BigInt(first(answer.replaced).maxFeePerGas)
    )
    await service.automine(true)
  })

  it("are replaced under their own nonces with their own payload, at the prices of the dry run", async () => {
    await service.automine(false)
    const [one, two] = [await stuck(1), await stuck(2)]
    const before = await pool()
    const dry = await unstuck({ dryRun: true })
    const { outcome, txHashes } = await replacing()
    const after = await pool()
    expect(after.map(({ hash }) => hash)).toEqual(txHashes)
    expect(after.map(({ input, nonce, to, value }) => ({ input, nonce, to, value }))).toEqual(
      before.map(({ input, nonce, to, value }) => ({ input, nonce, to, value }))
    )
    const body = await outcome()
    expect(body.status).toBe(1)
    expect(body.replaced).toEqual(
      dry.replaced.map((each, index) => ({ ...each, newTxHash: after[index]?.hash }))
    )
    expect(
      body.replaced.map(({ maxFeePerGas, maxPriorityFeePerGas }) => [maxFeePerGas, maxPriorityFeePerGas])
    ).toEqual(
      after.map(({ maxFeePerGas, maxPriorityFeePerGas }) => [
        String(maxFeePerGas),
        String(maxPriorityFeePerGas)
      ])
    )
    const mined = await service.provider.getTransactionReceipt(body.txHash)
    expect({ txHash: body.txHash, gasUsed: BigInt(body.gasUsed), txHashes: body.txHashes }).toEqual({
      txHash: after[0]?.hash,
      gasUsed: mined?.gasUsed,
      txHashes: [after[0]?.hash]
    })
    expect(await nonce()).toBe(2)
    expect(await service.provider.getBalance(recipient)).toBe(3n)

    for (const [index, { requestId }] of [one, two].entries()) {
      const { answer, httpStatus, txHashes } = await settled(requestId)
      const result = answer as TransactionResult
      const { hash } = after[index] ?? {}
      expect({ httpStatus, txHashes, txHash: result.txHash, status: result.status }).toEqual({
        httpStatus: 200,
        txHashes: [hash],
        txHash: hash,
        status: 1
      })
      expect(elementAt(result.returnData, 0)).toMatchObject({ success: true, txHash: hash })
    }
  })

  it("resolve in /receipt from the replaced hash to the mined one, for only this account", async () => {
    await service.automine(false)
    const { txHash } = await stuck(1)
    expect(await receiptOf(txHash)).toMatchObject({ requestStatus: 202, pending: [txHash], unknown: [] })
    const { outcome } = await replacing()
    expect(await service.provider.getTransaction(txHash)).toBe(null)
    const replaced = await receiptOf(txHash)
    expect(replaced).toEqual({ requestStatus: 202, receipts: [], pending: [txHash], unknown: [] })
    const body = await outcome()
    const nowhere = `0x${"77".repeat(32)}`
    const { pending, receipts, requestStatus, unknown } = await receiptOf(nowhere, txHash, body.txHash)
    expect({ requestStatus, pending, unknown }).toEqual({
      requestStatus: 202,
      pending: [],
      unknown: [nowhere]
    })
    expect(receipts.map((each) => [each.txHash, each.requestedHash])).toEqual([
      [body.txHash, txHash],
      [body.txHash, undefined]
    ])
    const { requestedHash, ...one } = first(receipts)
    expect(one).toEqual(receipts[1])
    const others = await service.ask<Receipts>(
      "/receipt",
      { txHashes: [txHash], rpc: service.info.rpc },
      { key: service.info.apiKeys.pro }
    )
    expect(others.body).toEqual({ requestStatus: 202, receipts: [], pending: [], unknown: [txHash] })
  })

  it("are replaced for operations too: the operation's request has the outcome", async () => {
    const [wallet = ""] = await service.create("stuck")
    await service.automine(false)
    const { body: unknown } = await service.ask<Envelope>("/execute", service.mint("stuck", wallet, 5))
    expect(unknown.code).toBe("outcome_unknown")
    const { outcome } = await replacing()
    const body = await outcome()
    expect(body.replaced.map(({ oldTxHash }) => oldTxHash)).toEqual([unknown.txHash])
    const { answer } = await settled(unknown.requestId)
    const result = answer as TransactionResult
    expect(result).toMatchObject({ status: 1, txHash: body.txHash })
    expect(elementAt(result.returnData, 0)).toMatchObject({ success: true, txHash: body.txHash })
    expect(await service.token.getFunction("balanceOf")(wallet)).toBe(5n)
  })

  it("are replaced for another account with the same signer too, and the answer has their outcomes", async () => {
    await service.automine(false)
    const { requestId, txHash } = await stuck(1)
    const others = { key: service.info.apiKeys.pro }
    const sent = await service.keyed<Envelope>("/unstuck", request(), "of-others", others)
    expect([sent.status, sent.body.code]).toEqual([422, "outcome_unknown"])
    await service.automine(true)
    const newTxHash = (await settled(requestId)).txHashes[0]
    const { body, status } = await service.keyed<Unstuck>("/unstuck", request(), "of-others", others)
    expect([status, body]).toMatchObject([
      200,
      { status: 1, txHash: newTxHash, replaced: [{ nonce: 0, oldTxHash: txHash, newTxHash }] }
    ])
  })

  it("may be replaced repeatedly, each time for at least a tenth more, until the operator's cap", async () => {
    const cap = 3n * gwei
    await service.stop()
    service = await start({ ...network, maxFeePerGas: String(cap) })
    await service.automine(false)
    await stuck(1)
    const price = async () => first(await pool()).maxFeePerGas
    let last = await price()
    while (last * 11n <= cap * 10n) {
      await replacing()
      const next = await price()
      expect(next * 10n).toBeGreaterThanOrEqual(last * 11n)
      last = next
    }
    for (const rest of [{}, { dryRun: true }]) {
      const refused = await service.refused(422, "/unstuck", request(rest))
      expect(refused.code).toBe("fees_above_cap")
    }
    expect(last).toBeLessThanOrEqual(cap)
    expect(await price()).toBe(last)
    await service.automine(true)
    await expect.poll(nonce).toBe(1)
    expect(await service.provider.getBalance(recipient)).toBe(1n)
  })
})

describe("foreign transactions with the same key", () => {
  it("are named and left alone", async () => {
    await service.automine(false)
    const hashes = [await foreign(0), await foreign(1)]
    for (const rest of [{}, { dryRun: true }])
      expect(await unstuck(rest)).toEqual({ ...nothingSent, status: 2, replaced: [], unknown: [0, 1] })
    expect((await pool()).map(({ hash }) => hash)).toEqual(hashes)
    await service.automine(true)
  })

  it("are replaced by empty transactions on request, and work behind them continues", async () => {
    await service.automine(false)
    await foreign(0)
    const { requestId, txHash } = await stuck(3)
    expect(txHash).toBe("")
    const dry = await unstuck({ dryRun: true, fillUnknown: true })
    expect(dry.unknown).toEqual([])
    expect(dry.replaced.map(({ newTxHash, nonce, oldTxHash }) => ({ nonce, oldTxHash, newTxHash }))).toEqual([
      { nonce: 0, oldTxHash: null, newTxHash: null }
    ])
    const { outcome } = await replacing({ fillUnknown: true }, { percentTxGasPriceOvershoot: 900 })
    expect(first(await pool()).to).toBe(service.signer.address.toLowerCase())
    expect((await pool())[0]).toMatchObject({ nonce: 0, value: 0n, input: "0x" })
    const body = await outcome()
    expect(body.status).toBe(1)
    expect(body.replaced.map(({ nonce, oldTxHash }) => ({ nonce, oldTxHash }))).toEqual([
      { nonce: 0, oldTxHash: null }
    ])
    expect(body.txHash).toBe(first(body.replaced).newTxHash)
    expect((await settled(requestId)).httpStatus).toBe(200)
    expect(await service.provider.getBalance(recipient)).toBe(3n)
    expect(await nonce()).toBe(2)
  })
})

describe("a repeat under one key", () => {
  it("replaces once and gets the outcome; a dry run leaves the key free", async () => {
    await service.automine(false)
    const { txHash } = await stuck(1)
    const dry = await service.keyed<Unstuck>("/unstuck", request({ dryRun: true }), "again")
    expect([dry.status, dry.body.status]).toEqual([200, 2])
    const one = await service.keyed<Envelope>("/unstuck", request(), "again")
    expect(one.body.code).toBe("outcome_unknown")
    const replaced = await pool()
    expect(replaced.map(({ hash }) => hash)).toEqual([one.body.txHash])
    expect(one.body.txHash).not.toBe(txHash)
    expect((await service.request(one.body.requestId)).body).toMatchObject({
      endpoint: "/unstuck",
      state: "pending"
    })
    const repeat = service.keyed<Unstuck>("/unstuck", request(), "again")
    await service.automine(true)
    const { body, status } = await repeat
    expect([status, body.status, body.txHash]).toEqual([200, 1, one.body.txHash])
    expect((await settled(one.body.requestId)).answer).toEqual(body)
    expect(await nonce()).toBe(1)
  })
})
