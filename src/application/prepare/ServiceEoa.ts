import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import type { Version } from "../../domain/erc4337/EntryPoint.js"
import type { FeePrices } from "../../domain/erc4337/gas/Fees.js"
import * as Gas from "../../domain/erc4337/gas/Gas.js"
import * as Percent from "../../domain/erc4337/Percent.js"
import * as PaymasterData from "../../domain/erc4337/paymaster/PaymasterData.js"
import type { UserOperation } from "../../domain/erc4337/UserOperation.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Connection from "../chain/Connection.js"
import * as Capabilities from "../inspect/Capabilities.js"
import * as Keys from "../keys/Keys.js"
import { budget } from "../pay/Losses.js"
import { Budgets, type BudgetsError, type Reservation } from "../ports/Budgets.js"
import type { ChainRpc } from "../ports/chain/ChainRpc.js"
import type { JournalError } from "../ports/journal/JournalError.js"
import type { OpRef } from "../ports/journal/OpRef.js"
import { RequestJournal } from "../ports/journal/RequestJournal.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import type { Networks } from "../ports/Networks.js"
import { type Signer, SignerError, SystemSigners } from "../ports/Signers.js"
import type { AccountId } from "../ports/Tenants.js"
import type { Caller } from "../request/Caller.js"
import { type ElementFailure, elementFailure } from "../request/Elements.js"
import { type Failure, unprocessable } from "../request/Failure.js"
import * as Reasons from "../request/Reasons.js"
import type { ForOps } from "../request/Settings.js"
import type { Shared } from "./OpContext.js"

const unpaid = (message: Reasons.Text, path: string): Failure =>
  unprocessable("submission_unpaid", [{ path, message }])

/** Settings that would bring wallets or contracts of somebody else before the service's EOA. */
const foreign = (settings: ForOps, profile: NetworkProfile): string | null => {
  if (settings.aggregator !== undefined) return "aggregator"
  if (settings.beaconAdminAddress !== undefined && settings.beaconAdminAddress !== profile.beacon)
    return "beaconAdminAddress"
  const code = settings.beaconAdminCreationCode
  if (code !== undefined && code.toLowerCase() !== profile.creationCode?.toLowerCase())
    return "beaconAdminCreationCode"
  return null
}

/** The node has shown that it can say what an op pays; without that the EOA would refuse what somebody has signed. */
export const canSimulate = ({ chain, profile }: Connection.Connection): Effect.Effect<void, Failure> =>
  profile.remoteBundler !== null
    ? Effect.void
    : Effect.flatMap(Capabilities.simulates(chain), (simulates) =>
        // One that did not say is asked again when the ops come.
        simulates === false
          ? Effect.fail(
              unprocessable("node_refused", [
                { path: "settings.rpc", message: Reasons.text("nodeWithoutSimulation") }
              ])
            )
          : Effect.void
      )

/** Why the EOA submits no op of such a request, whatever is signed; null: nothing against it. */
const objectionTo = (settings: ForOps, profile: NetworkProfile): Failure | null => {
  const name = foreign(settings, profile)
  if (name !== null) return unpaid(Reasons.text("foreignSetting", { setting: name }), `settings.${name}`)
  return profile.implementationCodeHash === null
    ? unpaid(Reasons.text("nothingPinned"), "settings.rpc")
    : null
}

/** The EOA is the service's own, and no bundler of somebody else pays: what it submits has to pay for it. */
export const isAtRisk = ({ access, connection }: Pick<Shared, "access" | "connection">): boolean =>
  access.key === "serviceEoa" && connection.profile.remoteBundler === null

/** Fails before anybody has signed what the EOA would not submit. */
export const assertSubmits = (
  connection: Connection.Connection,
  settings: ForOps
): Effect.Effect<void, Failure> => {
  const objection = objectionTo(settings, connection.profile)
  return objection === null ? Effect.void : Effect.fail(objection)
}

/**
 * The service's own EOA as the submitter, and the operator's node, from which everything is read that it relies on. It
 * works for wallets of the account's own profile alone, whose implementation the operator has pinned, and buys no gas
 * beside what the service finds right.
 */
export const open = (
  caller: Caller,
  settings: ForOps
): Effect.Effect<
  { readonly connection: Connection.Connection; readonly submitter: Signer; readonly settings: ForOps },
  Failure,
  ChainRpc | Networks | SystemSigners
> =>
  Effect.gen(function* () {
    const system = yield* SystemSigners
    const submitter = yield* Effect.mapBoth(system.serviceEoa, {
      onFailure: Keys.refusal("settings.signer"),
      onSuccess: Keys.bounded
    })
    const connection = yield* Connection.openOperator(caller, settings)
    yield* assertSubmits(connection, settings)
    const { percentTxGasOvershoot: _, percentTxGasPriceOvershoot: __, ...own } = settings
    return { connection, submitter, settings: own }
  })

const refused = (why: Reasons.Text): ElementFailure => elementFailure("submission_unpaid", why)

/** What the EIP-7623 floor leaves aside: whether an op pays that, the simulation of its bundle tells. */
const enoughGas = 2n ** 64n

/**
 * Why the EOA does not submit this op, its signature in place; null: nothing against it. `least` is what a gas unit
 * costs now, without any buffer.
 */
