import { describe, expect, it } from "@effect/vitest"
import { bytesOf, ReceiptCache } from "../../../src/application/chain/ReceiptCache.js"
import type { Receipt } from "../../../src/application/ports/chain/ChainRpc.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import type { RawLog } from "../../../src/domain/evm/RawLog.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { bytesInUse, MiB, textOf } from "../../support/Heap.js"

const hash = (n: number) => Hex.unsafe32(`0x${n.toString(16).padStart(64, "0")}`)

const receipt = (n: number, logs: ReadonlyArray<RawLog> = []): Receipt => ({
  txHash: hash(n),
  success: true,
  blockNumber: BigInt(n),
  blockHash: hash(n),
  gasUsed: 21_000n,
  cumulativeGasUsed: 21_000n,
  effectiveGasPrice: 1n,
  from: Address.zero,
  logs
})

/** A separate string in memory, as decoding a reply creates it. */
const own = (text: string): string => Buffer.from(text).toString("latin1")

const log = (n: number, data = Hex.empty): RawLog => ({
  address: own(Address.zero) as Address.Address,
  topics: [Hex.unsafe32(own(hash(n))), Hex.unsafe32(own(hash(n + 1)))],
  data,
  logIndex: n
})

const [one, other] = ["one" as AccountId, "other" as AccountId]

describe("receipts that were seen", () => {
  it("are returned to the account whose node gave them, and to no other", () => {
    const cache = new ReceiptCache()
    cache.set(one, receipt(1))
    expect(cache.get(one, hash(1))).toEqual(receipt(1))
    expect(cache.get(other, hash(1))).toBeUndefined()
    expect(cache.get(null, hash(1))).toBeUndefined()
    cache.set(other, { ...receipt(1), success: false })
    expect(cache.get(one, hash(1))?.success).toBe(true)
    cache.delete(other, hash(1))
    expect(cache.get(other, hash(1))).toBeUndefined()
    expect(cache.get(one, hash(1))?.success).toBe(true)
  })

  it("are returned to every account when the operator's node gave them, before its own node's reply", () => {
    const cache = new ReceiptCache()
    cache.set(one, { ...receipt(1), success: false })
    cache.set(null, receipt(1))
    expect([null, one, other].map((reader) => cache.get(reader, hash(1)))).toEqual(Array(3).fill(receipt(1)))
    cache.delete(one, hash(1))
    expect([null, one, other].map((reader) => cache.get(reader, hash(1)))).toEqual(Array(3).fill(undefined))
  })

  it("are the newest that fit, over all nodes", () => {
    const cache = new ReceiptCache(4 * bytesOf(receipt(0)))
    for (const n of [1, 2, 3]) cache.set(one, receipt(n))
    cache.get(one, hash(1))
    for (const n of [4, 5]) cache.set(other, receipt(n))
    expect([1, 2, 3].map((n) => cache.get(one, hash(n)) !== undefined)).toEqual([true, false, true])
  })

  it.each<readonly [string, () => ReadonlyArray<RawLog>]>([
    ["one log of two megabytes", () => [log(0, Hex.unsafe(`0x${textOf(2 * MiB)}`))]],
    ["two thousand empty logs", () => Array.from({ length: 2_000 }, (_, at) => log(at))]
  ])("use 4 MiB of memory together, and not twice that, with 24 of %s", (_, logs) => {
    const cache = new ReceiptCache(4 * MiB)
    for (let n = 1; n <= 24; n++) cache.set(one, receipt(n, logs()))
    const full = bytesInUse()
    expect(cache.get(one, hash(24))?.logs.length).toBeGreaterThan(0)
    // Memory it releases: garbage of other tests may exist before it was filled.
    for (let n = 1; n <= 24; n++) cache.delete(one, hash(n))
    const held = full - bytesInUse()
    expect(held).toBeGreaterThan(MiB)
    expect(held).toBeLessThan(8 * MiB)
  })
})
