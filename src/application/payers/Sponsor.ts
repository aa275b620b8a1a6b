import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Gas from "../../domain/erc4337/gas/Gas.js"
import * as PaymasterData from "../../domain/erc4337/paymaster/PaymasterData.js"
import * as Sponsorship from "../../domain/erc4337/paymaster/Sponsorship.js"
import * as UserOperation from "../../domain/erc4337/UserOperation.js"
import * as Address from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import type { ChainFacts } from "../chain/ChainFacts.js"
import * as ChainTime from "../chain/ChainTime.js"
import { refusal } from "../chain/Connection.js"
import { type ElementFailure, elementFailure } from "../failures/Elements.js"
import { type Failure, unprocessable } from "../failures/Failure.js"
import * as Reasons from "../failures/Reasons.js"
import type { Budgets, Lack, Reservation } from "../ports/Budgets.js"
import type { Block } from "../ports/chain/ChainRpc.js"
import type { Signer, SignerError } from "../ports/Signers.js"
import * as Deposits from "./Deposits.js"
import * as HoldFollower from "./HoldFollower.js"
import { heldMillis, holdId, type Part, type Payer, PayerRefusal, wallet } from "./Payer.js"
import { release, type Site } from "./Paymaster.js"

/**
 * Pays for ops by the operator's own paymaster, which the sponsor's key signs for. `Payers` chooses it only over the
 * operator's node.
 */

/** Life of a sponsorship, seconds, by the chain's clock. */
export const lifeSeconds = 600

/** Tolerated lag of a node behind the one that supplied the time when the op was built, seconds. */
const lagSeconds = 60

const exhaustion = (wei: bigint, { available }: Lack): ElementFailure =>
  elementFailure("sponsorship_exhausted", Reasons.text("sponsorBudget", { wei, available }), {
    required: wei.toString(),
    available: available.toString()
  })

/**
 * The operator's own paymaster. It pays for ops that the service has built, within the operator's fee caps, from the
 * account's budget of the day, for ten minutes. The money is held before the request is accepted, and bound before the
 * sponsor's key signs. Its signature comes last and covers the op's hash, so that no byte can change, and the
 * submitting EOA, so that no other EOA earns from the submission. With a remote bundler it names no EOA.
 */
