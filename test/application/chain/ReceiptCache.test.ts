import { describe, expect, it } from "@effect/vitest"
import * as ReceiptCache from "../../../src/application/chain/ReceiptCache.js"
import type { ChainClient, Receipt } from "../../../src/application/ports/chain/ChainRpc.js"
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

/** The text of its own in memory, as a decoded answer has it. */
const own = (text: string): string => Buffer.from(text).toString("latin1")

const log = (n: number, data = Hex.empty): RawLog => ({
  address: own(Address.zero) as Address.Address,
  topics: [Hex.unsafe32(own(hash(n))), Hex.unsafe32(own(hash(n + 1)))],
  data,
  logIndex: n
})

/** Two nodes, of which a cache only asks which is which. */
const node = (): ChainClient => Object.create(null)
const [one, other] = [node(), node()]

describe("receipts that were seen", () => {
  it("are told of the node that gave them, and of no other", () => {
    const cache = ReceiptCache.make()
    cache.set(one, hash(1), receipt(1))
    expect(cache.get(one, hash(1))).toEqual(receipt(1))
    expect(cache.get(other, hash(1))).toBeUndefined()
    cache.set(other, hash(1), { ...receipt(1), success: false })
    expect(cache.get(one, hash(1))?.success).toBe(true)
    cache.delete(other, hash(1))
    expect(cache.get(other, hash(1))).toBeUndefined()
    expect(cache.get(one, hash(1))?.success).toBe(true)
  })

  it("are the newest ones that have room together, those of all nodes", () => {
    const cache = ReceiptCache.make(4 * ReceiptCache.bytesOf(receipt(0)))
    for (const n of [1, 2, 3]) cache.set(one, hash(n), receipt(n))
    cache.get(one, hash(1))
    for (const n of [4, 5]) cache.set(other, hash(n), receipt(n))
    expect([1, 2, 3].map((n) => cache.get(one, hash(n)) !== undefined)).toEqual([true, false, true])
  })

  const kinds = {
    "one log of two megabytes": () => [log(0, Hex.unsafe(`0x${textOf(2 * MiB)}`))],
    "eight thousand empty logs": () => Array.from({ length: 8_000 }, (_, at) => log(at)),
    "thirty logs of eighty kilobytes": () =>
      Array.from({ length: 30 }, (_, at) => log(at, Hex.unsafe(`0x${textOf(80 * 1_024)}`)))
  }
  for (const [kind, logs] of Object.entries(kinds))
    it(`have 8 MiB of memory together, and not twice that, when there are 48 of ${kind}`, () => {
      const cache = ReceiptCache.make(8 * MiB)
      const before = bytesInUse()
      for (let n = 1; n <= 48; n++) cache.set(one, hash(n), receipt(n, logs()))
      const held = bytesInUse() - before
      expect(cache.get(one, hash(48))?.logs.length).toBeGreaterThan(0)
      expect(held).toBeGreaterThan(2 * MiB)
      expect(held).toBeLessThan(16 * MiB)
    })
})
