import * as BigInts from "effect/BigInt"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as L1Fee from "../../domain/erc4337/gas/L1Fee.js"
import * as SubmitterReimbursement from "../../domain/erc4337/gas/SubmitterReimbursement.js"
import type { Bytes32, Hex } from "../../domain/primitives/Hex.js"
import * as EoaNonces from "../chain/EoaNonces.js"
import { type Bundler, BundlerError, ofNode } from "../ports/chain/Bundler.js"
import * as Holding from "../ports/journal/Holding.js"
import * as BundleSimulation from "./BundleSimulation.js"
import type { InFlight } from "./InFlight.js"
import * as LaneSlot from "./LaneSlot.js"
import type { NonceManager, OtherRoute } from "./NonceManager.js"
import type { TransactionMonitor } from "./TransactionMonitor.js"
import * as TransactionPlan from "./TransactionPlan.js"

interface Dependencies {
  readonly lanes: NonceManager
  readonly slots: LaneSlot.LaneSlots
  readonly inFlight: InFlight
  readonly monitor: TransactionMonitor
  readonly scope: Scope.Scope
}

const fail = (
  reason: BundlerError["reason"],
  message: string,
  rest: Partial<Pick<BundlerError, "missing" | "gas" | "dropped">> = {}
) => new BundlerError({ reason, message, missing: 0n, gas: null, dropped: new Map(), ...rest })

/**
 * Submits bundles by the EOA that they name, through its lane. Bundles that arrive while a transaction is made leave
 * together in the next one; an idle lane sends at once.
 */