export const objection = (
  { sponsor }: Pick<NetworkProfile, "sponsor">,
  version: Version,
  op: UserOperation,
  least: FeePrices
): ElementFailure | null => {
  if (op.paymasterAndData !== Hex.empty) {
    const paymaster = PaymasterData.read(version, op.paymasterAndData)?.paymaster
    if (paymaster === undefined || paymaster !== sponsor?.paymaster)
      return refused(Reasons.text("foreignPaymaster", { paymaster: paymaster ?? op.paymasterAndData }))
  }
  for (const price of ["maxFeePerGas", "maxPriorityFeePerGas"] as const)
    if (op[price] < least[price])
      return refused(Reasons.text(price, { given: op[price], least: least[price] }))
  const preVerificationGas = Gas.preVerificationGas(op, { version, measuredGas: enoughGas })
  if (op.preVerificationGas < preVerificationGas)
    return refused(
      Reasons.text("preVerificationGas", { given: op.preVerificationGas, least: preVerificationGas })
    )
  return null
}

/** One op that the EOA is to submit. */
export interface Risk {
  readonly index: number
  readonly op: UserOperation
  /** Wei that layer 1 may ask for it. */
  readonly l1Fee: bigint
}

/** For whose request money is set aside. */
export interface Owner {
  readonly requestId: string
  readonly accountId: AccountId
}

const idOf = ({ requestId }: Pick<Owner, "requestId">, index: number): string =>
  `${budget}:${requestId}:${index}`

const idShape = new RegExp(`^${budget}:(.+):[0-9]+$`)

/** The request for which something is set aside; null: for what a transaction has cost. */
const requestOf = (id: string): string | null => idShape.exec(id)?.[1] ?? null

/** More than any op can declare. */
const mostGas = 2n ** 160n

/** Most wei that the EOA loses when the op pays nothing after all. */
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

/** How long a reservation lasts for an op that is not signed, milliseconds. */
const reservedMillis = 600_000

const limitReached = ({ serviceSubmission }: NetworkProfile, reason: string): ElementFailure =>
  elementFailure(
    "submission_limit",
    reason === "maxOpen"
      ? Reasons.text("tooManyInFlight", { count: serviceSubmission.maxInFlight })
      : Reasons.text("dailyLoss", { wei: serviceSubmission.dailyLoss })
  )

/** Sets aside what each op may cost the EOA; those for which there is no room, and why. */
export const reserve = (
  owner: Owner,
  profile: NetworkProfile,
  version: Version,
  risks: ReadonlyArray<Risk>,
  prices: FeePrices
): Effect.Effect<ReadonlyMap<number, ElementFailure>, never, Budgets> =>
  Effect.gen(function* () {
    const budgets = yield* Budgets
    const { dailyLoss, maxInFlight } = profile.serviceSubmission
    const expiresAt = (yield* Clock.currentTimeMillis) + reservedMillis
    const failed = new Map<number, ElementFailure>()
    for (const risk of risks) {
      const entry: Reservation = {
        accountId: owner.accountId,
        chainId: profile.chainId,
        name: budget,
        id: idOf(owner, risk.index),
        wei: atRisk(profile, version, risk, prices),
        limit: dailyLoss,
        maxOpen: maxInFlight,
        daily: true,
        expiresAt,
        note: ""
      }
      const lack = yield* Effect.orDie(budgets.reserve([entry]))
      if (lack !== null) failed.set(risk.index, limitReached(profile, lack.reason))
    }
    return failed
  })

/** From the moment at which it is signed, what an op may cost is set aside until the request is through. */
export const bind = (
  op: OpRef,
  { chainId }: Pick<NetworkProfile, "chainId">
): Effect.Effect<void, SignerError, Budgets> =>
  Effect.gen(function* () {
    const budgets = yield* Budgets
    if (yield* Effect.orDie(budgets.bind(chainId, idOf(op, op.index)))) return
    return yield* new SignerError({
      reason: "unavailable",
      message: "what was set aside for it has expired: it is set aside again"
    })
  })

/**
 * Runs the work of a request. When it is through, nothing is set aside for it any more: what its transactions have cost
 * is booked by transaction. What is interrupted may have ops on their way, and stays set aside.
 */
export const settling =
  (caller: Caller, { chainId }: Pick<NetworkProfile, "chainId">, elements: ReadonlyArray<number>) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Budgets> =>
    Effect.onExit(work, (exit) =>
      Effect.gen(function* () {
        const budgets = yield* Budgets
        const ids = elements.map((index) => idOf(caller, index))
        yield* budgets.release(chainId, ids)
        // A part of it that failed while it was interrupted says nothing of the others.
        if (Exit.isFailure(exit) && (!Cause.hasFails(exit.cause) || Cause.hasInterrupts(exit.cause))) return
        for (const id of ids) yield* budgets.settle(chainId, id, 0n)
      }).pipe(Effect.ignoreCause({ log: "Debug" }))
    )

/**
 * Gives back what is set aside for requests that have come to their end elsewhere: cancelled, expired or answered while
 * the work that had set it aside was interrupted, or its process was gone.
 */
export const giveBackEnded = (
  chainId: bigint
): Effect.Effect<void, BudgetsError | JournalError, Budgets | RequestJournal> =>
  Effect.gen(function* () {
    const budgets = yield* Budgets
    const requestJournal = yield* RequestJournal
    const held = (yield* budgets.open(chainId)).flatMap(({ bound, id, name }) => {
      const requestId = bound && name === budget ? requestOf(id) : null
      return requestId === null ? [] : [{ id, requestId }]
    })
    if (held.length === 0) return
    const ended = new Set(
      yield* requestJournal.finalAmong([...new Set(held.map(({ requestId }) => requestId))])
    )
    for (const { id, requestId } of held) if (ended.has(requestId)) yield* budgets.settle(chainId, id, 0n)
  })
