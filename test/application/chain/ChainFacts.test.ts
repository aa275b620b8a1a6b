import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import * as ChainFacts from "../../../src/application/chain/ChainFacts.js"
import type { Block, ChainClient } from "../../../src/application/ports/chain/ChainRpc.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const block = (number: bigint): Block => ({
  number,
  hash: Hex.unsafe32(`0x${"0b".repeat(32)}`),
  timestamp: 100,
  gasLimit: 30_000_000n,
  baseFeePerGas: 7n
})

/** A node whose head grows by one block per query; null for the first `missing` queries. */
const node = (missing = 0) =>
  Effect.map(Monitor.node("any"), ({ chain }) => {
    let asked = 0
    const client: ChainClient = {
      ...chain,
      block: () => Effect.sync(() => (++asked > missing ? block(BigInt(asked)) : null))
    }
    return client
  })

const numberOf = (facts: ChainFacts.ChainFacts, chain: ChainClient, when: "now" | "recent") =>
  Effect.map(facts.block(chain, when), (found) => found?.number ?? null)

describe("the latest block", () => {
  test("is cached where a recent block suffices, and read each time where it does not", function* () {
    const facts = ChainFacts.make()
    const chain = yield* node()
    expect(yield* numberOf(facts, chain, "recent")).toBe(1n)
    yield* Time.adjust(ChainFacts.recentMillis - 1)
    expect(yield* numberOf(facts, chain, "recent")).toBe(1n)
    yield* Time.adjust(1)
    expect(yield* numberOf(facts, chain, "recent")).toBe(2n)
    expect(yield* numberOf(facts, chain, "now")).toBe(3n)
    expect(yield* numberOf(facts, chain, "recent")).toBe(3n)
  })

  test("is read again where it was missing, and from each node separately", function* () {
    const facts = ChainFacts.make()
    const empty = yield* node(1)
    expect(yield* numberOf(facts, empty, "recent")).toBe(null)
    expect(yield* numberOf(facts, empty, "recent")).toBe(2n)
    expect(yield* numberOf(facts, yield* node(), "recent")).toBe(1n)
  })
})

test("fees and a balance are read each time unless the caller accepts recent ones", function* () {
  const facts = ChainFacts.make()
  const { chain } = yield* Monitor.node("any")
  let told = 0n
  const next = Effect.sync(() => ++told)
  const counting: ChainClient = {
    ...chain,
    balance: () => next,
    fees: Effect.map(next, (tip) => ({ nextBaseFee: 1n, tip }))
  }
  const tip = (when?: "recent") => Effect.map(facts.fees(counting, when), (fees) => fees.tip)
  expect([yield* tip("recent"), yield* tip("recent"), yield* tip()]).toEqual([1n, 1n, 2n])
  yield* Time.adjust(ChainFacts.recentFeesMillis - 1)
  expect(yield* tip("recent")).toBe(2n)
  yield* Time.adjust(1)
  expect(yield* tip("recent")).toBe(3n)
  const [one, other] = [Address.unsafe(`0x${"01".repeat(20)}`), Address.unsafe(`0x${"02".repeat(20)}`)]
  const wei = (address: Address.Address, when?: "recent") => facts.balance(counting, address, when)
  expect([yield* wei(one), yield* wei(one, "recent"), yield* wei(other, "recent")]).toEqual([4n, 4n, 5n])
  yield* Time.adjust(ChainFacts.recentMillis)
  expect(yield* wei(one, "recent")).toBe(6n)
})

test("the last block and fees seen are kept per node, however old", function* () {
  const facts = ChainFacts.make()
  const chain = yield* node()
  expect(facts.lastSeen(chain)).toBeNull()
  yield* facts.block(chain, "now")
  expect(facts.lastSeen(chain)).toBeNull()
  const fees = yield* facts.fees(chain)
  yield* Time.adjust("1 hour")
  expect(facts.lastSeen(chain)).toEqual({ block: block(1n), fees })
  expect(facts.lastSeen(yield* node())).toBeNull()
})

describe("the code of a contract", () => {
  test("is read once; a foreign contract's code is read again a minute later", function* () {
    const facts = ChainFacts.make()
    const { chain } = yield* Monitor.node("any")
    const address = Address.unsafe(`0x${"c0".repeat(20)}`)
    let [code, asked] = [Hex.unsafe("0x60"), 0]
    const client: ChainClient = {
      ...chain,
      code: () =>
        Effect.sync(() => {
          asked += 1
          return code
        })
    }
    const looks = [facts.code(client, address), facts.code(client, address, "recent")]
    expect(yield* Effect.all(looks)).toEqual(["0x60", "0x60"])
    yield* Time.adjust(ChainFacts.codeMillis - 1)
    expect(yield* Effect.all(looks)).toEqual(["0x60", "0x60"])
    expect(asked).toBe(1)
    yield* Time.adjust(1)
    // The contract destroyed itself, or its block is gone.
    code = Hex.empty
    expect(yield* facts.code(client, address)).toBe("0x60")
    expect(asked).toBe(1)
    expect(yield* facts.code(client, address, "recent")).toBeNull()
    expect(yield* facts.code(client, address)).toBeNull()
    expect(asked).toBe(3)
  })
})
