import * as Effect from "effect/Effect"
import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Conditions from "../../../domain/signature/Conditions.js"
import * as Ledger from "../../../domain/wallet/Ledger.js"
import type { ChainFacts } from "../../chain/ChainFacts.js"
import * as Payer from "../../pay/Payer.js"
import type { BundlerRpc } from "../../ports/chain/BundlerRpc.js"
import type { EncodedCall } from "../../prepare/EncodeCall.js"
import * as CreatedContracts from "../../prepare/estimate/CreatedContracts.js"
import * as Estimation from "../../prepare/estimate/Estimation.js"
import * as FirstLook from "../../prepare/estimate/FirstLook.js"
import type * as OpContext from "../../prepare/OpContext.js"
import * as Drafts from "../../prepare/ops/Drafts.js"
import * as Fit from "../../prepare/ops/Fit.js"
import * as Links from "../../prepare/ops/Links.js"
import type { SignerAuthorization } from "../../prepare/SignerAuthorization.js"
import * as Snapshot from "../../prepare/Snapshot.js"
import { dependencyFailed, type ElementFailure, elementFailure } from "../../request/Elements.js"
import type { Failure } from "../../request/Failure.js"
import * as Reasons from "../../request/Reasons.js"
import type * as Transfers from "../submission/Transfers.js"

/** A call that a wallet consents to, by the keys at hand. */
export interface AuthorizedCall {
  readonly call: EncodedCall
  readonly wallet: Address
  readonly nonceKey: bigint
  readonly consent: SignerAuthorization
  readonly conditions: Conditions.Conditions
}

export interface Input {
  readonly context: OpContext.OpContext
  readonly snapshot: Snapshot.Snapshot
  /** Holds the ops to their dependencies; null: nothing does, and none of them depends on another one of them. */
  readonly ledger: Address | null
  readonly dependencies: Dependencies.Dependencies
  /** By element, in the order of the request. */
  readonly willing: ReadonlyMap<number, AuthorizedCall>
  /** The EOA that will submit. */
  readonly from: Address
  /** The validator that the request expects. */
  readonly validator: Address | undefined
  readonly revert: (data: Hex.Hex) => string
  /** `look` at these calls, on what was seen before; null: there was none. */
  readonly early: FirstLook.FirstLook | null
}

/** Names that stand for those of the nonces, which are known once it is clear which of the ops go. */
const placeholders = ({ context, dependencies, willing }: Input, order: ReadonlyArray<number>) =>
  Links.of(dependencies, order, (index) => ({
    wallet: willing.get(index)?.wallet ?? context.entryPoint,
    key: Ledger.placeholder(index)
  }))

/** The ops of the calls in this order, as they are measured. */
const drafted = (
  { context, early, from, ledger, revert, snapshot, willing }: Input,
  order: ReadonlyArray<number>,
  links: (index: number) => Ledger.Links
): Estimation.Input => ({
  context,
  entryPointCode: snapshot.entryPointCode,
  from,
  drafts: order.flatMap((index) => {
    const own = willing.get(index)
    if (own === undefined) return []
    const { call, conditions, consent, nonceKey, wallet } = own
    return [
      Drafts.make({
        index,
        wallet,
        nonce: Nonce.make(nonceKey, 0n),
        callData: Links.callData(ledger, call.call, links(index)),
        value: call.call.value,
        prices: snapshot.prices,
        conditions,
        dummy: consent.dummy
      })
    ]
  }),
  declared: false,
  lowestPrefund: false,
  revert,
  early
})

/** The look with which the measurement of these calls begins. */
export const look = (input: Input): Effect.Effect<FirstLook.FirstLook, Failure, ChainFacts> =>
  Effect.suspend(() => {
    const order = Dependencies.order(input.dependencies, input.willing.keys())
    const draft = drafted(input, order, placeholders(input, order))
    return Effect.flatMap(FirstLook.trials(draft), (trials) => FirstLook.at(draft, trials))
  })

/** The calls that find no contract where they go, behind those before them. */
export const uncalled = (input: Input): Effect.Effect<Map<number, ElementFailure>, Failure, ChainFacts> =>
  Effect.suspend(() => {
    const order = Dependencies.order(input.dependencies, input.willing.keys())
    const draft = drafted(input, order, placeholders(input, order))
    return CreatedContracts.missing(draft, draft.drafts, input.snapshot.codeless)
  })

