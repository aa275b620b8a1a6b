import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Version } from "../../domain/erc4337/EntryPoint.js"
import type { FeePrices } from "../../domain/erc4337/gas/Fees.js"
import * as Gas from "../../domain/erc4337/gas/Gas.js"
import * as SubmitterReimbursement from "../../domain/erc4337/gas/SubmitterReimbursement.js"
import * as Percent from "../../domain/erc4337/Percent.js"
import * as PaymasterData from "../../domain/erc4337/paymaster/PaymasterData.js"
import type { UserOperation } from "../../domain/erc4337/UserOperation.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Capabilities from "../chain/Capabilities.js"
import * as Connection from "../chain/Connection.js"
import { type ElementFailure, elementFailure } from "../failures/Elements.js"
import { type Failure, unprocessable } from "../failures/Failure.js"
import * as Reasons from "../failures/Reasons.js"
import * as Keys from "../keys/Keys.js"
import { budget } from "../payers/Losses.js"
import * as Payer from "../payers/Payer.js"
import { Budgets, type BudgetsError, type Reservation } from "../ports/Budgets.js"
import type { ChainRpc } from "../ports/chain/ChainRpc.js"
import type { JournalError } from "../ports/journal/JournalError.js"
import { RequestJournal } from "../ports/journal/RequestJournal.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import type { Networks } from "../ports/Networks.js"
import { SignerError, SystemSigners } from "../ports/Signers.js"
import type { AccountId } from "../ports/Tenants.js"
import type { Caller } from "../request/Caller.js"
import type { ForOps } from "../request/Settings.js"
import type { Shared } from "./OpContext.js"

/**
 * Decides for which ops the service's own EOA submits, and limits what it may lose by them. Without an external bundler
 * the EOA pays for the gas first, and the op must repay it.
 */

const unpaid = (message: Reasons.Text, path: string): Failure =>
  unprocessable("submission_unpaid", [{ path, message }])

/** Returns the setting that would make the service's EOA run foreign wallets or contracts. */
const foreign = (settings: ForOps, profile: NetworkProfile): string | null => {
  if (settings.aggregator !== undefined) return "aggregator"
  if (settings.beaconAdminAddress !== undefined && settings.beaconAdminAddress !== profile.beacon)
    return "beaconAdminAddress"
  const code = settings.beaconAdminCreationCode
  if (code !== undefined && code.toLowerCase() !== profile.creationCode?.toLowerCase())
    return "beaconAdminCreationCode"
  return null
}

/** Fails when the node is known to lack simulations: the EOA would refuse ops that callers have signed. */
export const canSimulate = ({ chain, profile }: Connection.Connection): Effect.Effect<void, Failure> =>
  profile.remoteBundler !== null
    ? Effect.void
    : Effect.flatMap(Capabilities.simulates(chain), (simulates) =>
        // Without a reply, the check runs again when the ops come.
        simulates === false
          ? Effect.fail(
              unprocessable("node_refused", [
                { path: "settings.rpc", message: Reasons.text("nodeWithoutSimulation") }
              ])
            )
          : Effect.void
      )

/** The submitter, and the node that serves its reads of the chain. */
export interface Route {
  readonly connection: Connection.Connection
  readonly submitter: Address
  readonly byService: boolean
}

/** Route with the service's EOA as the submitter; all reads use the operator's node. */
export const route = (
  caller: Caller,
  settings: ForOps
): Effect.Effect<Route, Failure, ChainRpc | Networks | SystemSigners> =>
  Effect.gen(function* () {
    const connection = yield* Connection.openOperator(caller, settings)
    const { serviceEoa } = yield* SystemSigners
    const { address } = yield* Effect.mapError(serviceEoa, Keys.refusal("settings.signer"))
    yield* canSimulate(connection)
    return { connection, submitter: address, byService: true }
  })

/** The service's EOA submits itself, without an external bundler that pays, so its ops must pay for it. */
export const isAtRisk = ({ access, connection }: Pick<Shared, "access" | "connection">): boolean =>
  access.key === "serviceEoa" && connection.profile.remoteBundler === null

