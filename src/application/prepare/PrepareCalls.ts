import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Dependencies from "../../domain/erc4337/Dependencies.js"
import * as Nonce from "../../domain/erc4337/Nonce.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Custody from "../../domain/wallet/Custody.js"
import * as WalletCalls from "../../domain/wallet/WalletCalls.js"
import type { ChainFacts } from "../chain/ChainFacts.js"
import type { Failure } from "../failures/Failure.js"
import type { BundlerRpc } from "../ports/chain/BundlerRpc.js"
import { type Call, dependencies } from "./Call.js"
import * as Creation from "./Creation.js"
import * as Direct from "./Direct.js"
import * as Given from "./given/Given.js"
import type { OfRequest, Shared } from "./OpContext.js"
import * as Sift from "./ops/Sift.js"
import * as Preparation from "./Preparation.js"
import * as Prepare from "./Prepare.js"
import * as Snapshot from "./Snapshot.js"
import * as Wallets from "./wallets/Wallets.js"

/** Prepares calls outside of intake's runs: calls with their own nonces, and accepted requests' calls. */

/** Calls of any kind; each batch has one kind. */
export interface Input<K extends OfRequest = OfRequest> {
  readonly context: K
  readonly batches: ReadonlyArray<Preparation.Batch>
  readonly nonceOf: (call: Call) => Preparation.Nonce
  /** See `Snapshot.read`. */
  readonly submitter?: Address | null
}

export type Services = BundlerRpc | ChainFacts

/** The result of each batch, and the chain state they were prepared on; null for direct transactions. */
export interface Made {
  readonly batches: ReadonlyArray<Result.Result<Preparation.Prepared, Failure>>
  readonly snapshot: Snapshot.Snapshot | null
}

const walletCallsOf = (call: Call): ReadonlyArray<WalletCalls.Call> => {
  if (call.kind === "op") return [Sift.callOf(call)]
  return call.kind === "given" ? WalletCalls.read(call.op.callData) : []
}

const isByPasskeys = (call: Call): boolean =>
  Custody.usesPasskeys(call.custody) ||
  (call.kind === "given" && call.evidence._tag === "assertion") ||
  (call.kind === "creation" && call.making !== null && call.making.config.passkeys.length > 0)

/** Nonces of calls that bring them: a handed-out op's, and a wallet's first. */
export const ownNonce = (call: Call): Preparation.Nonce =>
  call.kind === "given"
    ? { key: Nonce.keyOf(call.op.nonce), sequence: Nonce.sequenceOf(call.op.nonce) }
    : { key: 0n, sequence: 0n }

const only = <K extends Call["kind"]>(batches: Input["batches"], kind: K) =>
  batches.map((batch) => ({
    ...batch,
    calls: batch.calls.filter((call): call is Extract<Call, { readonly kind: K }> => call.kind === kind)
  }))

const read = ({ batches, context, submitter }: Pick<Input<Shared>, "batches" | "context" | "submitter">) => {
  const calls = batches.flatMap((batch) => batch.calls)
  return Snapshot.read(
    context,
    Preparation.walletsOf(batches),
    calls.flatMap(walletCallsOf),
    "now",
    calls.some(isByPasskeys),
    submitter,
    new Set(calls.flatMap(({ kind, wallet }) => (kind === "creation" ? wallet : [])))
  )
}

const ofKind = (
  kind: Call["kind"],
  { batches, ...input }: Input<Shared> & { readonly snapshot: Snapshot.Snapshot }
): Preparation.Each => {
  switch (kind) {
    case "op":
      return Prepare.prepare({ ...input, batches: only(batches, kind) })
    case "given":
      return Given.prepare({ ...input, batches: only(batches, kind) })
    case "creation":
      return Creation.prepare({ ...input, batches: only(batches, kind) })
    case "direct":
    case "repricing":
      return Effect.die(new Error("a direct transaction is in a context of ops"))
  }
}

/** Requests of one account may share their settings and contain calls of different kinds. */
const prepareOn = (snapshot: Snapshot.Snapshot, input: Input<Shared>): Preparation.Each =>
  Effect.gen(function* () {
    const made = input.batches.map(
      (): Result.Result<Preparation.Prepared, Failure> => Result.succeed(Preparation.nothing)
    )
    const kindOf = (place: number) => input.batches[place]?.calls[0]?.kind
    for (const [kind, places] of Map.groupBy(made.keys(), kindOf)) {
      if (kind === undefined) continue
      const own = { ...input, snapshot, batches: places.flatMap((place) => input.batches[place] ?? []) }
      for (const [position, result] of (yield* ofKind(kind, own)).entries())
        made[places[position] ?? -1] = result
    }
    return made
  })

export const prepare = (input: Input): Effect.Effect<Made, Failure, Services> =>
  Effect.gen(function* () {
    const { batches, context } = input
    if (context.kind === "direct")
      return { batches: yield* Direct.prepare(context, only(batches, "direct")), snapshot: null }
    const snapshot = yield* read({ ...input, context })
    return { batches: yield* prepareOn(snapshot, { ...input, context }), snapshot }
  })

/**
 * Drops the calls that must wait until a busy wallet has a nonce key, together with all calls linked to them by
 * dependencies.
 */
const without = <B extends Preparation.Batch>(batch: B, isBusy: (wallet: Address) => boolean): B => {
  const busy = batch.calls.filter(({ wallet }) => isBusy(wallet))
  if (busy.length === 0) return batch
  const components = Dependencies.components(dependencies(batch.calls))
  const away = new Set(busy.map(({ index }) => components[index]))
  return { ...batch, calls: batch.calls.filter(({ index }) => !away.has(components[index])) }
}

/**
 * Prepares accepted calls that have no nonces yet. A wallet's calls share one key, in order. Calls without a free key
 * are in no result.
 *
 * `take` returns a nonce key of the wallet's epoch that no work under way uses; null: none is free.
 */
export const open = ({
  batches,
  context,
  take
}: Pick<Input<Shared>, "batches" | "context"> & {
  readonly take: (wallet: Address, epoch: bigint) => bigint | null
}): Effect.Effect<Made & { readonly snapshot: Snapshot.Snapshot }, Failure, Services> =>
  Effect.gen(function* () {
    const snapshot = yield* read({ batches, context })
    const keys = new Map<Address, bigint | null>()
    for (const call of batches.flatMap(({ calls }) => calls))
      if (call.kind === "op" && !keys.has(call.wallet))
        keys.set(call.wallet, take(call.wallet, Wallets.epochOf(snapshot.wallets.get(call.wallet))))
    const made = yield* prepareOn(snapshot, {
      context,
      batches: batches.map((batch) => without(batch, (wallet) => keys.get(wallet) === null)),
      nonceOf: (call) =>
        call.kind === "op" ? { key: keys.get(call.wallet) ?? 0n, sequence: null } : ownNonce(call)
    })
    return { batches: made, snapshot }
  })