export const make = ({ inFlight, lanes, scope, slots, monitor }: Dependencies): Bundler["Service"] => {
  const nonces = EoaNonces.make()
  const queues = new Map<string, Array<TransactionPlan.QueuedBundle>>()

  /** The bundle may have left the queue before: who waited for it has given up. */
  const withdraw = (
    queue: Array<TransactionPlan.QueuedBundle>,
    queued: TransactionPlan.QueuedBundle
  ): void => {
    const at = queue.indexOf(queued)
    if (at >= 0) queue.splice(at, 1)
  }

  const refuse = (queued: TransactionPlan.QueuedBundle, error: BundlerError) =>
    Deferred.fail(queued.sent, error)

  /**
   * Makes one transaction out of the first `most` of the queue; bundles that may not go are refused and leave the
   * queue.
   */
  const transact = (
    queue: Array<TransactionPlan.QueuedBundle>,
    drainedTo: bigint,
    most = queue.length
  ): Effect.Effect<void, OtherRoute> =>
    Effect.gen(function* () {
      const [oldest] = queue
      if (oldest === undefined) return
      const lane = { chainId: oldest.bundle.profile.chainId, signer: oldest.bundle.submitter.address }
      const [first = oldest, ...others] = TransactionPlan.before(
        queue.slice(0, most),
        inFlight.isCalling(lane)
      )
      const plan = TransactionPlan.from([first, ...others])
      const { access, aggregate, chain, entryPoint, profile, submitter, version } = first.bundle
      const leave = (bundles: ReadonlyArray<TransactionPlan.QueuedBundle>) => {
        for (const queued of bundles) withdraw(queue, queued)
      }
      const refuseAll = (error: BundlerError) => {
        leave(plan.bundles)
        return Effect.forEach(plan.bundles, (queued) => refuse(queued, error), { discard: true })
      }
      const ops = plan.bundles.flatMap(({ bundle }) => bundle.ops)
      const call = {
        from: submitter.address,
        to: entryPoint,
        data: BundleSimulation.dataOf({ aggregate, submitter: submitter.address, version }, ops),
        gas: plan.gasLimit
      }
      const seen = yield* Effect.result(
        Effect.all(
          [
            BundleSimulation.run({
              chain,
              version,
              entryPoint,
              submitter: submitter.address,
              ops,
              aggregate,
              gas: plan.gasLimit
            }),
            nonces(chain, submitter.address),
            chain.balance(submitter.address),
            TransactionPlan.isService(first) ? chain.block("latest") : Effect.succeed(null)
          ],
          { concurrency: "unbounded" }
        )
      )
      if (Result.isFailure(seen)) return yield* refuseAll(ofNode(seen.failure))
      const [{ gas, refused }, { latest, next: chainNonce }, balance, block] = seen.success
      if (refused.size > 0) {
        const hit = plan.bundles.filter(({ bundle }) => bundle.ops.some((op) => refused.has(op.userOpHash)))
        leave(hit)
        return yield* Effect.forEach(
          hit,
          (queued) => {
            const dropped = new Map<Bytes32, Hex>()
            for (const { userOpHash } of queued.bundle.ops) {
              const data = refused.get(userOpHash)
              if (data !== undefined) dropped.set(userOpHash, data)
            }
            return refuse(queued, fail("rejected", "operations would fail in the bundle", { dropped }))
          },
          { discard: true }
        )
      }
      if (TransactionPlan.isService(first)) {
        const { maxFeePerGas, maxPriorityFeePerGas } = plan.prices
        const gasPrice = BigInts.min(
          maxFeePerGas,
          (block?.baseFeePerGas ?? maxFeePerGas) + maxPriorityFeePerGas
        )
        if (
          gas === null ||
          !SubmitterReimbursement.covers(gas, { gasPrice, l1Fee: L1Fee.unbound(plan.l1Fee) })
        ) {
          // The others shall not suffer from one that is paid for by them.
          if (plan.bundles.length > 1) return yield* transact(queue, drainedTo, 1)
          return yield* refuseAll(
            fail("unpaid", "the ops do not pay for the transaction", {
              gas: gas === null ? null : { used: gas.used, charged: gas.charged }
            })
          )
        }
      }
      // One was withdrawn while the node was asked: what is left makes another transaction.
      if (plan.bundles.some((queued) => !queue.includes(queued))) return
      if (!EoaNonces.canBe({ latest, next: chainNonce }))
        return yield* refuseAll(fail("nodeFailed", `${chain.origin} gives a nonce of the EOA that cannot be`))
      const signed = yield* Effect.result(
        lanes
          .sign({
            access,
            ops: plan.bundles.flatMap(({ bundle }) =>
              bundle.ops.map(({ index, userOpHash }) => ({
                requestId: bundle.requestId,
                index,
                userOpHash,
                entryPoint: bundle.entryPoint
              }))
            ),
            direct: null,
            chain,
            chainId: profile.chainId,
            signer: submitter,
            to: call.to,
            data: call.data,
            value: 0n,
            gasLimit: TransactionPlan.gasLimit(plan, gas),
            prices: plan.prices,
            l1Fee: plan.l1Fee,
            chainNonce,
            drainedTo,
            balance
          })
          .pipe(Effect.provideService(Holding.begun, { holding: TransactionPlan.holding(plan) }))
      )
      if (Result.isFailure(signed)) {
        const error = signed.failure
        switch (error._tag) {
          case "OtherRoute":
            return yield* error
          case "LaneFunds":
            // What is too dear together may be paid for one by one.
            if (plan.bundles.length > 1) return yield* transact(queue, drainedTo, 1)
            return yield* refuseAll(
              fail("insufficientFunds", `the submitting EOA lacks ${error.missing} wei`, {
                missing: error.missing
              })
            )
          case "SignerError":
            return yield* refuseAll(
              fail(error.reason === "refused" ? "signerRefused" : "signerUnavailable", error.message)
            )
          case "JournalError":
            // Whether the bytes were stored is not known: those who wait look into the journal again.
            leave(plan.bundles)
            return yield* Effect.forEach(plan.bundles, ({ sent }) => Deferred.die(sent, error), {
              discard: true
            })
        }
      }
      if (plan.bundles.every(TransactionPlan.isCreation)) inFlight.noteCreation(signed.success)
      yield* monitor.watch({ chain, profile, record: signed.success })
      leave(plan.bundles)
      for (const { sent } of plan.bundles) Deferred.doneUnsafe(sent, Effect.void)
    })

  const work = (key: string, queue: Array<TransactionPlan.QueuedBundle>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const [first] = queue
      if (first === undefined) {
        queues.delete(key)
        return Effect.void
      }
      const { chain, entryPoint, profile, submitter } = first.bundle
      const wanted = {
        chainId: profile.chainId,
        signer: submitter.address,
        route: entryPoint,
        below: profile.maxInFlight,
        creates: TransactionPlan.creates(first),
        arrival: first.arrival,
        confirmedNonce: LaneSlot.confirmedNonce(chain, submitter.address, profile)
      }
      return slots
        .take(wanted, (drainedTo) => transact(queue, drainedTo))
        .pipe(
          Effect.catchCause((cause) => {
            // A defect must not leave anybody waiting, nor the lane without its worker.
            const stranded = queue.splice(0)
            return Effect.forEach(stranded, ({ sent }) => Deferred.die(sent, Cause.squash(cause)), {
              discard: true
            })
          }),
          Effect.andThen(Effect.suspend(() => work(key, queue)))
        )
    })

  return {
    submit: (bundle) =>
      Effect.gen(function* () {
        const { access, chain, profile, submitter } = bundle
        const lane = { chainId: profile.chainId, signer: submitter.address }
        const key = `${lane.chainId}:${lane.signer}`
        // What keeps the lane full may be stuck at nodes of others, or of the past.
        yield* monitor.useNode(lane, access, chain)
        const sent = yield* Deferred.make<void, BundlerError>()
        const known = queues.get(key)
        const queue = known ?? []
        const { holding } = yield* Holding.begun
        const queued = { bundle, sent, holding, arrival: slots.arrive() }
        queue.push(queued)
        if (known === undefined) {
          queues.set(key, queue)
          yield* Effect.forkIn(Holding.outliving(work(key, queue)), scope)
        }
        yield* Effect.onInterrupt(Deferred.await(sent), () => Effect.sync(() => withdraw(queue, queued)))
        return new Map()
      })
  }
}