/** The measured ops, one after the other, with the nonces and the names that this order gives them. */
const finish = (
  { dependencies, context, ledger, willing }: Input,
  { estimated, sequences }: Pick<Estimation.Estimate, "estimated" | "sequences">,
  measured: (index: number) => Ledger.Links
): ReadonlyArray<Transfers.Ready> => {
  const { chainId, entryPoint, payer, spaceOf, version } = context
  const used = new Map<string, bigint>()
  const nonces = new Map<number, bigint>()
  for (const { index, op } of estimated) {
    const place = `${op.sender} ${Nonce.keyOf(op.nonce)}`
    const before = used.get(place) ?? 0n
    used.set(place, before + 1n)
    nonces.set(index, Nonce.make(Nonce.keyOf(op.nonce), (sequences.get(index) ?? 0n) + before))
  }
  const links = Links.of(
    dependencies,
    estimated.map(({ index }) => index),
    (index) => {
      const wallet = willing.get(index)?.wallet ?? entryPoint
      return { wallet, key: Ledger.key(entryPoint, wallet, nonces.get(index) ?? 0n) }
    }
  )
  return estimated.flatMap((each): ReadonlyArray<Transfers.Ready> => {
    const { index } = each
    const own = willing.get(index)
    if (own === undefined) return []
    const { call, conditions, consent, wallet } = own
    const nonce = nonces.get(index) ?? each.op.nonce
    const op: UserOperation.UserOperation = {
      ...each.op,
      nonce,
      callData: Links.callData(ledger, call.call, links(index)),
      signature: Hex.empty
    }
    const hash = (of: UserOperation.UserOperation) => UserOperation.hash(version, entryPoint, chainId, of)
    return [
      {
        index,
        op: { ...op, signature: each.op.signature },
        space: spaceOf(wallet),
        nonceKey: Nonce.keyOf(nonce),
        sequence: Nonce.sequenceOf(nonce),
        reserve: Payer.walletShare(payer, each),
        l1Fee: each.l1Fee,
        userOpHash: payer.paymaster === null ? hash(op) : null,
        returned: Ledger.returned(measured(index), each.returned) ?? each.returned,
        complete: Effect.map(payer.complete(op), (completed) => ({
          op: completed,
          userOpHash: hash(completed)
        })),
        sign: (userOpHash) =>
          Effect.map(consent.sign(Conditions.signingHash(userOpHash, conditions)), (proof) =>
            Conditions.encodeSignature(conditions, proof)
          )
      }
    ]
  })
}

/** What the ops of the calls are, as far as they can be executed, and why the others can not. */
export interface Assembled {
  readonly ready: ReadonlyArray<Transfers.Ready>
  readonly failed: ReadonlyMap<number, ElementFailure>
  readonly estimate: Estimation.Estimate
}

/**
 * Encodes, measures and orders the ops. What depends on each other is linked, and in the order of the request but
 * for that; only when it does not fit into one transaction so, it is brought together.
 */
export const assemble = (all: Input): Effect.Effect<Assembled, Failure, BundlerRpc | ChainFacts> =>
  Effect.gen(function* () {
    const { dependencies, context, snapshot } = all
    const lost = all.snapshot.codeless.size === 0 ? new Map<number, ElementFailure>() : yield* uncalled(all)
    for (const index of Dependencies.order(dependencies, all.willing.keys())) {
      const on = dependencies[index] ?? null
      if (on !== null && lost.has(on)) lost.set(index, dependencyFailed(on))
    }
    const willing = new Map([...all.willing].filter(([index]) => !lost.has(index)))
    const input = { ...all, willing }
    const attempt = (order: ReadonlyArray<number>) =>
      Effect.gen(function* () {
        const measured = placeholders(input, order)
        const estimate = yield* Estimation.estimate(drafted(input, order, measured))
        yield* Snapshot.checkImplementation(context.connection, estimate.implementation, input.validator)
        const failed = new Map<number, ElementFailure>([...lost, ...estimate.failed])
        for (const index of order) {
          const on = dependencies[index] ?? null
          if (on !== null && failed.has(on)) failed.set(index, dependencyFailed(on))
        }
        const of = (lost: ReadonlyMap<number, ElementFailure>) =>
          finish(
            input,
            { ...estimate, estimated: estimate.estimated.filter(({ index }) => !lost.has(index)) },
            measured
          )
        return { estimate, failed, of, ready: of(failed) }
      })

    const made = yield* attempt(Dependencies.order(dependencies, willing.keys()))
    // What hangs on nothing is parted where it is sent.
    if (!Dependencies.any(dependencies)) return made
    const split = (ready: ReadonlyArray<Transfers.Ready>) =>
      Fit.split({ context }, snapshot, ready, dependencies)
    const parted = split(made.ready)
    if (parted.tooLarge.length === 0) return made
    const again = parted.scattered
      ? yield* attempt(Dependencies.gathered(dependencies, willing.keys()))
      : made
    const { estimate, failed } = again
    for (const index of split(again.ready).tooLarge)
      failed.set(
        index,
        elementFailure(
          "too_large_to_bundle",
          dependencies.some((on, each) => (each === index && on !== null) || on === index)
            ? Reasons.text("dependentGas")
            : undefined
        )
      )
    // The nonces behind them move up.
    return { ready: again.of(failed), failed, estimate }
  })
