import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import type { FeePrices } from "../../../domain/erc4337/gas/Fees.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import * as Percent from "../../../domain/erc4337/Percent.js"
import type * as Hex from "../../../domain/primitives/Hex.js"
import * as Conditions from "../../../domain/signature/Conditions.js"
import * as Proof from "../../../domain/signature/Proof.js"
import * as WalletCalls from "../../../domain/wallet/WalletCalls.js"
import type { WalletConfig } from "../../../domain/wallet/WalletConfig.js"
import * as Connection from "../../chain/Connection.js"
import * as Inclusions from "../../chain/Inclusions.js"
import * as Prices from "../../chain/Prices.js"
import { type ElementFailure, elementFailure } from "../../failures/Elements.js"
import type { Failure } from "../../failures/Failure.js"
import * as Reasons from "../../failures/Reasons.js"
import * as Funding from "../../payers/Funding.js"
import * as Payer from "../../payers/Payer.js"
import * as Submitter from "../../payers/Submitter.js"
import type { PreparedOp, Proof as PreparedProof, Window } from "../../ports/journal/Records.js"
import * as EventLoop from "../../runtime/EventLoop.js"
import * as Call from "../Call.js"
import * as CreatedContracts from "../estimate/CreatedContracts.js"
import * as Estimation from "../estimate/Estimation.js"
import * as Links from "../ops/Links.js"
import * as Windows from "../ops/Windows.js"
import * as Preparation from "../Preparation.js"
import * as ServiceEoa from "../ServiceEoa.js"
import * as SignerAuthorization from "../SignerAuthorization.js"
import * as Snapshot from "../Snapshot.js"
import * as Epochs from "../wallets/Epochs.js"
import * as OwnedWallets from "../wallets/OwnedWallets.js"
import * as ExternalProofs from "./ExternalProofs.js"

/**
 * Checks ops that the service returned unsigned before, and that come back with a proof or for signing. The ops are
 * never changed. If an op's nonce is used, the op may have landed elsewhere: then it is done.
 */

export type Input = Preparation.Input<Call.GivenCall>

interface Consented {
  readonly call: Call.GivenCall
  readonly conditions: Conditions.Conditions
  /** A real signature, or a dummy of its shape. */
  readonly signature: Hex.Hex
  readonly proof: PreparedProof
}

interface Sifted {
  readonly batch: Preparation.Batch<Call.GivenCall>
  readonly dependencies: Dependencies.Dependencies
  readonly failed: Map<number, ElementFailure>
  readonly consents: Map<number, Consented>
  /** Ops of an earlier wallet configuration, or no longer paid for; they may have landed before. */
  readonly past: ReadonlyArray<Call.GivenCall>
  /** Indexes of ops that have landed, in any transaction. */
  readonly landed: Set<number>
}

const pathOf = ({ evidence, index }: Call.GivenCall): string =>
  evidence._tag === "assertion" ? `operations[${index}].validationData` : `operations[${index}]`

const consentOf = (
  { context }: Input,
  call: Call.GivenCall,
  config: WalletConfig,
  bounds: Window,
  lastSecond: number
): Result.Result<Consented, ElementFailure> => {
  const bundler = Submitter.boundTo(context.connection.profile, context.submitter)
  const { evidence } = call
  if (evidence._tag === "keys")
    return Result.map(SignerAuthorization.places(config, context.signers), (places) => {
      const validUntil = bounds.validUntil === 0 ? lastSecond : bounds.validUntil
      const conditions = { validUntil, validAfter: bounds.validAfter, bundler }
      const by = places.flatMap((of, place) => {
        const signer = context.signers[of]
        return signer === undefined ? [] : [{ signer, place }]
      })
      const signature = Conditions.encodeSignature(conditions, Proof.dummyEcdsa(places.length))
      return { call, conditions, signature, proof: { by } }
    })
  const brought = ExternalProofs.consent(evidence, call.userOpHash, config, { bounds, bundler })
  return Result.map(brought, ({ conditions, proof }) => ({
    call,
    conditions,
    signature: Conditions.encodeSignature(conditions, proof),
    proof: { made: proof }
  }))
}

