import { beforeAll, describe, expect, it } from "vitest"
import type { TransactionResult } from "../../support/http/DevService.js"
import { perFile } from "../../support/http/SharedService.js"
import { type Fault, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { use } from "../../support/Use.js"

interface Receipts {
  readonly requestStatus: number
  readonly receipts: ReadonlyArray<unknown>
  readonly pending: ReadonlyArray<string>
}

type Json = Readonly<Record<string, unknown>>

const service = perFile({ confirmations: 1, settledDepth: 3 })
const node = use(() => startFaultyNode(service.info.rpc))
beforeAll(async () => {
  await service.create("early")
})

const send = (method: string, ...params: ReadonlyArray<unknown>) => service.provider.send(method, [...params])

/** A sequencer's receipt of an executed transaction that is in no block yet: of the block after the latest one. */
const next = (latest: number): Json => ({
  blockNumber: `0x${(latest + 1).toString(16)}`,
  blockHash: `0x${"ab".repeat(32)}`
})

/**
 * Takes a transaction, executes it in a block that it takes back, and shows that receipt while it has no other one,
 * `shown` times so far.
 */
const sequencer = () => {
  const early = new Map<string, Json>()
  const state = { hash: "", shown: 0 }
  const behaviour: Fault = async ({ method, params }, ask) => {
    if (method === "eth_sendRawTransaction") {
      const before = await send("evm_snapshot")
      const answer = await ask()
      if ("error" in answer) return answer
      await send("evm_mine")
      const hash = String(answer.result)
      early.set(hash, await send("eth_getTransactionReceipt", hash))
      await send("evm_revert", before)
      state.hash = hash
      return ask()
    }
    const answer = await ask()
    const receipt = early.get(String(params[0]))
    if (method !== "eth_getTransactionReceipt" || receipt === undefined) return answer
    if ("error" in answer || answer.result !== null) return answer
    state.shown += 1
    const place = next(await service.provider.getBlockNumber())
    const logs = (receipt.logs as ReadonlyArray<Json>).map((log) => ({ ...log, ...place }))
    return { result: { ...receipt, ...place, logs } }
  }
  return { behaviour, state }
}

/** Events of a request until it is settled. */
const told = async (requestId: string): Promise<ReadonlyArray<string>> => {
  const answer = await fetch(`${service.info.baseUrl}/requests/${requestId}/events`, {
    headers: { "x-api-key": service.info.apiKeys.enterprise }
  })
  return [...(await answer.text()).matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data).type)
}

describe("a receipt that a node gives before the block is sealed", () => {
  it("does not count: the answer waits, /receipt says pending, and each event is written once", async () => {
    const { behaviour, state } = sequencer()
    node.behave(behaviour)
    const settings = { ...service.info.settings, rpc: node.url }
    await service.automine(false)
    let answered = false
    const answer = service
      .ask<TransactionResult>("/execute", { ...service.mint("early", service.signer.address, 1), settings })
      .finally(() => {
        answered = true
      })
    await expect.poll(() => answered || state.shown > 5, { timeout: 20_000 }).toBe(true)
    expect(answered).toBe(false)
    const asked = await service.ok<Receipts>("/receipt", { txHashes: [state.hash], rpc: node.url })
    expect(asked).toMatchObject({ requestStatus: 202, receipts: [], pending: [state.hash] })
    expect(answered).toBe(false)

    await service.automine(true)
    const { body, headers, status } = await answer
    expect(status).toBe(200)
    expect(body).toMatchObject({ status: 1, txHash: state.hash })
    const sealed = await service.ok<Receipts>("/receipt", { txHashes: [state.hash], rpc: node.url })
    expect(sealed).toMatchObject({ requestStatus: 200, receipts: [{ txHash: state.hash }], pending: [] })

    const requestId = String(headers.get("x-request-id"))
    for (let depth = 1; depth < 3; depth++) await send("evm_mine")
    await expect.poll(() => told(requestId), { timeout: 20_000 }).toContain("settled")
    const events = await told(requestId)
    expect(events.filter((type) => type !== "submitted")).toEqual([
      "accepted",
      "signed",
      "included",
      "final",
      "settled"
    ])
  }, 60_000)
})
