import { describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Redacted } from "effect"
import { expect } from "vitest"
import * as InFlight from "../../../src/application/lanes/InFlight.js"
import * as NonceManager from "../../../src/application/lanes/NonceManager.js"
import * as StuckTransactions from "../../../src/application/lanes/StuckTransactions.js"
import * as TransactionMonitor from "../../../src/application/lanes/TransactionMonitor.js"
import {
  type Block,
  type ChainClient,
  ChainRpcError,
  type Receipt
} from "../../../src/application/ports/chain/ChainRpc.js"
import type { TransactionRecord } from "../../../src/application/ports/journal/Transactions.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Journals from "../../support/journal/Journals.js"
import * as MemoryRpc from "../../support/memory/ChainRpc.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const hashOf = (n: number) => Hex.unsafe32(`0x${n.toString(16).padStart(64, "0")}`)
const block: Block = { number: 1n, hash: hashOf(9), timestamp: 0, gasLimit: 0n, baseFeePerGas: null }
const receipt: Receipt = {
  txHash: hashOf(1),
  success: true,
  blockNumber: block.number,
  blockHash: block.hash,
  gasUsed: 21_000n,
  cumulativeGasUsed: 21_000n,
  effectiveGasPrice: 1n,
  from: Address.zero,
  logs: []
}
const record: TransactionRecord = {
  chainId: 31_337n,
  signer: Address.zero,
  nonce: 1n,
  access: {
    accountId: "a" as AccountId,
    key: "serviceEoa",
    rpc: Redacted.make("http://node"),
    trust: "operator"
  },
  state: "signed",
  versions: [
    { txHash: hashOf(1), raw: Hex.unsafe("0x02"), maxFeePerGas: 10n ** 18n, maxPriorityFeePerGas: 1n }
  ],
  signedAt: 0,
  ops: [],
  direct: null,
  mined: null
}
const nothing = () => Effect.void
const settlement = {
  submitted: nothing,
  mined: nothing,
  finalised: nothing,
  vanished: nothing,
  stranded: () => Effect.succeed(true)
}

const ends = { "a defect": Effect.die("a bug of the adapter"), "an interruption": Effect.interrupt }

describe("the watch on a transaction", () => {
  it.live.each(Object.entries(ends))("survives a defect in one poll and %s of a round", ([, end]) =>
    Effect.gen(function* () {
      let rounds = 0
      const node = yield* MemoryRpc.make({ chainId: 31_337n })
      let looks = 0
      const chain: ChainClient = {
        ...node.client("http://node"),
        block: () => Effect.succeed(block),
        receipt: () =>
          Effect.suspend(() => {
            looks += 1
            if (looks === 1) return Effect.die("a bug of the adapter")
            return Effect.succeed(rounds === 0 ? null : receipt)
          })
      }
      const found = yield* Deferred.make<Receipt>()
      const watcher = yield* TransactionMonitor.make({
        settlement: {
          ...settlement,
          mined: (_, __, mined) => Effect.asVoid(Deferred.succeed(found, mined))
        },
        inFlight: InFlight.make(),
        attend: () =>
          Effect.suspend(() => {
            rounds += 1
            return rounds === 1 ? end : Effect.void
          }),
        accessNodes: { ofOperator: () => Effect.succeed(chain), ofCaller: () => Effect.succeed(null) }
      })
      const profile = NetworkProfile.make({ chainId: 80_002n, settledDepth: 1, pollIntervalMillis: 1 })
      yield* watcher.watch({ chain, profile, record })
      expect(yield* Effect.timeoutOption(Deferred.await(found), 5_000)).toMatchObject({
        _tag: "Some",
        value: { gasUsed: 21_000n }
      })
    })
  )

  test("survives a defect while bytes are sent, and offers them again at growing intervals", function* () {
    const node = yield* MemoryRpc.make({ chainId: 31_337n })
    const offers: Array<number> = []
    const chain: ChainClient = {
      ...node.client("http://node"),
      sendRawTransaction: () =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          offers.push(now)
          return offers.length === 1
            ? Effect.die(new Error("a bug of the adapter"))
            : Effect.fail(new ChainRpcError({ reason: "rejected", origin: "http://node", message: "full" }))
        })
    }
    const inFlight = InFlight.make()
    const journal = Journals.methodsOf(yield* InMemory.makeJournal)
    const accessNodes = { ofOperator: () => Effect.succeed(chain), ofCaller: () => Effect.succeed(null) }
    const watcher = yield* TransactionMonitor.make({
      settlement,
      inFlight,
      accessNodes,
      attend: StuckTransactions.make({
        accessNodes,
        transactionJournal: journal,
        lanes: NonceManager.make(journal),
        settlement,
        signerOf: () => Effect.die(new Error("no signer here")),
        scope: yield* Effect.scope
      })
    })
    const bumpAfterMillis = 600_000
    const profile = NetworkProfile.make({ chainId: 80_002n, pollIntervalMillis: 125, bumpAfterMillis })
    yield* watcher.watch({ chain, profile, record })
    expect(inFlight.count(record)).toBe(1)
    for (let n = 0; n < 60; n += 1) yield* Time.adjust(1_000)
    // Doubled from 250 ms up to 10 s, each until the next poll.
    for (const [n, at] of offers.slice(1).entries()) {
      const expected = Math.min(250 * 2 ** n, 10_000)
      expect(at - (offers[n] ?? 0)).toBeGreaterThanOrEqual(expected)
      expect(at - (offers[n] ?? 0)).toBeLessThanOrEqual(expected + 125)
    }
    expect(offers.length).toBeGreaterThanOrEqual(9)
  })
})