export const make = (
  options: {
    readonly budgets: Budgets["Service"]
    readonly facts: Pick<ChainFacts, "block">
    readonly follower: HoldFollower.HoldFollower
    readonly signer: Effect.Effect<Signer, SignerError>
    readonly dailyBudget: bigint
  },
  site: Site
): Payer => {
  const { budgets, dailyBudget, facts, signer, follower } = options
  const { accountId, bundler, connection, entryPoint, paymaster, version } = site
  /** With a remote bundler, the submitting EOA is unknown. */
  const unbound = bundler === Address.zero
  const { chain, profile } = connection
  const { chainId } = profile

  const latest: Effect.Effect<Block, Failure> = Effect.flatMap(
    Effect.mapError(facts.block(chain, "recent"), refusal("operator")),
    (block) =>
      block === null
        ? Effect.fail(
            unprocessable("node_refused", [{ path: "", message: Reasons.text("operatorNodeWithoutBlock") }])
          )
        : Effect.succeed(block)
  )

  const termsOf = ({ paymasterAndData }: UserOperation.UserOperation) =>
    Result.getOrElse(Sponsorship.read(version, paymasterAndData), () => ({
      paymaster: null,
      validUntil: 0,
      unbound: false
    }))

  /** The journal proves that the service built its own ops; for an externally built op, `handedOut` must know it. */
  const isOwn = ({ given, op }: Part) =>
    given === null
      ? Effect.succeed(true)
      : Effect.map(
          Effect.orDie(budgets.handedOut(accountId, chainId, given)),
          (known) => known && UserOperation.hash(version, entryPoint, chainId, op) === given
        )

  /** The error in the terms of an op; null: none. */
  const complaint = ({ op }: Part, now: number): ElementFailure | null => {
    const read = Sponsorship.read(version, op.paymasterAndData)
    if (Result.isFailure(read))
      return elementFailure("not_sponsored", Reasons.text("sponsorData", { problem: read.failure }))
    const terms = read.success
    if (terms.paymaster !== paymaster) return elementFailure("not_sponsored")
    if (terms.unbound !== unbound)
      return elementFailure("not_sponsored", Reasons.text(unbound ? "sponsorBound" : "sponsorUnbound"))
    const { maxFeePerGas, maxPriorityFeePerGas, transactionGas } = profile.caps
    if (op.maxFeePerGas > maxFeePerGas || op.maxPriorityFeePerGas > maxPriorityFeePerGas)
      return elementFailure("fees_above_cap")
    if (op.callGasLimit + op.verificationGasLimit + op.preVerificationGas > transactionGas)
      return elementFailure("not_sponsored", Reasons.text("sponsorGas"))
    if (terms.validUntil === 0 || terms.validUntil > now + lifeSeconds + lagSeconds)
      return elementFailure("not_sponsored", Reasons.text("sponsorTime"))
    return terms.validUntil <= now ? elementFailure("sponsorship_over") : null
  }

  /** The sponsor's objection to this op; null: none. */
  const objection: Payer["objection"] = (part, now) => {
    const why = complaint(part, now)
    return why === null
      ? Effect.map(isOwn(part), (own) => (own ? null : elementFailure("not_sponsored")))
      : Effect.succeed(why)
  }

  const holdOf = (part: Part) => ({
    chainId,
    id: holdId(part),
    wei: Gas.requiredPrefund(version, part.op)
  })

  const reserve: Payer["reserve"] = (parts) =>
    Effect.gen(function* () {
      const [deposit, block] = yield* Effect.all([Deposits.read(connection, site), latest], {
        concurrency: "unbounded"
      })
      const now = yield* ChainTime.present(block)
      const expiresAt = (yield* Clock.currentTimeMillis) + heldMillis
      const objections = yield* Effect.forEach(parts, (part) => objection(part, now))
      const groups = parts.map((part, place): ReadonlyArray<Reservation> => {
        if (objections[place] !== null) return []
        const held = { ...holdOf(part), expiresAt }
        return [
          { ...held, accountId, name: HoldFollower.budget, limit: dailyBudget, maxOpen: null, window: "day" },
          Deposits.entry(site, deposit, { ...held, accountId: null })
        ]
      })
      const lacks = yield* Effect.orDie(budgets.reserve(groups))
      return groups.map(([entry], place) => {
        const lack = lacks[place] ?? null
        if (entry === undefined || lack === null) return objections[place] ?? null
        if (lack.reason === "ended") return elementFailure("not_sponsored")
        return lack.budget === HoldFollower.budget
          ? exhaustion(entry.wei, lack)
          : Deposits.failure(site, entry.wei, lack)
      })
    })

  return {
    ...wallet,
    paymaster,
    tail: Sponsorship.tail,
    draft: (op) =>
      op.paymasterAndData === Hex.empty
        ? Effect.map(Effect.flatMap(latest, ChainTime.present), (now) => ({
            ...op,
            paymasterAndData: Sponsorship.paymasterData(version, {
              paymaster,
              limits: PaymasterData.noLimits,
              validUntil: now + lifeSeconds,
              validAfter: 0,
              unbound
            }),
            signature: Sponsorship.append(op.signature, Sponsorship.dummy)
          }))
        : Effect.succeed(op),
    handOut: (op, userOpHash) =>
      Effect.orDie(budgets.handOut(accountId, chainId, userOpHash, termsOf(op).validUntil)),
    objection,
    reserve,
    release: release(budgets, chainId),
    seal: (part, userOpHash) =>
      Effect.gen(function* () {
        const block = yield* latest
        const why = yield* objection(part, yield* ChainTime.present(block))
        // It is prepared again, with another end.
        const passes = part.given === null && why?.code === "sponsorship_over"
        if (why !== null) return yield* new PayerRefusal({ failure: why, passes })
        const { validUntil } = termsOf(part.op)
        const hold = holdOf(part)
        const note = HoldFollower.note({ userOpHash, entryPoint, since: block.number, validUntil })
        const bind = Effect.orDie(budgets.bind(hold, note))
        if (!(yield* bind)) {
          // The hold has expired, or a version that held later accepted the op.
          const [lack] = yield* reserve([part])
          if (lack != null) return yield* new PayerRefusal({ failure: lack, passes: true })
          yield* bind
        }
        yield* follower.watch({ accountId, chain, profile })
        const key = yield* signer
        return yield* key.sign(Sponsorship.digest({ chainId, paymaster }, userOpHash, bundler))
      })
  }
}
