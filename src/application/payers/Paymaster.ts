import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Version } from "../../domain/erc4337/EntryPoint.js"
import * as Gas from "../../domain/erc4337/gas/Gas.js"
import * as Nonce from "../../domain/erc4337/Nonce.js"
import * as PaymasterData from "../../domain/erc4337/paymaster/PaymasterData.js"
import type { UserOperation } from "../../domain/erc4337/UserOperation.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import { Lru } from "../../domain/primitives/Lru.js"
import type { Connection } from "../chain/Connection.js"
import { type ElementFailure, elementFailure } from "../failures/Elements.js"
import { type Failure, unprocessable } from "../failures/Failure.js"
import * as Reasons from "../failures/Reasons.js"
import type { Budgets } from "../ports/Budgets.js"
import type {
  PaymasterAnswer,
  PaymasterClient,
  PaymasterContext,
  PaymasterRpcError
} from "../ports/chain/PaymasterRpc.js"
import type { AccountId } from "../ports/Tenants.js"
import * as Deposits from "./Deposits.js"
import { heldMillis, holdId, type Payer, PayerRefusal, wallet } from "./Payer.js"

/**
 * Pays for ops by paymasters other than the operator's own: `plain` without data, `service` with data from an ERC-7677
 * service. `Payers` chooses; `Sponsor` is the operator's own.
 */

export interface Site {
  readonly accountId: AccountId
  readonly connection: Connection
  readonly entryPoint: Address
  readonly version: Version
  readonly paymaster: Address
  /** The only EOA that may submit the ops; zero: any. */
  readonly bundler: Address
}

const nameOf = ({ nonce, sender }: UserOperation): string => `${sender}:${nonce}`

/** Most ops whose measurement answers a payer remembers: far more than are signed at a time. */
export const mostOps = 8_192

/**
 * Any paymaster that takes no data. Its deposit may run out, or it may refuse: the simulation shows both. The budget
 * bounds this account's joint use of the deposit.
 */
export const plain = (budgets: Budgets["Service"], site: Site): Payer => {
  const { accountId, connection, paymaster, version } = site
  const { chainId } = connection.profile
  return {
    ...wallet,
    paymaster,
    draft: (op) =>
      Effect.succeed(
        op.paymasterAndData === Hex.empty
          ? {
              ...op,
              paymasterAndData: PaymasterData.make(version, {
                paymaster,
                limits: PaymasterData.noLimits,
                data: Hex.empty
              })
            }
          : op
      ),
    reserve: (parts) =>
      Effect.gen(function* () {
        const available = yield* Deposits.read(connection, site)
        const expiresAt = (yield* Clock.currentTimeMillis) + heldMillis
        const entries = parts.map((part) =>
          Deposits.entry(site, available, {
            accountId,
            chainId,
            id: holdId(part),
            wei: Gas.requiredPrefund(version, part.op),
            expiresAt
          })
        )
        const lacks = yield* Effect.orDie(budgets.reserve(entries.map((entry) => [entry])))
        return entries.map(({ wei }, place) => {
          const lack = lacks[place] ?? null
          return lack === null ? null : Deposits.failure(site, wei, lack)
        })
      }),
    release: release(budgets, chainId)
  }
}

/** An unbound hold that is not released expires. */
export const release =
  (budgets: Budgets["Service"], chainId: bigint): Payer["release"] =>
  (held) =>
    held.length === 0
      ? Effect.void
      : Effect.ignoreCause(budgets.release(chainId, held.map(holdId)), { log: "Debug" })

const refusalOf = (error: PaymasterRpcError): ElementFailure =>
  error.reason === "refused"
    ? elementFailure("paymaster_refused", Reasons.text("paymasterRefused", { message: error.message }))
    : elementFailure(
        "paymaster_unavailable",
        Reasons.text("paymasterSilent", {
          message: error.origin === "" ? error.message : `${error.origin}: ${error.reason}`
        })
      )

