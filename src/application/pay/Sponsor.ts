import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Gas from "../../domain/erc4337/gas/Gas.js"
import * as PaymasterData from "../../domain/erc4337/paymaster/PaymasterData.js"
import * as Sponsorship from "../../domain/erc4337/paymaster/Sponsorship.js"
import * as UserOperation from "../../domain/erc4337/UserOperation.js"
import * as Address from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import { Lru } from "../../domain/primitives/Lru.js"
import { refusal } from "../chain/Connection.js"
import type { Budgets, Lack, Reservation } from "../ports/Budgets.js"
import type { Block } from "../ports/chain/ChainRpc.js"
import type { Signer, SignerError } from "../ports/Signers.js"
import { type ElementFailure, elementFailure } from "../request/Elements.js"
import { type Failure, unprocessable } from "../request/Failure.js"
import * as Reasons from "../request/Reasons.js"
import * as ChainTime from "../runtime/ChainTime.js"
import * as Deposits from "./Deposits.js"
import { type Part, type Payer, PayerRefusal, wallet } from "./Payer.js"
import { keptMillis, mostOps, nameOf, type Site } from "./Paymaster.js"
import * as Sponsorships from "./Sponsorships.js"

/** How long a sponsorship is good, seconds, by the chain's clock. */
export const lifeSeconds = 600

/** Seconds by which a node behind a balancer may lag behind the one that told the time when the op was built. */
const lagSeconds = 60

/** A block is taken for the latest one for so long. */
const blockLife = "5 seconds"

const exhausted = (wei: bigint, { available }: Lack): ElementFailure =>
  elementFailure("sponsorship_exhausted", Reasons.text("sponsorBudget", { wei, available }), {
    required: wei.toString(),
    available: available.toString()
  })

/**
 * The operator's own paymaster. It pays for ops that the service has built, within the operator's fee caps, out of the
 * account's budget of the day, for ten minutes. The money is kept before the sponsor's key signs; its signature comes
 * last, behind the wallet's, and covers the op's hash, so that every byte is as it was when the op was built, and the
 * EOA that submits, so that nobody else is paid for submitting it. With a remote bundler it names no EOA.
 */
export const make = (
  options: {
    readonly budgets: Budgets["Service"]
    readonly sponsorships: Sponsorships.Sponsorships
    readonly signer: Effect.Effect<Signer, SignerError>
    readonly dailyBudget: bigint
  },
  site: Site
): Effect.Effect<Payer> =>
  Effect.gen(function* () {
    const { budgets, dailyBudget, signer, sponsorships } = options
    const { bundler, caller, connection, entryPoint, paymaster, version } = site
    /** With a remote bundler: nobody knows from which EOA it submits. */
    const unbound = bundler === Address.zero
    const { chain, profile } = connection
    const { chainId } = profile
    const { accountId } = caller.principal
    /** What is kept for ops of this request that are not sealed. */
    const kept = new Map<string, { readonly id: Hex.Bytes32; readonly wei: bigint }>()
    /** Ops that were built by this payer. */
    const built = new Lru<Hex.Bytes32, true>(mostOps)

    const latest: Effect.Effect<Block, Failure> = yield* Effect.cachedWithTTL(
      Effect.flatMap(Effect.mapError(chain.block("latest"), refusal("operator")), (block) =>
        block === null
          ? Effect.fail(
              unprocessable("node_refused", [{ path: "", message: Reasons.text("operatorNodeWithoutBlock") }])
            )
          : Effect.succeed(block)
      ),
      blockLife
    )

    const release = (names: ReadonlyArray<string>) =>
      Effect.suspend(() => {
        const ids = names.flatMap((name) => kept.get(name)?.id ?? [])
        for (const name of names) kept.delete(name)
        return ids.length === 0
          ? Effect.void
          : Effect.ignoreCause(budgets.release(chainId, ids), { log: "Debug" })
      })

    /** The terms under which it is sponsored; of other ops none that anybody could use. */
    const termsOf = ({ paymasterAndData }: UserOperation.UserOperation) =>
      Result.getOrElse(Sponsorship.read(version, paymasterAndData), () => ({
        paymaster: null,
        validUntil: 0,
        unbound: false
      }))

    const refuse = (failure: ElementFailure) => new PayerRefusal({ failure })
    const altered = refuse(elementFailure("not_sponsored"))

    /** Why the sponsor does not sign this op; null: nothing against it. */
    const objection = (op: UserOperation.UserOperation, now: number): ElementFailure | null => {
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

    const entriesOf = (
      { op, userOpHash }: Part,
      deposit: bigint,
      since: bigint,
      expiresAt: number
    ): readonly [Reservation, Reservation] => {
      const { validUntil } = termsOf(op)
      const wei = Gas.requiredPrefund(version, op)
      const note = Sponsorships.note({ entryPoint, since, validUntil })
      const common = { chainId, id: userOpHash, wei, expiresAt, note }
      return [
        { ...common, accountId, name: Sponsorships.budget, limit: dailyBudget, maxOpen: null, daily: true },
        Deposits.entry(site, deposit, { ...common, accountId: null })
      ]
    }

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
      complete: (op) =>
        Effect.sync(() => {
          built.set(UserOperation.hash(version, entryPoint, chainId, op), true)
          return op
        }),
      handOut: (op, userOpHash) =>
        Effect.orDie(budgets.handOut(accountId, chainId, userOpHash, termsOf(op).validUntil)),
      reserve: (ops) =>
        Effect.gen(function* () {
          const [deposit, block] = yield* Effect.all([Deposits.read(connection, site), latest], {
            concurrency: "unbounded"
          })
          const now = yield* ChainTime.present(block)
          const expiresAt = (yield* Clock.currentTimeMillis) + keptMillis
          const failed = new Map<number, ElementFailure>()
          for (const part of ops) {
            const why = objection(part.op, now)
            if (why !== null) {
              failed.set(part.index, why)
              continue
            }
            const entries = entriesOf(part, deposit, block.number, expiresAt)
            const [{ wei }] = entries
            const lack = yield* Effect.orDie(budgets.reserve(entries))
            if (lack === null) kept.set(nameOf(part.op), { id: part.userOpHash, wei })
            else if (lack.reason === "ended") failed.set(part.index, elementFailure("not_sponsored"))
            else
              failed.set(
                part.index,
                lack.budget === Sponsorships.budget ? exhausted(wei, lack) : Deposits.failure(site, wei, lack)
              )
          }
          return failed
        }),
      release: (ops) => release(ops.map(({ op }) => nameOf(op))),
      end: Effect.suspend(() => release([...kept.keys()])),
      seal: (op, userOpHash) =>
        Effect.gen(function* () {
          const now = yield* Effect.flatMap(latest, ChainTime.present)
          const why = objection(op, now)
          if (why !== null) return yield* refuse(why)
          const known =
            built.get(userOpHash) === true ||
            (yield* Effect.orDie(budgets.handedOut(accountId, chainId, userOpHash)))
          if (!known || UserOperation.hash(version, entryPoint, chainId, op) !== userOpHash)
            return yield* altered
          const reserved = kept.get(nameOf(op))
          if (reserved?.id !== userOpHash) return yield* altered
          if (!(yield* Effect.orDie(budgets.bind(chainId, userOpHash))))
            return yield* refuse(elementFailure("sponsorship_over"))
          kept.delete(nameOf(op))
          yield* sponsorships.watch({ accountId, chain, profile })
          const key = yield* signer
          return yield* key.sign(Sponsorship.digest({ chainId, paymaster }, userOpHash, bundler))
        })
    }
  })
