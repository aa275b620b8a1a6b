import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Nonce from "../../domain/erc4337/Nonce.js"
import * as UserOperation from "../../domain/erc4337/UserOperation.js"
import * as Ledger from "../../domain/wallet/Ledger.js"
import type { ChainFacts } from "../chain/ChainFacts.js"
import type { Failure } from "../failures/Failure.js"
import * as Funding from "../payers/Funding.js"
import * as Payer from "../payers/Payer.js"
import type { BundlerRpc } from "../ports/chain/BundlerRpc.js"
import type { PreparedOp } from "../ports/journal/Records.js"
import * as EventLoop from "../runtime/EventLoop.js"
import * as CreatedContracts from "./estimate/CreatedContracts.js"
import type * as Estimation from "./estimate/Estimation.js"
import * as InitialSimulation from "./estimate/InitialSimulation.js"
import * as LensEstimation from "./estimate/LensEstimation.js"
import * as Links from "./ops/Links.js"
import * as Measure from "./ops/Measure.js"
import * as Sift from "./ops/Sift.js"
import * as Preparation from "./Preparation.js"
import * as Snapshot from "./Snapshot.js"

/**
 * Prepares ops from calls: encodes, links, measures and prices them, and sets their nonces. Intake uses it for the
 * requests of a run, and a lane's worker for accepted ops whose preparation has expired.
 */

/** Most seconds between the snapshot's block and the measurement's; beyond that the chain's clock has leapt. */
const mostLag = 60

/** The initial simulations of the batches' measurements, made in one call; null: not usable. */
export const initialSimulations = (
  input: Sift.Input
): Effect.Effect<ReadonlyArray<InitialSimulation.InitialSimulation | null>, never, ChainFacts> =>
  Effect.gen(function* () {
    const lastSecond = yield* Snapshot.validUntil(input.snapshot.block)
    const drafts = new Map<number, Estimation.Input>()
    for (const [place, batch] of input.batches.entries()) {
      const sifted = Sift.of(input, batch, lastSecond)
      if (Result.isFailure(sifted) || sifted.success.willing.size === 0) continue
      drafts.set(place, Sift.draft(input, sifted.success, Sift.order(input, sifted.success), null))
      yield* EventLoop.breathe
    }
    const [view] = drafts.values()
    if (view === undefined) return input.batches.map(() => null)
    const trials = yield* Effect.forEach(drafts.values(), InitialSimulation.trials)
    const reports = yield* LensEstimation.simulateEach(
      view,
      trials.map((each) => InitialSimulation.question(view, each))
    )
    const found = new Map<number, InitialSimulation.InitialSimulation>()
    for (const [position, place] of [...drafts.keys()].entries()) {
      const report = reports[position]
      if (report !== undefined && Result.isSuccess(report))
        found.set(place, { trials: trials[position] ?? [], report: report.success })
    }
    return input.batches.map((_, place) => found.get(place) ?? null)
  }).pipe(Effect.orElseSucceed(() => input.batches.map(() => null)))

/** Fails calls to addresses without code. */
const failUncalled = (input: Sift.Input, sifted: Sift.Sifted): Effect.Effect<void, Failure, ChainFacts> =>
  Effect.gen(function* () {
    if (input.snapshot.codeless.size === 0) return
    const draft = Sift.draft(input, sifted, Sift.order(input, sifted), null)
    const lost = yield* CreatedContracts.missing(draft, draft.drafts, input.snapshot.codeless)
    for (const [index, failure] of lost) sifted.failed.set(index, failure)
    Links.failDependants(sifted.dependencies, sifted.failed)
    for (const index of sifted.failed.keys()) sifted.willing.delete(index)
  })

/**
 * Assigns the nonces of a batch's remaining ops. `used`: by nonce key, the number of ops before them in this batch and
 * earlier ones.
 */
const noncesOf = (
  { nonceOf }: Sift.Input,
  { estimate, willing }: Measure.Measured,
  left: ReadonlyArray<Estimation.Estimated>,
  used: Map<string, bigint>
): ReadonlyMap<number, bigint> => {
  const nonces = new Map<number, bigint>()
  for (const { index } of left) {
    const call = willing.get(index)?.call
    if (call === undefined) continue
    const { key, sequence } = nonceOf(call)
    const place = `${call.wallet} ${key}`
    const before = used.get(place) ?? 0n
    if (sequence === null) used.set(place, before + 1n)
    nonces.set(index, Nonce.make(key, sequence ?? (estimate.sequences.get(index) ?? 0n) + before))
  }
  return nonces
}