const asFailure = ({ code, figures, message }: ElementFailure): Failure =>
  unprocessable(code, [{ path: "settings.paymaster", message, ...figures }], { message })

const bare = (op: UserOperation): UserOperation => ({ ...op, paymasterAndData: Hex.empty })

/** A paymaster whose service supplies its data by ERC-7677; every call carries this context. */
export const service = (
  budgets: Budgets["Service"],
  client: Effect.Effect<PaymasterClient, PaymasterRpcError>,
  site: Site,
  context: PaymasterContext
): Payer => {
  const { connection, entryPoint, paymaster, version } = site
  const { chainId } = connection.profile
  /** The service's answers at measurement, by wallet and nonce key. */
  const stubs = new Lru<string, PaymasterAnswer>(mostOps)
  const keyOf = ({ nonce, sender }: UserOperation) => `${sender}:${Nonce.keyOf(nonce)}`

  const ask = (method: "stub" | "data", op: UserOperation) =>
    Effect.gen(function* () {
      const asked = yield* client
      const answer = yield* asked[method](chainId, { version, entryPoint, op }, context)
      if (answer.paymaster !== paymaster)
        return yield* Effect.fail(
          elementFailure("paymaster_refused", Reasons.text("otherPaymaster", { paymaster: answer.paymaster }))
        )
      const tooLong = PaymasterData.objection(answer.data)
      if (tooLong !== null)
        return yield* Effect.fail(
          elementFailure("paymaster_refused", Reasons.text("paymasterData", { problem: tooLong }))
        )
      return answer
    }).pipe(Effect.mapError((error) => ("_tag" in error ? refusalOf(error) : error)))

  const withAnswer = (op: UserOperation, answer: PaymasterAnswer, limits: PaymasterData.Limits) => ({
    ...op,
    paymasterAndData: PaymasterData.make(version, {
      paymaster,
      data: answer.data,
      limits: {
        verificationGasLimit: answer.verificationGasLimit ?? limits.verificationGasLimit,
        postOpGasLimit: answer.postOpGasLimit ?? limits.postOpGasLimit
      }
    })
  })

  return {
    ...plain(budgets, site),
    draft: (op) =>
      op.paymasterAndData === Hex.empty
        ? Effect.mapBoth(ask("stub", op), {
            onFailure: asFailure,
            onSuccess: (answer) => {
              stubs.set(keyOf(op), answer)
              return withAnswer(op, answer, PaymasterData.noLimits)
            }
          })
        : Effect.succeed(op),
    // The final data's bytes differ from the stub's, and may cost more as calldata.
    priced: (op) => ({ ...op, paymasterAndData: PaymasterData.dearest(version, op.paymasterAndData) }),
    complete: (op) =>
      Effect.gen(function* () {
        const measured = PaymasterData.read(version, op.paymasterAndData)
        const limits = measured?.limits ?? PaymasterData.noLimits
        const stub = stubs.get(keyOf(op))
        // Query a final stub again, since the op's nonce and limits were not final then. Also query an op that another
        // process measured: a service whose first answer is final may have no other method.
        const again = stub?.final === false ? null : yield* ask("stub", bare(op))
        const answer = again?.final === true ? again : yield* ask("data", op)
        const completed = withAnswer(op, answer, limits)
        const longest = measured === null ? 0 : Hex.size(measured.data)
        if (Hex.size(answer.data) > longest)
          return yield* Effect.fail(
            elementFailure(
              "paymaster_refused",
              Reasons.text("paymasterLonger", { given: Hex.size(answer.data), stub: longest })
            )
          )
        if (Gas.requiredPrefund(version, completed) > Gas.requiredPrefund(version, op))
          return yield* Effect.fail(elementFailure("paymaster_refused", Reasons.text("paymasterDearer")))
        return completed
      }).pipe(
        Effect.mapError((failure) => new PayerRefusal({ failure })),
        Effect.annotateLogs({ op: nameOf(op) })
      )
  }
}
