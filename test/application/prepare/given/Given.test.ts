import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as ChainFacts from "../../../../src/application/chain/ChainFacts.js"
import { BundlerRpc } from "../../../../src/application/ports/chain/BundlerRpc.js"
import * as NetworkProfile from "../../../../src/application/ports/NetworkProfile.js"
import type { GivenCall } from "../../../../src/application/prepare/Call.js"
import * as Given from "../../../../src/application/prepare/given/Given.js"
import type { Shared } from "../../../../src/application/prepare/OpContext.js"
import type { Snapshot } from "../../../../src/application/prepare/Snapshot.js"
import * as Make from "../../../support/journal/Make.js"

const profile = NetworkProfile.make({ chainId: Make.chainId })
const call = {
  requestId: "r",
  index: 0,
  kind: "given",
  custody: 0,
  dependsOn: null,
  wallet: Make.space(0).wallet
}
const batches = [{ requestId: "r", calls: [call as GivenCall], revert: String, mayWait: false }]
const silent = Effect.die(new Error("the node is not queried"))

describe("ops that come back signed", () => {
  it.effect("are compared with the snapshot, without a query where none of them can be measured", () =>
    Effect.gen(function* () {
      const context = {
        access: Make.access({ key: "serviceEoa" }),
        connection: { chain: { fees: silent }, profile, trust: "operator" }
      } as unknown as Shared
      const snapshot = {
        block: { timestamp: 0 },
        wallets: new Map(),
        market: { nextBaseFee: 1n, tip: 1n }
      } as unknown as Snapshot
      const nonceOf = () => ({ key: 0n, sequence: 0n })
      expect(yield* Given.prepare({ context, batches, snapshot, nonceOf })).toMatchObject([
        { success: { ops: [], failed: new Map([[0, { code: "wallet_not_deployed" }]]), existing: [] } }
      ])
    }).pipe(
      Effect.provideService(ChainFacts.ChainFacts, ChainFacts.make()),
      Effect.provideService(BundlerRpc, { connect: () => silent })
    )
  )
})
