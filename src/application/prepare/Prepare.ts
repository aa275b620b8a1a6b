import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Dependencies from "../../domain/erc4337/Dependencies.js"
import * as Gas from "../../domain/erc4337/gas/Gas.js"
import * as Nonce from "../../domain/erc4337/Nonce.js"
import * as UserOperation from "../../domain/erc4337/UserOperation.js"
import * as Address from "../../domain/primitives/Address.js"
import type * as Conditions from "../../domain/signature/Conditions.js"
import * as Proof from "../../domain/signature/Proof.js"
import * as Ledger from "../../domain/wallet/Ledger.js"
import type { ChainFacts } from "../chain/ChainFacts.js"
import * as Funding from "../pay/Funding.js"
import * as Payer from "../pay/Payer.js"
import * as Submitter from "../pay/Submitter.js"
import type { BundlerRpc } from "../ports/chain/BundlerRpc.js"
import type { PreparedOp } from "../ports/journal/Records.js"
import { dependencyFailed, type ElementFailure, elementFailure } from "../request/Elements.js"
import type { Failure } from "../request/Failure.js"
import * as Reasons from "../request/Reasons.js"
import * as EventLoop from "../runtime/EventLoop.js"
import * as Call from "./Call.js"
import * as Drafts from "./Drafts.js"
import * as CreatedContracts from "./estimate/CreatedContracts.js"
import * as Estimation from "./estimate/Estimation.js"
import * as FirstLook from "./estimate/FirstLook.js"
import * as LensEstimation from "./estimate/LensEstimation.js"
import * as Fit from "./Fit.js"
import * as Links from "./Links.js"
import * as NotBegun from "./NotBegun.js"
import * as OwnedWallets from "./OwnedWallets.js"
import * as Preparing from "./Preparing.js"
import * as SignerAuthorization from "./SignerAuthorization.js"
import * as Snapshot from "./Snapshot.js"
import * as Windows from "./Windows.js"

/**
 * Makes prepared ops of calls: encoded, linked, measured, priced, with the nonces that they are to have. Intake uses it for
 * the requests of a run, and a lane's worker for accepted ops that are not good any more.
 */

type Batch = Preparing.Batch<Call.OpCall>

export interface Input extends Preparing.Input<Call.OpCall> {
  /** Looks at what the chain was when it was last seen, one a batch, see `looks`. */
  readonly early?: ReadonlyArray<FirstLook.FirstLook | null>
}

/** Seconds between the block of the snapshot and the one of the measurement; beyond that the chain's clock has leapt. */
const mostLag = 60

/** A call to which the wallet's owners among the keys consent. */
interface Willing {
  readonly call: Call.OpCall
  /** Places of the keys that sign. */
  readonly places: ReadonlyArray<number>
  readonly conditions: Conditions.Conditions
}

/** What of a batch can be executed now. */
interface Sifted {
  readonly batch: Batch
  readonly dependencies: Dependencies.Dependencies
  readonly willing: Map<number, Willing>
  readonly failed: Map<number, ElementFailure>
  readonly waiting: ReadonlyMap<number, number>
}

const windowOf = ({ window }: Pick<Call.OpCall, "window">): Windows.Window =>
  window === null ? {} : { validAfter: window.validAfter, validUnitl: window.validUntil }

/** Whether the chain's clock tells nothing of it but its ten minutes. */
export const isTimeless = ({ window }: Pick<Call.OpCall, "window">): boolean => window === null

const waitingOf = (
  { context: { connection, version }, snapshot }: Input,
  { calls, mayWait }: Batch,
  dependencies: Dependencies.Dependencies
): ReadonlyMap<number, number> => {
  if (!mayWait || calls.every(isTimeless)) return new Map()
  const windows = new Map(calls.map((call) => [call.index, windowOf(call)]))
  return NotBegun.until([...windows.keys()], (index) => windows.get(index) ?? {}, dependencies, {
    timestamp: snapshot.block.timestamp,
    isApart: connection.profile.remoteBundler !== null,
    version
  })
}

/**
 * Which calls of a batch can be executed now, as far as wallets, windows and keys go. `Failure`: the whole request is bad. A
 * window that has ended makes it so until it is accepted, and is the call's own affair from then on.
 */