/** Checks which ops their wallets consent to. `Failure`: the whole request is bad. */
const sift = (
  input: Input,
  batch: Preparation.Batch<Call.GivenCall>,
  lastSecond: number,
  least: FeePrices | null
): Effect.Effect<Sifted, Failure> =>
  Effect.gen(function* () {
    const { context, snapshot } = input
    const { configs, failed } = yield* Effect.fromResult(OwnedWallets.find(batch.calls, snapshot))
    const consents = new Map<number, Consented>()
    const past: Array<Call.GivenCall> = []
    for (const call of batch.calls) {
      const { index, op, wallet, window } = call
      const config = configs.get(index)
      if (config === undefined) continue
      const replaced = Epochs.failureOf(op, snapshot.wallets.get(wallet))
      if (replaced !== null) {
        failed.set(index, replaced)
        past.push(call)
        continue
      }
      const bounds = Windows.check(window, pathOf(call), snapshot.block, context.version)
      if (Result.isFailure(bounds)) {
        const why = bounds.failure
        // Its time ended only after the request was accepted.
        if (!("_tag" in why)) failed.set(index, why)
        else if (batch.isAccepted) failed.set(index, elementFailure("window_passed"))
        else return yield* Effect.fail(why)
        continue
      }
      const consent = consentOf(input, call, config, bounds.success, lastSecond)
      if (Result.isFailure(consent)) failed.set(index, consent.failure)
      else {
        const signed = { ...op, signature: consent.success.signature }
        const { profile } = context.connection
        const why = least === null ? null : ServiceEoa.objection(profile, context.version, signed, least)
        const part = { ...call, given: call.userOpHash }
        const unpaid =
          why ?? (yield* context.payer.objection(part, lastSecond - Snapshot.signatureLifeSeconds))
        if (unpaid === null) consents.set(index, consent.success)
        else {
          failed.set(index, unpaid)
          // It may have landed while it was paid for.
          past.push(call)
        }
      }
      // Checking signatures takes milliseconds.
      yield* EventLoop.breathe
    }
    return { batch, dependencies: Call.dependencies(batch.calls), failed, consents, past, landed: new Set() }
  })

/** Marks the ops that have landed, in any transaction. */
const noteLanded = (
  { context: { connection, entryPoint }, snapshot }: Input,
  { failed, landed }: Sifted,
  calls: ReadonlyArray<Call.GivenCall>
): Effect.Effect<void, Failure> =>
  Effect.gen(function* () {
    if (calls.length === 0) return
    const found = yield* Effect.mapError(
      Inclusions.find(
        connection.chain,
        entryPoint,
        calls.map(({ userOpHash }) => userOpHash),
        snapshot.block.number
      ),
      Connection.refusal(connection.trust)
    )
    for (const { index, userOpHash } of calls)
      if (found.has(userOpHash)) {
        landed.add(index)
        failed.delete(index)
      }
  })

const hasOpen = ({ consents }: Sifted): boolean => consents.size > 0

const measure = (input: Input, { batch, consents, dependencies }: Sifted): Estimation.Input => ({
  context: input.context,
  entryPointCode: input.snapshot.entryPointCode,
  from: input.context.submitter,
  drafts: Dependencies.order(dependencies, consents.keys()).flatMap((index) => {
    const own = consents.get(index)
    return own === undefined ? [] : [{ index, op: { ...own.call.op, signature: own.signature }, value: 0n }]
  }),
  declared: true,
  lowestPrefund: false,
  revert: batch.revert
})

const preparedOf = (
  { context }: Input,
  { call, conditions, proof, signature }: Consented,
  costs: Pick<PreparedOp, "reserve" | "l1Fee" | "returned" | "goodUntil">
): PreparedOp => ({
  requestId: call.requestId,
  index: call.index,
  kind: "given",
  unsigned: { ...call.op, signature },
  space: context.spaceOf(call.wallet),
  nonceKey: Nonce.keyOf(call.op.nonce),
  sequence: Nonce.sequenceOf(call.op.nonce),
  userOpHash: call.userOpHash,
  proof,
  window: { validAfter: conditions.validAfter, validUntil: conditions.validUntil },
  dependsOn: call.dependsOn === null ? [] : [call.dependsOn],
  ...costs
})

/**
 * Ops of one key must be in sequence. An op whose nonce the EntryPoint has consumed may have landed elsewhere; an op
 * with any other unexpected nonce fails.
 */
