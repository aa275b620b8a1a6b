import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as ChainFacts from "../../../../src/application/chain/ChainFacts.js"
import * as Sending from "../../../../src/application/intake/submission/Sending.js"
import { WakeUps } from "../../../../src/application/lanes/requests/WakeUps.js"
import * as Payer from "../../../../src/application/pay/Payer.js"
import { Bundler, ofNode } from "../../../../src/application/ports/chain/Bundler.js"
import { ChainRpcError } from "../../../../src/application/ports/chain/ChainRpc.js"
import { OpJournal } from "../../../../src/application/ports/journal/OpJournal.js"
import { RequestJournal } from "../../../../src/application/ports/journal/RequestJournal.js"

const origin = "http://10.0.0.5:8545"

/** What is told of a bundle that its node, named by this one, kept from being sent. */
const toldOf = (trust: "caller" | "operator", reason: ChainRpcError["reason"]) => {
  const error = new ChainRpcError({ reason, origin, message: `${origin}: no answer within 5000 ms` })
  const route = {
    caller: { requestId: "r1" },
    context: {
      aggregator: null,
      buffers: {},
      connection: { chain: { origin }, profile: { chainId: 1n }, trust },
      payer: Payer.wallet
    },
    submitter: { address: "0x01" }
  } as unknown as Sending.SubmissionRoute
  const services = Context.make(Bundler, { submit: () => Effect.fail(ofNode(error)) }).pipe(
    Context.add(OpJournal, { abandonUnsigned: () => Effect.void } as unknown as OpJournal["Type"]),
    Context.add(RequestJournal, { durable: Effect.void } as unknown as RequestJournal["Type"]),
    Context.add(ChainFacts.ChainFacts, ChainFacts.make()),
    Context.add(WakeUps, { signal: () => Effect.void } as unknown as WakeUps)
  )
  const prices = { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n, legacy: false }
  return Sending.send(route, { gasBound: 1n, prices }, { alone: false, ops: [] }, (data) => data).pipe(
    Effect.provide(services),
    Effect.map(({ fault }) => fault?.failure.message)
  )
}

describe("a node that fails when a bundle is to be sent", () => {
  it.effect("is named where the caller has named it, and not where it is the operator's", () =>
    Effect.gen(function* () {
      for (const reason of ["unreachable", "rejected"] as const) {
        expect(yield* toldOf("caller", reason)).toBe(
          `the node refused the request: ${origin}: no answer within 5000 ms`
        )
        expect(yield* toldOf("operator", reason)).toBe(
          "the node refused the request: the operator's node: no answer within 5000 ms"
        )
      }
    })
  )
})