const sift = (input: Input, batch: Batch, lastSecond: number): Result.Result<Sifted, Failure> =>
  Result.gen(function* () {
    const { context, snapshot } = input
    const { connection, signers, submitter, version } = context
    const dependencies = Call.dependencies(batch.calls)
    const waiting = waitingOf(input, batch, dependencies)
    const found = yield* OwnedWallets.find(
      batch.calls.map(({ custody, index, wallet }) => ({ index, wallet, walletCustody: custody })),
      snapshot
    )
    const failed = new Map<number, ElementFailure>(found.failed)
    const willing = new Map<number, Willing>()
    const bundler = Submitter.boundTo(connection.profile, submitter)
    for (const call of batch.calls) {
      const { index } = call
      const bounds = Windows.check(windowOf(call), `operations[${index}]`, snapshot.block, version)
      const why = Result.isFailure(bounds) ? bounds.failure : null
      if (why !== null && "_tag" in why && !batch.isAccepted) return yield* Result.fail(why)
      const config = found.configs.get(index)
      if (config === undefined) continue
      const places = SignerAuthorization.places(config, signers)
      if (why !== null && "_tag" in why) failed.set(index, elementFailure("window_passed"))
      else if (why !== null && !waiting.has(index)) failed.set(index, why)
      else if (Result.isFailure(places)) failed.set(index, places.failure)
      else if (!waiting.has(index)) {
        const { validAfter = 0, validUntil = 0 } = call.window ?? {}
        const conditions = { validUntil: validUntil === 0 ? lastSecond : validUntil, validAfter, bundler }
        willing.set(index, { call, places: places.success, conditions })
      }
    }
    Links.failDependants(dependencies, failed)
    for (const index of failed.keys()) willing.delete(index)
    return { batch, dependencies, willing, failed, waiting }
  })

const ledgerOf = ({ context: { connection } }: Input, { dependencies }: Sifted): Address.Address | null =>
  Dependencies.any(dependencies) && connection.profile.remoteBundler === null
    ? connection.profile.ledger
    : null

const callOf = ({ data, to, value }: Call.OpCall) => ({ target: to, value, data })

/** The calls in this order, as they are measured: by names that stand for those of the nonces. */
const drafted = (
  input: Input,
  sifted: Sifted,
  order: ReadonlyArray<number>,
  early: FirstLook.FirstLook | null
): Estimation.Input => {
  const { context, nonceOf, snapshot } = input
  const ledger = ledgerOf(input, sifted)
  const links = placeholders(sifted, order)
  return {
    context,
    entryPointCode: snapshot.entryPointCode,
    from: context.submitter,
    drafts: order.flatMap((index) => {
      const own = sifted.willing.get(index)
      if (own === undefined) return []
      const { call, conditions, places } = own
      return [
        Drafts.make({
          index,
          wallet: call.wallet,
          nonce: Nonce.make(nonceOf(call).key, 0n),
          callData: Links.callData(ledger, callOf(call), links(index)),
          value: call.value,
          prices: snapshot.prices,
          conditions,
          dummy: Proof.dummyEcdsa(places.length)
        })
      ]
    }),
    declared: false,
    lowestPrefund: false,
    revert: sifted.batch.revert,
    early
  }
}

const placeholders = ({ dependencies, willing }: Sifted, order: ReadonlyArray<number>) =>
  Links.of(dependencies, order, (index) => ({
    wallet: willing.get(index)?.call.wallet ?? Address.zero,
    key: Ledger.placeholder(index)
  }))

const ordered = ({ dependencies, willing }: Sifted): ReadonlyArray<number> =>
  Dependencies.order(dependencies, willing.keys())

