import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { keccak256 } from "ethers"
import * as Hex from "../../src/domain/primitives/Hex.js"
import * as Scripted from "../../test/support/signing/Scripted.js"
import * as Slow from "../../test/support/signing/Slow.js"
import { signerKey } from "../harness/Castellan.js"
import { type Claim, ensure } from "../harness/Claim.js"
import { figure, median } from "../harness/Stats.js"

/** 50 digests signed by a key with 150 ms per call, like a KMS. */

const latencyMillis = 150
const size = 50

export const claim: Claim = {
  name: "slowSigner",
  title: "50 signatures by a key that takes 150 ms a call",
  boundSeconds: 60,
  run: async (context) => {
    const scope = await Effect.runPromise(Scope.make())
    context.defer(() => Effect.runPromise(Scope.close(scope, Exit.void)))
    const privateKey = signerKey(7)
    const rows = []
    const raw: Record<string, ReadonlyArray<number>> = {}
    for (const maxBatch of [1, 16]) {
      const provider = Slow.make(privateKey, latencyMillis, maxBatch)
      const signer = await Effect.runPromise(Scope.provide(Scripted.signer(provider), scope))
      const times: Array<number> = []
      for (let turn = 0; turn < context.size(10, 1); turn++) {
        const digests = Array.from({ length: size }, (_, n) =>
          Hex.unsafe32(keccak256(`0x${(turn * size + n).toString(16).padStart(8, "0")}`))
        )
        const began = performance.now()
        const signatures = await Effect.runPromise(
          Effect.forEach(digests, signer.sign, { concurrency: "unbounded" })
        )
        times.push(performance.now() - began)
        ensure(new Set(signatures).size === size, "two digests have the same signature")
      }
      const millis = median(times)
      raw[`${maxBatch} a call`] = times
      rows.push({
        what: maxBatch === 1 ? "one digest a call" : `${maxBatch} digests a call`,
        castellan: `${figure(millis)} ms`,
        against: `one after the other ${figure(size * latencyMillis)} ms`,
        ratio: `${figure(millis / (size * latencyMillis))} x`,
        demand: "under 500 ms",
        met: millis < 500
      })
    }
    return {
      rows,
      notes: ["Through the key ring of the service, each signature proved before it is used."],
      raw
    }
  }
}
