import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as MemoryAbiStore from "../src/adapters/memory/AbiStore.js"
import * as MemoryBudgets from "../src/adapters/memory/Budgets.js"
import * as MemoryBundlers from "../src/adapters/memory/BundlerRpc.js"
import * as MemoryChain from "../src/adapters/memory/ChainRpc.js"
import * as MemoryNetworks from "../src/adapters/memory/Networks.js"
import * as MemoryPaymasters from "../src/adapters/memory/PaymasterRpc.js"
import * as PrivateKeys from "../src/adapters/private-key/KeyProvider.js"
import * as InMemoryJournal from "../src/adapters/sql/journal/InMemory.js"
import type * as Tenants from "../src/application/ports/Tenants.js"
import {
  Address,
  type Caller,
  CheckWallets,
  Engine,
  GetReceipts,
  GetSigner,
  Hex,
  KeyRing,
  NetworkProfile,
  PredictWallets,
  Salt,
  WalletAddress,
  walletProxyCreationCode
} from "../src/index.js"

// A program of somebody else's that embeds the application layer: his own chain, his own keys, no HTTP.

const chainId = 31_337n
const url = "http://node.test"
const factory = Address.unsafe(`0x${"fa".repeat(20)}`)
const beacon = Address.unsafe(`0x${"be".repeat(20)}`)
const accountId = "mine" as Tenants.AccountId

const caller: Caller = {
  requestId: "request-1",
  principal: { accountId, name: "mine", tier: "free", scopes: new Set(["read", "write"]), paused: false }
}

const profile = NetworkProfile.make({ chainId, factory, beacon })

const ports = (node: MemoryChain.Node) =>
  Engine.layer.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        MemoryAbiStore.layer,
        MemoryBudgets.layer,
        MemoryBundlers.layer(),
        MemoryPaymasters.layer(),
        MemoryChain.layer({ [url]: node }),
        InMemoryJournal.layer,
        MemoryNetworks.layer({ profiles: [profile] }),
        KeyRing.layer({
          providers: {
            memory: { open: PrivateKeys.make({ keys: { mine: Redacted.make(`0x${"11".repeat(32)}`) } }) }
          },
          signers: [
            {
              accountIds: [accountId],
              clientId: "test",
              versionId: "1",
              source: { provider: "memory", key: "mine" }
            }
          ],
          system: {}
        })
      )
    )
  )

describe("the application layer in another program", () => {
  it.effect("predicts wallets, checks them on an in-memory chain and reads its receipts", () =>
    Effect.gen(function* () {
      const node = yield* MemoryChain.make({ chainId })
      yield* Effect.provide(
        Effect.gen(function* () {
          const predicted = yield* PredictWallets.run(caller, {
            accounts: [{ salt: "alice", walletCustody: 1 }],
            settings: {
              factory,
              beaconAdminAddress: beacon,
              beaconAdminCreationCode: walletProxyCreationCode
            }
          })
          const code = Either.getOrThrow(WalletAddress.creationCode(walletProxyCreationCode))
          expect(predicted[0]?.wallet).toBe(
            WalletAddress.predict({
              factory,
              initCodeHash: WalletAddress.initCodeHash(code, beacon),
              create2Salt: WalletAddress.create2Salt(
                Salt.hash(Either.getOrThrow(Salt.from("alice"))),
                1,
                false
              )
            })
          )
          const checked = yield* CheckWallets.run(caller, {
            accounts: [{ salt: "alice", walletCustody: 1 }],
            settings: { rpc: url }
          })
          expect(checked).toEqual([
            { exists: false, wallet: predicted[0]?.wallet, salt: "alice", error: null }
          ])
          const signer = yield* GetSigner.run(caller, { signer: { clientId: "test", versionId: "1" } })
          expect(signer.type).toBe("PRIVATE_KEY")
          const receipts = yield* GetReceipts.run(caller, {
            rpc: url,
            txHashes: [Hex.unsafe32(`0x${"22".repeat(32)}`)]
          })
          expect(receipts).toMatchObject({ requestStatus: 202, receipts: [], pending: [] })
        }),
        ports(node)
      )
    })
  )
})