/** The looks with which the measurement of the batches begins, one call for all; null: of no use. */
export const looks = (
  input: Input
): Effect.Effect<ReadonlyArray<FirstLook.FirstLook | null>, never, ChainFacts> =>
  Effect.gen(function* () {
    const lastSecond = yield* Snapshot.validUntil(input.snapshot.block)
    const drafts: Array<Estimation.Input> = []
    const places: Array<number> = []
    for (const [place, batch] of input.batches.entries()) {
      const sifted = sift(input, batch, lastSecond)
      if (Result.isFailure(sifted) || sifted.success.willing.size === 0) continue
      places.push(place)
      drafts.push(drafted(input, sifted.success, ordered(sifted.success), null))
      yield* EventLoop.breathe
    }
    const [view] = drafts
    if (view === undefined) return input.batches.map(() => null)
    const trials = yield* Effect.forEach(drafts, FirstLook.trials)
    const reports = yield* LensEstimation.lookEach(
      view,
      trials.map((each) => FirstLook.question(view, each))
    )
    return input.batches.map((_, place) => {
      const position = places.indexOf(place)
      const report = reports[position]
      const tried = trials[position]
      return report === undefined || tried === undefined || Result.isFailure(report)
        ? null
        : { trials: tried, report: report.success }
    })
  }).pipe(Effect.orElseSucceed(() => input.batches.map(() => null)))

/** A batch whose calls are measured. */
interface Measured extends Sifted {
  readonly order: ReadonlyArray<number>
  readonly estimate: Estimation.Estimate
}

/** Gas limits that are far from a transaction's bound, whatever their data cost: no other figure is asked for. */
const isSmall = ({ context: { buffers }, snapshot: { gasBound } }: Input, { op }: Fit.Fitting): boolean =>
  2n * Gas.overshoot(op.callGasLimit + op.verificationGasLimit + op.preVerificationGas, buffers.transaction) <
  gasBound

/** What of a measured batch is too large for a transaction, and whether another order would help. */
const tooLargeOf = (input: Input, { dependencies, estimate, failed }: Measured) => {
  const left = estimate.estimated.filter(({ index }) => !failed.has(index))
  const isLinked = Dependencies.any(dependencies)
  if (!isLinked && left.every((each) => isSmall(input, each))) return { tooLarge: [], scattered: false }
  return Fit.split(input, input.snapshot, left, dependencies)
}

const refuseTooLarge = (measured: Measured, tooLarge: ReadonlyArray<number>): void => {
  const { dependencies, failed } = measured
  for (const index of tooLarge)
    failed.set(
      index,
      elementFailure(
        "too_large_to_bundle",
        dependencies.some((on, each) => (each === index && on !== null) || on === index)
          ? Reasons.text("dependentGas")
          : undefined
      )
    )
  Links.failDependants(dependencies, failed)
}

/** Measures batches, each in the order that is given for it: one look for all. */
const measure = (
  input: Input,
  batches: ReadonlyArray<{
    readonly sifted: Sifted
    readonly order: ReadonlyArray<number>
    readonly place: number
  }>
): Effect.Effect<ReadonlyArray<Result.Result<Measured, Failure>>, Failure, BundlerRpc | ChainFacts> =>
  Effect.gen(function* () {
    const drafts = batches.map(({ order, place, sifted }) =>
      drafted(input, sifted, order, input.early?.[place] ?? null)
    )
    const estimates = yield* Estimation.estimateEach(drafts)
    return estimates.flatMap((estimated, position) => {
      const own = batches[position]
      if (own === undefined) return []
      return [
        Result.map(estimated, (estimate): Measured => {
          const failed = new Map(own.sifted.failed)
          for (const index of own.order) {
            const on = own.sifted.dependencies[index] ?? null
            // Behind one that fails it reverts, for no reason of its own.
            const failure = on !== null && failed.has(on) ? dependencyFailed(on) : estimate.failed.get(index)
            if (failure !== undefined) failed.set(index, failure)
          }
          return { ...own.sifted, failed, order: own.order, estimate }
        })
      ]
    })
  })

/** Fails what calls an address where nothing is. */
const failUncalled = (input: Input, sifted: Sifted): Effect.Effect<void, Failure, ChainFacts> =>
  Effect.gen(function* () {
    if (input.snapshot.codeless.size === 0) return
    const draft = drafted(input, sifted, ordered(sifted), null)
    const lost = yield* CreatedContracts.missing(draft, draft.drafts, input.snapshot.codeless)
    for (const [index, failure] of lost) sifted.failed.set(index, failure)
    Links.failDependants(sifted.dependencies, sifted.failed)
    for (const index of sifted.failed.keys()) sifted.willing.delete(index)
  })

