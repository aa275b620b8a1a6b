import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import * as Custody from "../../domain/wallet/Custody.js"
import * as WalletCalls from "../../domain/wallet/WalletCalls.js"
import type { ChainFacts } from "../chain/ChainFacts.js"
import type { Budgets } from "../ports/Budgets.js"
import type { BundlerRpc } from "../ports/chain/BundlerRpc.js"
import type { Failure } from "../request/Failure.js"
import type { Call, CreationCall, GivenCall, OpCall } from "./Call.js"
import * as Creation from "./Creation.js"
import * as Given from "./given/Given.js"
import type { Shared } from "./OpContext.js"
import * as Prepare from "./Prepare.js"
import * as Preparing from "./Preparing.js"
import * as Snapshot from "./Snapshot.js"

/** Calls whose nonces are known already: those that come with theirs, and accepted ones that are prepared again. */

/** Calls of any kind; all of them are of one. */
export interface Input {
  readonly context: Shared
  readonly batches: ReadonlyArray<Preparing.Batch>
  readonly nonceOf: (call: Call) => Preparing.Nonce
}

export type Services = Budgets | BundlerRpc | ChainFacts

/** What became of each batch, and the chain's clock, Unix seconds. */
export interface Made {
  readonly batches: ReadonlyArray<Result.Result<Preparing.Prepared, Failure>>
  readonly timestamp: number
}

const walletCallsOf = (call: Call): ReadonlyArray<WalletCalls.Call> => {
  if (call.kind === "op") return [{ target: call.to, value: call.value, data: call.data }]
  return call.kind === "given" ? WalletCalls.read(call.op.callData) : []
}

const isByPasskeys = (call: Call): boolean =>
  Custody.usesPasskeys(call.custody) ||
  (call.kind === "given" && call.evidence._tag === "assertion") ||
  (call.kind === "creation" && call.making !== null && call.making.config.passkeys.length > 0)

const only = <C extends Call>(
  { context, batches, nonceOf }: Input,
  snapshot: Snapshot.Snapshot,
  is: (call: Call) => call is C
): Preparing.Input<C> => ({
  context,
  snapshot,
  nonceOf,
  batches: batches.map((batch) => ({ ...batch, calls: batch.calls.filter(is) }))
})

const isOp = (call: Call): call is OpCall => call.kind === "op"
const isGiven = (call: Call): call is GivenCall => call.kind === "given"
const isCreation = (call: Call): call is CreationCall => call.kind === "creation"

export const prepare = (input: Input): Effect.Effect<Made, Failure, Services> =>
  Effect.gen(function* () {
    const calls = input.batches.flatMap((batch) => batch.calls)
    const snapshot = yield* Snapshot.read(
      input.context,
      Preparing.walletsOf(input.batches),
      calls.flatMap(walletCallsOf),
      "now",
      calls.some(isByPasskeys)
    )
    const made = (batches: Made["batches"]): Made => ({ batches, timestamp: snapshot.block.timestamp })
    switch (calls[0]?.kind) {
      case undefined:
        return made([])
      case "op":
        return made(yield* Prepare.prepare(only(input, snapshot, isOp)))
      case "given":
        return made(yield* Given.prepare(only(input, snapshot, isGiven)))
      case "creation":
        return made(yield* Creation.prepare(only(input, snapshot, isCreation)))
      case "direct":
        return yield* Effect.die(new Error("a transaction of the signer's own is prepared by itself"))
    }
  })
