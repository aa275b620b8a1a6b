import { describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { expect } from "vitest"
import * as MemoryRpc from "../../../src/adapters/memory/ChainRpc.js"
import * as Releases from "../../../src/application/engine/Releases.js"
import * as Watcher from "../../../src/application/engine/Watcher.js"
import type { AccountId } from "../../../src/application/ports/Accounts.js"
import { type ChainClient, ChainRpcError, type Receipt } from "../../../src/application/ports/ChainRpc.js"
import type { TransactionRecord } from "../../../src/application/ports/Journal.js"
import type { NetworkProfile } from "../../../src/application/ports/Networks.js"
import * as Address from "../../../src/domain/evm/Address.js"
import * as Hex from "../../../src/domain/evm/Hex.js"
import * as NetworkProfiles from "../../../src/hosts/NetworkProfiles.js"

const hashOf = (n: number) => Hex.unsafe32(`0x${n.toString(16).padStart(64, "0")}`)

const receiptOf = (txHash: Hex.Bytes32): Receipt => ({
  txHash,
  success: true,
  blockNumber: 1n,
  blockHash: hashOf(0),
  gasUsed: 21_000n,
  cumulativeGasUsed: 21_000n,
  effectiveGasPrice: 1n,
  from: Address.zero,
  logs: []
})

const [development] = NetworkProfiles.make({ networks: [], accounts: [], development: true }).networks

const profile: NetworkProfile = Object.assign({}, development, { pollIntervalMillis: 1 })

const recordOf = (n: number): TransactionRecord => ({
  chainId: 31_337n,
  signer: Address.zero,
  nonce: BigInt(n),
  access: {
    accountId: "a" as AccountId,
    key: "serviceEoa",
    rpc: Redacted.make("http://node"),
    trust: "operator"
  },
  state: "signed",
  versions: [{ txHash: hashOf(n), raw: Hex.empty, maxFeePerGas: 1n, maxPriorityFeePerGas: 1n }],
  signedAt: 0,
  ops: [],
  direct: null,
  mined: null
})

/** Watches transactions 1 to `count` at a node with these receipts, and waits for the last one's. */
const lastOf = (count: number, receipt: ChainClient["receipt"]) =>
  Effect.gen(function* () {
    const node = yield* MemoryRpc.make({ chainId: 31_337n })
    const chain: ChainClient = { ...node.client("http://node"), receipt }
    const last = yield* Deferred.make<Receipt>()
    const watcher = yield* Watcher.make({
      settlement: {
        mined: (_, { nonce }, mined) =>
          nonce === BigInt(count) ? Effect.asVoid(Deferred.succeed(last, mined)) : Effect.void,
        finalised: () => Effect.void,
        vanished: () => Effect.void,
        stranded: () => Effect.void
      },
      releases: yield* Releases.make,
      attend: () => Effect.void
    })
    for (let n = 1; n <= count; n += 1) yield* watcher.watch({ chain, profile, record: recordOf(n) })
    return yield* Effect.timeoutOption(Deferred.await(last), 5_000)
  })

describe("the watcher", () => {
  it.scopedLive("a thousand transactions that are never mined do not keep one that is from its turn", () =>
    Effect.gen(function* () {
      const found = yield* lastOf(1_001, (txHash) =>
        Effect.succeed(txHash === hashOf(1_001) ? receiptOf(txHash) : null)
      )
      expect(found).toMatchObject({ _tag: "Some", value: { gasUsed: 21_000n } })
    })
  )

  it.scopedLive("a crash of one look does not end the watch", () =>
    Effect.gen(function* () {
      let looks = 0
      const found = yield* lastOf(1, (txHash) =>
        Effect.suspend(() => {
          looks += 1
          return looks === 1 ? Effect.die("a bug of the adapter") : Effect.succeed(receiptOf(txHash))
        })
      )
      expect(found).toMatchObject({ _tag: "Some", value: { gasUsed: 21_000n } })
    })
  )

  it.scopedLive("a receipt that cannot be had does not hold up another", () =>
    Effect.gen(function* () {
      const broken = new ChainRpcError({ reason: "notAnRpc", origin: "http://node", message: "malformed" })
      const found = yield* lastOf(2, (txHash) =>
        txHash === hashOf(1) ? Effect.fail(broken) : Effect.succeed(receiptOf(txHash))
      )
      expect(found).toMatchObject({ _tag: "Some", value: { gasUsed: 21_000n } })
    })
  )
})