/** Names a nonce key of a wallet. */
const placeOf = (wallet: Address.Address, key: bigint): string => `${wallet} ${key}`

/**
 * The nonces of what is left of a batch. `used`: by nonce key, how many ops stand before it there, in this batch and those
 * before it.
 */
const noncesOf = (
  { nonceOf }: Input,
  { estimate, willing }: Measured,
  left: ReadonlyArray<Estimation.Estimated>,
  used: Map<string, bigint>
): ReadonlyMap<number, bigint> => {
  const nonces = new Map<number, bigint>()
  for (const { index } of left) {
    const call = willing.get(index)?.call
    if (call === undefined) continue
    const { key, sequence } = nonceOf(call)
    const place = placeOf(call.wallet, key)
    const before = used.get(place) ?? 0n
    if (sequence === null) used.set(place, before + 1n)
    nonces.set(index, Nonce.make(key, sequence ?? (estimate.sequences.get(index) ?? 0n) + before))
  }
  return nonces
}

/** The ops of a measured batch, with their nonces and the names that follow from these. */
const finish = (
  input: Input,
  measured: Measured,
  used: Map<string, bigint>,
  now: number,
  present: number
): Preparing.Prepared => {
  const { chainId, entryPoint, payer, signers, spaceOf, version } = input.context
  const { batch, dependencies, estimate, failed, order, waiting, willing } = measured
  const ledger = ledgerOf(input, measured)
  const left = estimate.estimated.filter(({ index }) => !failed.has(index))
  const nonces = noncesOf(input, measured, left, used)
  const links = Links.of(
    dependencies,
    left.map(({ index }) => index),
    (index) => {
      const wallet = willing.get(index)?.call.wallet ?? entryPoint
      return { wallet, key: Ledger.key(entryPoint, wallet, nonces.get(index) ?? 0n) }
    }
  )
  const shown = placeholders(measured, order)
  const ops = left.flatMap((each): ReadonlyArray<PreparedOp> => {
    const own = willing.get(each.index)
    const nonce = nonces.get(each.index)
    if (own === undefined || nonce === undefined) return []
    const { call, conditions, places } = own
    const unsigned: UserOperation.UserOperation = {
      ...each.op,
      nonce,
      callData: Links.callData(ledger, callOf(call), links(each.index))
    }
    return [
      {
        requestId: batch.requestId,
        index: each.index,
        kind: "op",
        unsigned,
        space: spaceOf(call.wallet),
        nonceKey: Nonce.keyOf(nonce),
        sequence: Nonce.sequenceOf(nonce),
        // A paymaster's service has its say when it is signed.
        userOpHash:
          payer.paymaster === null ? UserOperation.hash(version, entryPoint, chainId, unsigned) : null,
        proof: {
          by: places.flatMap((of, place) =>
            signers[of] === undefined ? [] : [{ signer: signers[of], place }]
          )
        },
        window: { validAfter: conditions.validAfter, validUntil: conditions.validUntil },
        dependsOn: call.dependsOn === null ? [] : [call.dependsOn],
        reserve: Preparing.bounded(Payer.walletShare(payer, each)),
        l1Fee: each.l1Fee,
        returned: Preparing.kept(Ledger.returned(shown(each.index), each.returned) ?? each.returned),
        goodUntil: Preparing.goodUntil(now, present, conditions.validUntil)
      }
    ]
  })
  return {
    ...Preparing.nothing,
    ops,
    failed,
    waiting,
    funds: ops.length === 0 ? [] : Funding.forAcceptance(input.context, estimate)
  }
}

const prepareOn = (
  input: Input
): Effect.Effect<
  {
    readonly made: ReadonlyArray<Result.Result<Preparing.Prepared, Failure>>
    readonly timestamp: number | null
  },
  Failure,
  BundlerRpc | ChainFacts