/** Completes a measured batch: sets nonces, and the links and hashes that depend on them. */
const finish = (
  input: Sift.Input,
  measured: Measure.Measured,
  used: Map<string, bigint>,
  now: number,
  present: number
): Preparation.Prepared => {
  const { chainId, entryPoint, payer, signers, spaceOf, version } = input.context
  const { batch, dependencies, estimate, failed, order, waiting, willing } = measured
  const ledger = Links.ledger(dependencies, input.context.connection)
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
  const shown = Sift.placeholders(measured, order)
  const ops = left.flatMap((each): ReadonlyArray<PreparedOp> => {
    const own = willing.get(each.index)
    const nonce = nonces.get(each.index)
    if (own === undefined || nonce === undefined) return []
    const { call, conditions, places } = own
    const unsigned: UserOperation.UserOperation = {
      ...each.op,
      nonce,
      callData: Links.callData(ledger, Sift.callOf(call), links(each.index))
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
        // A paymaster's service completes the op at signing.
        userOpHash:
          payer.paymaster === null ? UserOperation.hash(version, entryPoint, chainId, unsigned) : null,
        proof: {
          by: places.flatMap((of, place) =>
            signers[of] === undefined ? [] : [{ signer: signers[of], place }]
          )
        },
        window: { validAfter: conditions.validAfter, validUntil: conditions.validUntil },
        dependsOn: call.dependsOn === null ? [] : [call.dependsOn],
        reserve: Preparation.cap(Payer.walletShare(payer, each)),
        l1Fee: each.l1Fee,
        returned: Preparation.kept(Ledger.callResult(shown(each.index), each.returned) ?? each.returned),
        goodUntil: Preparation.goodUntil(now, present, conditions.validUntil)
      }
    ]
  })
  return {
    ...Preparation.nothing,
    ops,
    failed,
    waiting,
    funds: ops.length === 0 ? [] : Funding.forAcceptance(input.context, estimate)
  }
}

const prepareOn = (
  input: Sift.Input
): Effect.Effect<
  {
    readonly made: ReadonlyArray<Result.Result<Preparation.Prepared, Failure>>
    readonly timestamp: number | null
  },
  Failure,
  BundlerRpc | ChainFacts
> =>
  Effect.gen(function* () {
    const { context, snapshot } = input
    const lastSecond = yield* Snapshot.validUntil(snapshot.block)
    const sifted: Array<Result.Result<Sift.Sifted, Failure>> = []
    for (const batch of input.batches) {
      const one = Sift.of(input, batch, lastSecond)
      if (Result.isSuccess(one)) yield* failUncalled(input, one.success)
      sifted.push(one)
      yield* EventLoop.breathe
    }
    const todo = sifted.flatMap((one, place) =>
      Result.isSuccess(one) && one.success.willing.size > 0
        ? [{ sifted: one.success, order: Sift.order(input, one.success), place }]
        : []
    )
    const measured = yield* Measure.all(input, todo)
    let timestamp: number | null = null
    const used = new Map<string, bigint>()
    const now = yield* Clock.currentTimeMillis
    const made: Array<Result.Result<Preparation.Prepared, Failure>> = []
    for (const [place, one] of sifted.entries()) {
      const own = measured.get(place)
      if (Result.isFailure(one)) made.push(Result.fail(one.failure))
      else if (own === undefined) {
        const { failed, waiting } = one.success
        made.push(Result.succeed({ ...Preparation.nothing, failed, waiting }))
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

/** Finds the calls of each batch that can never be executed, as far as possible unmeasured, or that wait. */
export const check = (
  input: Sift.Input
): Effect.Effect<
  ReadonlyArray<Result.Result<Pick<Preparation.Prepared, "failed" | "waiting">, Failure>>,
  Failure,
  ChainFacts
> =>
  Effect.gen(function* () {
    const lastSecond = yield* Snapshot.validUntil(input.snapshot.block)
    return yield* EventLoop.each(input.batches, (batch) =>
      Effect.gen(function* () {
        const sifted = Sift.of(input, batch, lastSecond)
        if (Result.isFailure(sifted)) return Result.fail(sifted.failure)
        yield* failUncalled(input, sifted.success)
        return sifted
      })
    )
  })

export const prepare = (input: Sift.Input): Preparation.Each =>
  Effect.gen(function* () {
    const { made, timestamp } = yield* prepareOn(input)
    if (timestamp === null || Math.abs(timestamp - input.snapshot.block.timestamp) <= mostLag) return made
    const snapshot = yield* Snapshot.atLatest(input.context, input.snapshot)
    return (yield* prepareOn({ ...input, snapshot, early: [] })).made
  })
