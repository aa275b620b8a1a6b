import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as ChainFacts from "../../../../src/application/chain/ChainFacts.js"
import { BundlerRpc } from "../../../../src/application/ports/chain/BundlerRpc.js"
import * as NetworkProfile from "../../../../src/application/ports/NetworkProfile.js"
import * as Given from "../../../../src/application/prepare/given/Given.js"
import type { Shared } from "../../../../src/application/prepare/OpContext.js"
import type { Snapshot } from "../../../../src/application/prepare/Snapshot.js"
import * as Make from "../../../support/journal/Make.js"

const profile = NetworkProfile.make({ chainId: Make.chainId })
const silent = Effect.die(new Error("the node is not queried"))

describe("ops that come back signed", () => {
  it.effect("are held against the prices of the snapshot, without another query", () =>
    Effect.gen(function* () {
      const context = {
        access: Make.access({ key: "serviceEoa" }),
        connection: { chain: { fees: silent }, profile, trust: "operator" }
      } as unknown as Shared
      const snapshot = {
        block: { timestamp: 0 },
        market: { nextBaseFee: 1n, tip: 1n }
      } as unknown as Snapshot
      const nonceOf = () => ({ key: 0n, sequence: 0n })
      expect(yield* Given.prepare({ context, batches: [], snapshot, nonceOf })).toEqual([])
    }).pipe(
      Effect.provideService(ChainFacts.ChainFacts, ChainFacts.make()),
      Effect.provideService(BundlerRpc, { connect: () => silent })
    )
  )
})