> =>
  Effect.gen(function* () {
    const { context, snapshot } = input
    const lastSecond = yield* Snapshot.validUntil(snapshot.block)
    const sifted: Array<Result.Result<Sifted, Failure>> = []
    for (const batch of input.batches) {
      const one = sift(input, batch, lastSecond)
      if (Result.isSuccess(one)) yield* failUncalled(input, one.success)
      sifted.push(one)
      yield* EventLoop.breathe
    }
    const todo = sifted.flatMap((one, place) =>
      Result.isSuccess(one) && one.success.willing.size > 0
        ? [{ sifted: one.success, order: ordered(one.success), place }]
        : []
    )
    const measured = new Map<number, Result.Result<Measured, Failure>>()
    for (const [position, one] of (yield* measure(input, todo)).entries())
      measured.set(todo[position]?.place ?? -1, one)

    // What does not fit into one transaction in the order of the request is brought together.
    const scattered: typeof todo = []
    for (const { place, sifted: own } of todo) {
      const one = measured.get(place)
      if (one === undefined || Result.isFailure(one)) continue
      const { scattered: isScattered, tooLarge } = tooLargeOf(input, one.success)
      if (tooLarge.length === 0) continue
      if (isScattered)
        scattered.push({
          place,
          sifted: own,
          order: Dependencies.gathered(own.dependencies, own.willing.keys())
        })
      else refuseTooLarge(one.success, tooLarge)
    }
    const gathered = yield* measure({ ...input, early: [] }, scattered)
    for (const [position, one] of gathered.entries()) {
      if (Result.isSuccess(one)) refuseTooLarge(one.success, tooLargeOf(input, one.success).tooLarge)
      measured.set(scattered[position]?.place ?? -1, one)
    }

    let timestamp: number | null = null
    const used = new Map<string, bigint>()
    const now = yield* Clock.currentTimeMillis
    const made: Array<Result.Result<Preparing.Prepared, Failure>> = []
    for (const [place, one] of sifted.entries()) {
      const own = measured.get(place)
      if (Result.isFailure(one)) made.push(Result.fail(one.failure))
      else if (own === undefined) {
        const { failed, waiting } = one.success
        made.push(Result.succeed({ ...Preparing.nothing, failed, waiting }))
      } else if (Result.isFailure(own)) made.push(Result.fail(own.failure))
      else {
        const { estimate } = own.success
        if (timestamp === null)
          yield* Snapshot.checkImplementation(
            context.connection,
            estimate.implementation,
            context.settings.validator
          )
        timestamp = estimate.timestamp
        const present = lastSecond - Snapshot.signatureLifeSeconds
        made.push(Result.succeed(finish(input, own.success, used, now, present)))
        yield* EventLoop.breathe
      }
    }
    return { made, timestamp }
  })

/** Why calls of each batch can not be executed at any time, as far as it can be told without measuring them. */
export const check = (
  input: Input
): Effect.Effect<
  ReadonlyArray<Result.Result<ReadonlyMap<number, ElementFailure>, Failure>>,
  Failure,
  ChainFacts
> =>
  Effect.gen(function* () {
    const lastSecond = yield* Snapshot.validUntil(input.snapshot.block)
    return yield* EventLoop.each(input.batches, (batch) =>
      Effect.gen(function* () {
        const sifted = sift(input, batch, lastSecond)
        if (Result.isFailure(sifted)) return Result.fail(sifted.failure)
        yield* failUncalled(input, sifted.success)
        return Result.succeed(sifted.success.failed)
      })
    )
  })

/**
 * The calls of each batch as prepared ops, in the order of the batches. A `Failure` of a batch is its request's own; a
 * failing node, and an implementation that is not the pinned one, fail all of them.
 */
export const prepare = (
  input: Input
): Effect.Effect<
  ReadonlyArray<Result.Result<Preparing.Prepared, Failure>>,
  Failure,
  BundlerRpc | ChainFacts
> =>
  Effect.gen(function* () {
    const { made, timestamp } = yield* prepareOn(input)
    if (timestamp === null || Math.abs(timestamp - input.snapshot.block.timestamp) <= mostLag) return made
    const snapshot = yield* Snapshot.atLatest(input.context, input.snapshot)
    return (yield* prepareOn({ ...input, snapshot, early: [] })).made
  })