const outOfOrder = (
  todo: Iterable<Consented>,
  { failed, sequences }: Pick<Estimation.Estimate, "failed" | "sequences">
) => {
  const next = new Map<string, bigint>()
  const consumed: Array<Call.GivenCall> = []
  const misplaced = new Map<number, ElementFailure>()
  for (const { call } of todo) {
    const { index, op } = call
    const sequence = sequences.get(index)
    if (sequence === undefined) continue
    const nonceKey = `${op.sender}:${Nonce.keyOf(op.nonce)}`
    const expected = next.get(nonceKey) ?? sequence
    const own = Nonce.sequenceOf(op.nonce)
    if (own < sequence) {
      consumed.push(call)
      misplaced.set(index, elementFailure("invalid_nonce"))
    } else if (failed.has(index)) continue
    else if (own === expected) next.set(nonceKey, expected + 1n)
    else misplaced.set(index, elementFailure("invalid_nonce", Reasons.text("nonceOrder", { expected })))
  }
  return { consumed, misplaced }
}

/** Removes ops with used or unexpected nonces. True: measure the others again without them. */
const takeOut = (
  input: Input,
  sifted: Sifted,
  estimate: Estimation.Estimate
): Effect.Effect<boolean, Failure> =>
  Effect.gen(function* () {
    const { consents, failed } = sifted
    const { sequences } = estimate
    const { consumed, misplaced } = outOfOrder(consents.values(), {
      failed: new Map([...failed, ...estimate.failed]),
      sequences
    })
    for (const [index, failure] of misplaced) {
      failed.set(index, failure)
      consents.delete(index)
    }
    yield* noteLanded(input, sifted, consumed)
    return misplaced.size > 0
  })

export const prepare = (input: Input): Preparation.Each =>
  Effect.gen(function* () {
    const { context, snapshot } = input
    const { connection, settings, version } = context
    const least = ServiceEoa.isAtRisk(context)
      ? yield* Effect.fromResult(Prices.offer(connection.profile, snapshot.market, Percent.zero))
      : null
    const lastSecond = yield* Snapshot.validUntil(snapshot.block)
    const now = yield* Clock.currentTimeMillis
    const sifted = yield* EventLoop.each(input.batches, (batch) =>
      Effect.result(sift(input, batch, lastSecond, least))
    )
    const open = sifted.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
    for (const own of open) yield* noteLanded(input, own, own.past)

    const estimates = new Map<Sifted, Result.Result<Estimation.Estimate, Failure>>()
    for (let todo = open.filter(hasOpen); todo.length > 0; ) {
      const found = yield* Estimation.estimateEach(todo.map((own) => measure(input, own)))
      const again: Array<Sifted> = []
      for (const [place, own] of todo.entries()) {
        const estimate = found[place]
        if (estimate === undefined) continue
        estimates.set(own, estimate)
        if (Result.isFailure(estimate)) continue
        yield* Snapshot.checkImplementation(connection, estimate.success.implementation, settings.validator)
        if (yield* takeOut(input, own, estimate.success)) again.push(own)
      }
      todo = again.filter(hasOpen)
    }

    const finish = (own: Sifted, estimate: Estimation.Estimate) =>
      Effect.gen(function* () {
        const { consents, dependencies, failed } = own
        Links.fail(dependencies, Dependencies.order(dependencies, consents.keys()), estimate.failed, failed)
        const view = measure(input, own)
        const lost = yield* CreatedContracts.missing(view, view.drafts, snapshot.codeless)
        for (const [index, failure] of lost) failed.set(index, failure)
        Links.failDependants(dependencies, failed)
        const ops = estimate.estimated.flatMap((each): ReadonlyArray<PreparedOp> => {
          const consent = consents.get(each.index)
          if (consent === undefined || failed.has(each.index)) return []
          const share = Payer.walletShare(
            { paymaster: Funding.paymasterOf(version, each.op) },
            { prefund: each.prefund, value: WalletCalls.valueOf(each.op.callData) }
          )
          return [
            preparedOf(input, consent, {
              reserve: Preparation.cap(share),
              l1Fee: each.l1Fee,
              returned: Preparation.kept(each.returned),
              goodUntil: Preparation.goodUntil(now, snapshot.block.timestamp, consent.conditions.validUntil)
            })
          ]
        })
        const funds = Funding.forAcceptance(context, estimate)
        return { ...Preparation.nothing, ops, failed, existing: [...own.landed], funds }
      })

    return yield* Effect.forEach(sifted, (one) =>
      Effect.gen(function* () {
        if (Result.isFailure(one)) return Result.fail(one.failure)
        const { failed, landed } = one.success
        const estimate = estimates.get(one.success)
        if (estimate === undefined || !hasOpen(one.success))
          return Result.succeed({ ...Preparation.nothing, failed, existing: [...landed] })
        return Result.isFailure(estimate)
          ? Result.fail(estimate.failure)
          : Result.succeed(yield* finish(one.success, estimate.success))
      })
    )
  })
