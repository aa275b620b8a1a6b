import { describe, expect, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import * as ChainFacts from "../../../../src/application/chain/ChainFacts.js"
import * as Sending from "../../../../src/application/intake/submission/Sending.js"
import type * as Transfers from "../../../../src/application/intake/submission/Transfers.js"
import { WakeUps } from "../../../../src/application/lanes/requests/WakeUps.js"
import * as Payer from "../../../../src/application/pay/Payer.js"
import { Bundler, BundlerError, ofNode } from "../../../../src/application/ports/chain/Bundler.js"
import { ChainRpcError } from "../../../../src/application/ports/chain/ChainRpc.js"
import { OpJournal } from "../../../../src/application/ports/journal/OpJournal.js"
import { RequestJournal } from "../../../../src/application/ports/journal/RequestJournal.js"
import { test } from "../../../support/Test.js"

const origin = "http://10.0.0.5:8545"

/** What is told of a bundle that was kept from being sent. */
const sent = (trust: "caller" | "operator", error: BundlerError) => {
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
  const services = Context.make(Bundler, { submit: () => Effect.fail(error) }).pipe(
    Context.add(OpJournal, { abandonUnsigned: () => Effect.void } as unknown as OpJournal["Service"]),
    Context.add(RequestJournal, { durable: Effect.void } as unknown as RequestJournal["Service"]),
    Context.add(ChainFacts.ChainFacts, ChainFacts.make()),
    Context.add(WakeUps, { signal: () => Effect.void } as unknown as WakeUps)
  )
  const prices = { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n, legacy: false }
  const ops = [
    {
      index: 3,
      op: {},
      complete: Effect.succeed({ op: {}, userOpHash: "0x01" }),
      sign: () => Effect.succeed("0x"),
      l1Fee: 0n
    }
  ] as unknown as Transfers.Transfer["ops"]
  return Sending.send(route, { gasBound: 1n, prices }, { alone: false, ops }, (data) => data).pipe(
    Effect.provide(services)
  )
}

/** The same where its node, named by this one, has kept it. */
const toldOf = (trust: "caller" | "operator", reason: ChainRpcError["reason"]) =>
  Effect.map(
    sent(
      trust,
      ofNode(new ChainRpcError({ reason, origin, message: `${origin}: no answer within 5000 ms` }))
    ),
    ({ delay }) => delay?.message
  )

test("a node that fails when a bundle is to be sent is named where the caller has named it, and not where it is the operator's", function* () {
  for (const reason of ["unreachable", "rejected"] as const) {
    expect(yield* toldOf("caller", reason)).toBe(
      `the node refused the request: ${origin}: no answer within 5000 ms`
    )
    expect(yield* toldOf("operator", reason)).toBe(
      "the node refused the request: the operator's node: no answer within 5000 ms"
    )
  }
})

describe("an accepted bundle", () => {
  const refusedBy = (reason: BundlerError["reason"]) =>
    sent("operator", new BundlerError({ reason, message: "no", missing: 5n, gas: null, dropped: new Map() }))

  it.effect.each([
    ["signerUnavailable", "signer_unavailable"],
    ["insufficientFunds", "insufficient_funds"],
    ["bundlerUnavailable", "bundler_refused"],
    ["nodeFailed", "node_refused"],
    ["nodeUnreachable", "node_refused"]
  ] as const)("is only delayed by %s", ([reason, code]) =>
    Effect.gen(function* () {
      const { delay, failed, forAll } = yield* refusedBy(reason)
      expect([delay?.code, forAll, failed.size]).toEqual([code, null, 0])
    })
  )

  it.effect.each([
    ["signerRefused", "signer_unavailable"],
    ["refusedByBundler", "bundler_refused"]
  ] as const)("fails for good by %s", ([reason, code]) =>
    Effect.gen(function* () {
      const { delay, failed, forAll } = yield* refusedBy(reason)
      expect([delay, forAll?.code, failed.get(3)?.code]).toEqual([null, code, code])
    })
  )
})