/** Fails before a caller signs ops that the EOA would not submit. */
export const assertSubmits = (
  { profile }: Connection.Connection,
  settings: ForOps
): Effect.Effect<void, Failure> => {
  const name = foreign(settings, profile)
  if (name !== null)
    return Effect.fail(unpaid(Reasons.text("foreignSetting", { setting: name }), `settings.${name}`))
  return profile.implementationCodeHash === null
    ? Effect.fail(unpaid(Reasons.text("nothingPinned"), "settings.rpc"))
    : Effect.void
}

/**
 * Opens a route with the service's EOA as the submitter and the operator's node for all reads. The EOA works only for
 * wallets of the account's own profile, whose implementation the operator has pinned, and ignores the caller's buffers
 * on transactions.
 */
export const open = (
  caller: Caller,
  settings: ForOps
): Effect.Effect<
  {
    readonly connection: Connection.Connection
    readonly submitter: Address
    readonly settings: Omit<ForOps, "useABI">
  },
  Failure,
  ChainRpc | Networks | SystemSigners
> =>
  Effect.gen(function* () {
    const { serviceEoa } = yield* SystemSigners
    const { address } = yield* Effect.mapError(serviceEoa, Keys.refusal("settings.signer"))
    const connection = yield* Connection.openOperator(caller, settings)
    yield* assertSubmits(connection, settings)
    const { percentTxGasOvershoot: _, percentTxGasPriceOvershoot: __, useABI: ___, ...own } = settings
    return { connection, submitter: address, settings: own }
  })

const refusal = (why: Reasons.Text): ElementFailure => elementFailure("submission_unpaid", why)

/** Disables the EIP-7623 floor in the check: the bundle's simulation shows whether the op pays for it. */
const enoughGas = 2n ** 64n

/** The EOA's objection to this signed op; null: none. `least`: the current price of a gas unit, without any buffer. */
export const objection = (
  { sponsor }: Pick<NetworkProfile, "sponsor">,
  version: Version,
  op: UserOperation,
  least: FeePrices
): ElementFailure | null => {
  if (op.paymasterAndData !== Hex.empty) {
    const paymaster = PaymasterData.read(version, op.paymasterAndData)?.paymaster
    if (paymaster === undefined || paymaster !== sponsor?.paymaster)
      return refusal(Reasons.text("foreignPaymaster", { paymaster: paymaster ?? op.paymasterAndData }))
  }
  for (const price of ["maxFeePerGas", "maxPriorityFeePerGas"] as const)
    if (op[price] < least[price])
      return refusal(Reasons.text(price, { given: op[price], least: least[price] }))
  const preVerificationGas = Gas.preVerificationGas(op, { version, measuredGas: enoughGas })
  if (op.preVerificationGas < preVerificationGas)
    return refusal(
      Reasons.text("preVerificationGas", { given: op.preVerificationGas, least: preVerificationGas })
    )
  return null
}

export interface Risk extends Pick<Payer.Part, "requestId" | "index" | "op"> {
  /** Its possible layer 1 fee, wei. */
  readonly l1Fee: bigint
}

/** The account and the chain of an op that the EOA submits. */
export interface Site {
  readonly accountId: AccountId
  readonly connection: Pick<Connection.Connection, "profile">
  readonly version: Version
}

type Element = Pick<Risk, "requestId" | "index">

const idOf = ({ index, requestId }: Element): string => `${budget}:${requestId}:${index}`

const idShape = new RegExp(`^${budget}:(.+):[0-9]+$`)

/** More than any op can declare. */
const mostGas = 2n ** 160n

/** Most wei that the EOA loses if the op pays nothing. */
const atRisk = (
  { sponsor }: NetworkProfile,
  version: Version,
  { l1Fee, op }: Risk,
  prices: FeePrices
): bigint => {
  const gas = Gas.transactionGasLimit(version, [op], {
    bound: mostGas,
    overshoot: Percent.zero,
    withoutPostOp: sponsor?.paymaster ?? null
  })
  return Result.getOrElse(gas, () => mostGas) * prices.maxFeePerGas + l1Fee
}

const limitReached = ({ serviceSubmission }: NetworkProfile, reason: string): ElementFailure =>
  elementFailure(
    "submission_limit",
    reason === "maxOpen"
      ? Reasons.text("tooManyInFlight", { count: serviceSubmission.maxInFlight })
      : Reasons.text("dailyLoss", { wei: serviceSubmission.dailyLoss })
  )

