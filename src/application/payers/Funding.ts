import * as BigInts from "effect/BigInt"
import type { Version } from "../../domain/erc4337/EntryPoint.js"
import type * as GasLens from "../../domain/erc4337/gas/GasLens.js"
import * as PaymasterData from "../../domain/erc4337/paymaster/PaymasterData.js"
import type { UserOperation } from "../../domain/erc4337/UserOperation.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Uint from "../../domain/primitives/Uint.js"
import { type ElementFailure, elementFailure } from "../failures/Elements.js"
import * as Reasons from "../failures/Reasons.js"
import type { Acceptance } from "../ports/journal/Records.js"
import type { NonceSpace } from "../ports/journal/Requests.js"

/**
 * Finds the payers of a list of ops, and whether their funds suffice, in order. A wallet pays for itself from its
 * EntryPoint deposit and its balance. A paymaster pays only from its deposit; the wallet then needs only the value that
 * its call sends.
 */
export interface Funds {
  /** Deposit and balance of every sender, wei. */
  readonly available: ReadonlyMap<Address, bigint>
  /** Deposits at the EntryPoint of senders and paymasters, wei. */
  readonly deposits: ReadonlyMap<Address, bigint>
}

export interface Costed {
  readonly op: UserOperation
  /** Wei that the EntryPoint demands before it runs the op. */
  readonly prefund: bigint
}

/** The paymaster that the op names; null: its wallet pays. */
export const paymasterOf = (version: Version, op: UserOperation): Address | null =>
  PaymasterData.read(version, op.paymasterAndData)?.paymaster ?? null

/** All distinct accounts whose money the ops may take. */
export const payers = (version: Version, ops: ReadonlyArray<UserOperation>): ReadonlyArray<Address> => [
  ...new Set(ops.flatMap((op) => [op.sender, paymasterOf(version, op) ?? op.sender]))
]

/** Their funds before the ops; `states` are those of `accounts`. */
export const found = (
  ops: ReadonlyArray<UserOperation>,
  accounts: ReadonlyArray<Address>,
  states: ReadonlyArray<GasLens.WalletState>
): Funds => {
  const known = new Map(
    accounts.flatMap((account, position) => {
      const state = states[position]
      return state === undefined ? [] : [[account, state] as const]
    })
  )
  return {
    available: new Map(
      ops.flatMap(({ sender }) => {
        const state = known.get(sender)
        return state === undefined ? [] : [[sender, state.deposit + state.balance] as const]
      })
    ),
    deposits: new Map([...known].map(([account, { deposit }]) => [account, deposit]))
  }
}

/** Missing prefund of each op after the payable ops before it, wei; 0: none. */
export const lacks = (
  version: Version,
  trials: ReadonlyArray<Costed>,
  { available, deposits }: Funds
): ReadonlyArray<bigint> => {
  const byWallets = new Map<Address, bigint>()
  const byPaymasters = new Map<Address, bigint>()
  return trials.map(({ op, prefund }) => {
    const paymaster = paymasterOf(version, op)
    const [payer, claimed, funds] =
      paymaster === null ? [op.sender, byWallets, available] : [paymaster, byPaymasters, deposits]
    const total = (claimed.get(payer) ?? 0n) + prefund
    const has = funds.get(payer) ?? 0n
    if (total > has) return total - has
    claimed.set(payer, total)
    return 0n
  })
}

/**
 * Which ops make their wallet pay because its deposit does not cover their prefund. Paying costs gas, so a measurement
 * only holds for a prefund on the same side of the deposit.
 */
export const selfFunded = (
  version: Version,
  ops: ReadonlyArray<Costed>,
  { deposits }: Funds
): ReadonlyArray<boolean> => {
  const left = new Map(deposits)
  return ops.map(({ op, prefund }) => {
    if (paymasterOf(version, op) !== null) return false
    const has = left.get(op.sender) ?? 0n
    left.set(op.sender, has > prefund ? has - prefund : 0n)
    return prefund > has
  })
}

export const failures = (
  version: Version,
  ops: ReadonlyArray<Costed & { readonly value: bigint; readonly measure: GasLens.Measure | undefined }>,
  funds: Funds
): ReadonlyMap<number, ElementFailure> => {
  const failed = new Map<number, ElementFailure>()
  const spent = new Map<Address, bigint>()
  const missing = lacks(version, ops, funds)
  for (const [position, { measure, op, prefund, value }] of ops.entries()) {
    const paymaster = paymasterOf(version, op)
    const lack = missing[position] ?? 0n
    if (paymaster !== null && lack > 0n) {
      failed.set(position, depositTooLow(paymaster, prefund, funds.deposits.get(paymaster) ?? 0n, lack))
      continue
    }
    const own = (paymaster === null ? prefund : 0n) + value
    const before = spent.get(op.sender) ?? 0n
    const available = funds.available.get(op.sender) ?? 0n
    const overdraft = before + own - available
    // A call that sends more than its wallet has reverts without a reason; the sum reveals it.
    const unpaid = measure?.stage === "call" && measure.data === Hex.empty && value > 0n && overdraft > 0n
    if (unpaid || lack > 0n || measure?.stage === "prefund")
      failed.set(
        position,
        walletLacks(op.sender, unpaid ? own : prefund, available, unpaid ? overdraft : lack)
      )
    else if (measure?.stage === "ok") spent.set(op.sender, before + own)
  }
  return failed
}

const walletLacks = (wallet: Address, required: bigint, available: bigint, missing: bigint): ElementFailure =>
  elementFailure("insufficient_funds", Reasons.text("walletFunds", { wallet, missing }), {
    wallet,
    required: required.toString(),
    available: available.toString(),
    missing: missing.toString()
  })

const depositTooLow = (
  paymaster: Address,
  required: bigint,
  available: bigint,
  missing: bigint
): ElementFailure =>
  elementFailure("insufficient_funds", Reasons.text("paymasterFunds", { paymaster, missing }), {
    paymaster,
    required: required.toString(),
    available: available.toString(),
    missing: missing.toString()
  })

export const forAcceptance = (
  { spaceOf }: { readonly spaceOf: (wallet: Address) => NonceSpace },
  { available }: Funds
): Acceptance["funds"] =>
  [...available].map(([wallet, wei]) => ({
    space: spaceOf(wallet),
    available: BigInts.min(wei, Uint.max(256))
  }))