/** Reserves each op's possible cost for the EOA, in one call: null, or the limit it exceeds. */
export const reserve = (
  { accountId, connection: { profile }, version }: Site,
  risks: ReadonlyArray<Risk>,
  prices: FeePrices
): Effect.Effect<ReadonlyArray<ElementFailure | null>, never, Budgets> =>
  Effect.gen(function* () {
    const budgets = yield* Budgets
    const { dailyLoss, maxInFlight } = profile.serviceSubmission
    const expiresAt = (yield* Clock.currentTimeMillis) + Payer.heldMillis
    const groups = risks.map((risk): ReadonlyArray<Reservation> => {
      const least = SubmitterReimbursement.prices(prices, [risk.op])
      return [
        {
          accountId,
          chainId: profile.chainId,
          name: budget,
          id: idOf(risk),
          wei: atRisk(profile, version, risk, least),
          limit: dailyLoss,
          maxOpen: maxInFlight,
          window: "day",
          expiresAt
        }
      ]
    })
    const lacks = yield* Effect.orDie(budgets.reserve(groups))
    return lacks.map((lack) => (lack === null ? null : limitReached(profile, lack.reason)))
  })

/** Binds an op's possible cost at signing, until the request has ended. */
export const bind = (site: Site, risk: Risk): Effect.Effect<void, SignerError, Budgets> =>
  Effect.gen(function* () {
    const budgets = yield* Budgets
    const { chainId } = site.connection.profile
    const bound = Effect.orDie(budgets.bind({ chainId, id: idOf(risk), wei: 0n }, ""))
    if (yield* bound) return
    // The reservation has expired; reserve again.
    const [lack] = yield* reserve(site, [risk], { ...risk.op, legacy: false })
    if (lack === null && (yield* bound)) return
    return yield* new SignerError({
      reason: "unavailable",
      message: lack?.message ?? "no budget is reserved"
    })
  })

/** Releases the reservations of these elements: their transactions' costs are booked by transaction. */
export const giveBack = (
  { connection: { profile } }: Pick<Site, "connection">,
  elements: ReadonlyArray<Element>
): Effect.Effect<void, never, Budgets> =>
  Effect.gen(function* () {
    const budgets = yield* Budgets
    const ids = elements.map(idOf)
    yield* budgets.release(profile.chainId, ids)
    for (const id of ids) yield* budgets.settle(profile.chainId, id, 0n)
  }).pipe(Effect.ignoreCause({ log: "Debug" }))

/** The request that holds a reservation, and whether it is for the EOA; null: not a request's reservation. */
const holderOf = (id: string): { readonly requestId: string; readonly isOwn: boolean } | null => {
  const own = idShape.exec(id)?.[1]
  if (own !== undefined) return { requestId: own, isOwn: true }
  const requestId = Payer.requestOf(id)
  return requestId === null ? null : { requestId, isOwn: false }
}

/**
 * Releases reservations of requests that ended elsewhere: cancelled, expired or answered while the work that held them
 * was interrupted, or its process was gone. The chain decides about ops that a sponsor has signed.
 */
export const giveBackEnded = (
  chainId: bigint
): Effect.Effect<void, BudgetsError | JournalError, Budgets | RequestJournal> =>
  Effect.gen(function* () {
    const budgets = yield* Budgets
    const requestJournal = yield* RequestJournal
    const held = (yield* budgets.open(chainId)).flatMap(({ bound, id }) => {
      const holder = holderOf(id)
      return holder === null || (bound && !holder.isOwn) ? [] : [{ ...holder, bound, id }]
    })
    if (held.length === 0) return
    const ended = new Set(
      yield* requestJournal.finalAmong([...new Set(held.map(({ requestId }) => requestId))])
    )
    const over = held.filter(({ requestId }) => ended.has(requestId))
    yield* budgets.release(
      chainId,
      over.flatMap(({ bound, id }) => (bound ? [] : [id]))
    )
    for (const { bound, id } of over) if (bound) yield* budgets.settle(chainId, id, 0n)
  })
