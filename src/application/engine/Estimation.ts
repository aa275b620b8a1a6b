import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Address } from "../../domain/evm/Address.js"
import * as Hex from "../../domain/evm/Hex.js"
import * as Uint from "../../domain/evm/Uint.js"
import * as Gas from "../../domain/op/Gas.js"
import * as GasLens from "../../domain/op/GasLens.js"
import * as Nonce from "../../domain/op/Nonce.js"
import * as Proof from "../../domain/op/Proof.js"
import * as UserOperation from "../../domain/op/UserOperation.js"
import { type Failure, unprocessable } from "../Failure.js"
import type { StateOverride } from "../ports/ChainRpc.js"
import type { Acceptance } from "../ports/Journal.js"
import { refusal } from "./Connection.js"
import { type ElementFailure, elementFailure } from "./Elements.js"
import { Engine } from "./Engine.js"
import * as L1Fees from "./L1Fees.js"
import * as PlainLens from "./PlainLens.js"
import type { Ground } from "./Preparation.js"
import * as RemoteGas from "./RemoteGas.js"

/** One op to be measured: its signature a dummy of the real shape; limits are filled in here unless declared. */
export interface Draft {
  readonly index: number
  readonly op: UserOperation.UserOperation
  /** Wei that its call sends. */
  readonly value: bigint
}

export interface Input {
  readonly ground: Ground
  readonly entryPointCode: Hex.Hex
  /** The EOA that will submit (tx.origin). */
  readonly from: Address
  readonly drafts: ReadonlyArray<Draft>
  /** The ops carry their final limits: nothing is measured, they are only tried. */
  readonly declared: boolean
  /** Try once more under the limits that came out, and raise what proves too low. */
  readonly verify: boolean
  readonly revert: (data: Hex.Hex) => string
  /** State as the simulation shall see it. */
  readonly extra?: Readonly<Record<string, Omit<GasLens.AccountOverride, "code">>>
}

/** An op with its limits, and what its call returned in the last simulation. */
export interface Estimated extends Draft {
  readonly returned: Hex.Hex
  /** Wei that the EntryPoint demands before it runs the op. */
  readonly prefund: bigint
  /** Wei that layer 1 may ask of the submitter for the op's data; the op's preVerificationGas pays it back. */
  readonly l1Fee: bigint
}

export interface Estimate {
  readonly estimated: ReadonlyArray<Estimated>
  readonly failed: ReadonlyMap<number, ElementFailure>
  /** Deposit and balance of every sender, wei. */
  readonly available: ReadonlyMap<Address, bigint>
  /** Sequence of the nonce key of each draft, by index, before any of them. */
  readonly sequences: ReadonlyMap<number, bigint>
  readonly implementation: GasLens.Report["implementation"]
}

/** What the wallets of an estimate had, as `Journal.accept` wants it. */
export const fundsOf = ({ spaceOf }: Ground, { available }: Estimate): Acceptance["funds"] =>
  [...available].map(([wallet, wei]) => ({
    space: spaceOf(wallet),
    available: BigInts.min(wei, Uint.max(256))
  }))

/** What an op's frames are given while they are measured. */
interface Grant {
  readonly verification: bigint
  readonly call: bigint
}

/** Enough for any validation; the call's share is bound by the operator. */
const generous = (cap: bigint): Grant => ({ verification: 3_000_000n, call: cap })
/** For bundles of which a node simulates too little at once under the generous one. */
const modest = (cap: bigint): Grant => ({ verification: 1_000_000n, call: BigInts.min(2_000_000n, cap) })
/** No node gives more gas than this to one call. */
const lensGas = 400_000_000n
/** Gas of a usual op, for which the prefund is first guessed: what the caller's buffer applies to, and the rest. */
const guessedLimits = 120_000n
const guessedPreVerification = 50_000n
/** What a call that failed for lack of funds is granted beyond what it had used, while the right prefund is tried. */
const retryCallGas = 200_000n
const maxRaises = 3

interface Trial extends Draft {
  readonly prefund: bigint
  readonly verificationGas: bigint
  readonly callGas: bigint
}

const toOverrides = (
  overrides: Readonly<Record<string, GasLens.AccountOverride>>
): ReadonlyMap<Address, StateOverride> =>
  new Map(
    Object.entries(overrides).map(([address, { balance, code, stateDiff }]) => [
      address as Address,
      {
        ...(balance !== undefined && { balance: BigInt(balance) }),
        ...(code !== undefined && { code }),
        ...(stateDiff !== undefined && { stateDiff: stateDiff as StateOverride["stateDiff"] & object })
      }
    ])
  )

const spentMoreThanGiven = (measure: GasLens.Measure): boolean =>
  [measure.creationGas, measure.validationGas, measure.bookkeepingGas, measure.callGas].some(
    (gas) => gas > lensGas
  )

const senseless = new GasLens.GasLensError({ reason: "its figures make no sense" })

const look = (
  input: Input,
  trials: ReadonlyArray<Trial>,
  balances: ReadonlyMap<Address, bigint>,
  /** Wallets whose funds and nonces shall be reported: each once, since a row holds every key. */
  wallets: ReadonlyArray<Address> = []
): Effect.Effect<GasLens.Report, Failure, Engine> =>
  Effect.gen(function* () {
    const { facts } = yield* Engine
    const { chainId, connection, entryPoint, formula, version } = input.ground
    const unavailable = ({ reason }: GasLens.GasLensError) =>
      unprocessable("node_refused", [
        { path: "settings.rpc", message: `the node cannot simulate with state overrides: ${reason}` }
      ])
    const request = {
      entryPoint,
      beacon: formula.beacon,
      wallets,
      nonceKeys: [...new Set(trials.map(({ op }) => Nonce.keyOf(op.nonce)))],
      probes: trials.map(({ callGas, op, prefund, verificationGas }) => {
        const hash = UserOperation.hash(version, entryPoint, chainId, op)
        const signature = Proof.challenged(op.signature, hash)
        return {
          sender: op.sender,
          nonce: op.nonce,
          initCode: op.initCode,
          validateCall: UserOperation.validateCall(version, { ...op, signature }, hash),
          callData: op.callData,
          requiredPrefund: prefund,
          verificationGas,
          callGas,
          paymaster: null
        }
      })
    }
    const { chain, trust } = connection
    const plainly = Effect.mapError(PlainLens.measure(chain, request), refusal(trust))
    if (facts.isPlain(chain)) return yield* plainly
    const data = yield* Either.mapLeft(GasLens.encodeCall(request), unavailable)
    const extra: Record<string, Omit<GasLens.AccountOverride, "code">> = { ...input.extra }
    for (const [wallet, balance] of balances)
      extra[wallet] = { ...extra[wallet], balance: Uint.toQuantity(balance) }
    const answer = yield* Effect.either(
      facts.generousCall(
        chain,
        { from: input.from, to: entryPoint, data },
        toOverrides(GasLens.overrides({ entryPoint, entryPointCode: input.entryPointCode, extra }))
      )
    )
    if (PlainLens.isWithoutOverrides(answer)) {
      yield* facts.notePlain(chain)
      return yield* plainly
    }
    const { data: told } = yield* Either.mapLeft(answer, refusal(trust))
    const report = yield* Either.mapLeft(GasLens.decodeResult(told), unavailable)
    if (report.chainId !== chainId)
      return yield* Effect.fail(
        unprocessable("node_refused", [
          {
            path: "settings.rpc",
            message: `the node serves chain ${report.chainId} by now, no more ${chainId}`
          }
        ])
      )
    // More than there was to spend: limits made of it would fit no field.
    if (report.measures.some(spentMoreThanGiven)) return yield* Effect.fail(unavailable(senseless))
    return report
  })

/** The op under the limits that the measure asks for, the caller's buffer included. */
const withLimits = (
  input: Input,
  draft: Draft,
  measure: GasLens.Measure,
  l1Gas: bigint,
  leastPreVerificationGas: bigint
): UserOperation.UserOperation => {
  if (input.declared) return draft.op
  const { buffers, version } = input.ground
  const percent = buffers.op
  const verificationGasLimit = Gas.overshoot(Gas.verificationGasLimit(measure, draft.op), percent)
  const callGasLimit = Gas.overshoot(Gas.callGasLimit(measure, draft.op.callData), percent)
  const own = Gas.preVerificationGas(draft.op, {
    version,
    measuredGas: measure.creationGas + measure.validationGas + measure.callGas,
    l1Gas
  })
  const preVerificationGas = BigInts.max(own, leastPreVerificationGas)
  return { ...draft.op, verificationGasLimit, callGasLimit, preVerificationGas }
}

/** Whether a look says nothing of an op because there was too little gas for all of them. */
const isStarved = ({ stage }: GasLens.Measure): boolean => stage === "starved"

/** A call that used up less than it may have when it is sent: its failure says as little as being starved. */
const judged =
  (grant: Grant, cap: bigint) =>
  (measure: GasLens.Measure): GasLens.Measure =>
    grant.call < cap && measure.stage === "call" && measure.callGas * 32n > grant.call * 31n
      ? { ...measure, stage: "starved" }
      : measure

const stageFailure = (input: Input, measure: GasLens.Measure): ElementFailure =>
  isStarved(measure)
    ? elementFailure(
        "too_large_to_bundle",
        "the operations of this request need more gas than the node simulates at once: split the request"
      )
    : elementFailure("execution_failed", input.revert(measure.data))

/** Wallets whose deposit and balance do not cover the prefunds of their ops in order, and how much each lacks. */
const uncovered = (
  trials: ReadonlyArray<{ readonly op: UserOperation.UserOperation; readonly prefund: bigint }>,
  available: ReadonlyMap<Address, bigint>
): ReadonlyArray<bigint> => {
  const claimed = new Map<Address, bigint>()
  return trials.map(({ op, prefund }) => {
    const total = (claimed.get(op.sender) ?? 0n) + prefund
    const has = available.get(op.sender) ?? 0n
    if (total > has) return total - has
    claimed.set(op.sender, total)
    return 0n
  })
}

/**
 * Which ops make their wallet pay, because its deposit does not hold their prefund: paying costs gas, so that a
 * measure is good for a prefund on the same side of the deposit only.
 */
const paying = (
  ops: ReadonlyArray<{ readonly op: UserOperation.UserOperation; readonly prefund: bigint }>,
  deposits: ReadonlyMap<Address, bigint>
): ReadonlyArray<boolean> => {
  const left = new Map(deposits)
  return ops.map(({ op, prefund }) => {
    const has = left.get(op.sender) ?? 0n
    left.set(op.sender, has > prefund ? has - prefund : 0n)
    return prefund > has
  })
}

/**
 * Measures the ops in order, each on the state after its predecessors, and fills in their limits. Three looks at
 * most in the ordinary case: one measures; one more with the exact prefund when the guess was on the wrong side of
 * a deposit, when money was what an op failed for, or when a wallet is not funded (so that what it lacks is exact);
 * and the verifying one. Before these, one more when the node cannot simulate all of them under generous grants.
 */
export const estimate = (input: Input): Effect.Effect<Estimate, Failure, Engine> =>
  Effect.gen(function* () {
    const { drafts } = input
    const { buffers, connection, version } = input.ground
    const cap = connection.profile.caps.transactionGas
    let grant = generous(cap)
    // The lowest guess finds the limits of an op that its deposit just pays; a usual one mostly spares a look.
    const guessedGas = input.verify ? 1n : Gas.overshoot(guessedLimits, buffers.op) + guessedPreVerification
    const first = drafts.map((draft) => ({
      ...draft,
      prefund: input.declared ? Gas.requiredPrefund(version, draft.op) : guessedGas * draft.op.maxFeePerGas,
      verificationGas: input.declared ? draft.op.verificationGasLimit : grant.verification,
      callGas: input.declared ? draft.op.callGasLimit : grant.call
    }))
    const wallets = [...new Set(drafts.map(({ op }) => op.sender))]
    const [looked, l1Fees] = yield* Effect.all(
      [
        look(input, first, new Map(), wallets),
        L1Fees.ofOps(
          input.ground,
          input.from,
          drafts.map(({ op }) => op)
        )
      ],
      { concurrency: "unbounded" }
    )
    let report = looked
    if (!input.declared && looked.measures.some(isStarved)) {
      grant = modest(cap)
      const { call: callGas, verification: verificationGas } = grant
      const again = first.map((each) => ({ ...each, verificationGas, callGas }))
      report = yield* look(input, again, new Map(), wallets)
    }
    const available = new Map<Address, bigint>()
    const deposits = new Map<Address, bigint>()
    const sequences = new Map<number, bigint>()
    const keys = [...new Set(drafts.map(({ op }) => Nonce.keyOf(op.nonce)))]
    for (const { index, op } of drafts) {
      const state = report.wallets[wallets.indexOf(op.sender)]
      if (state === undefined) continue
      available.set(op.sender, state.deposit + state.balance)
      deposits.set(op.sender, state.deposit)
      sequences.set(index, state.sequences[keys.indexOf(Nonce.keyOf(op.nonce))] ?? 0n)
    }

    let leastPreVerification: ReadonlyArray<bigint> = []
    const applied = (measures: ReadonlyArray<GasLens.Measure>) =>
      drafts.map((draft, position) => {
        const measure = measures[position]
        const op =
          measure === undefined
            ? draft.op
            : withLimits(
                input,
                draft,
                measure,
                l1Fees[position]?.gas ?? 0n,
                leastPreVerification[position] ?? 0n
              )
        const l1Fee = l1Fees[position]?.wei ?? 0n
        return { ...draft, op, prefund: Gas.requiredPrefund(version, op), measure, l1Fee }
      })
    let current = applied(report.measures.map(judged(grant, cap)))
    if (!input.declared && connection.profile.remoteBundler !== null) {
      leastPreVerification = yield* RemoteGas.leastPreVerificationGas(
        input.ground,
        current.map(({ index, op }) => ({
          ...op,
          nonce: Nonce.make(Nonce.keyOf(op.nonce), sequences.get(index) ?? 0n)
        })),
        toOverrides(input.extra ?? {})
      )
      current = applied(report.measures.map(judged(grant, cap)))
    }
    let lacks = uncovered(current, available)
    const guessed = paying(first, deposits)
    const misguessed = paying(current, deposits).some((pays, position) => pays !== guessed[position])
    const forMoney = current.some(
      ({ measure, value }, position) =>
        (lacks[position] ?? 0n) > 0n ||
        measure?.stage === "prefund" ||
        (measure?.stage === "call" && (value > 0n || measure.shortfall > 0n))
    )
    if (!input.declared && (misguessed || forMoney)) {
      const balances = new Map<Address, bigint>()
      for (const [position, { op, prefund, value }] of current.entries())
        if ((lacks[position] ?? 0n) > 0n)
          balances.set(
            op.sender,
            (balances.get(op.sender) ?? available.get(op.sender) ?? 0n) + prefund + value
          )
      report = yield* look(
        input,
        current.map((each, position) => {
          const call = each.measure?.stage === "call" ? retryCallGas : 0n
          return {
            ...each,
            op: drafts[position]?.op ?? each.op,
            prefund: each.prefund + call * each.op.maxFeePerGas,
            verificationGas: grant.verification,
            callGas: grant.call
          }
        }),
        balances
      )
      current = applied(report.measures.map(judged(grant, cap)))
      lacks = uncovered(current, available)
    }

    const failed = new Map<number, ElementFailure>()
    // A call that sends more than its wallet has reverts without a word: the sum says what it was.
    const spent = new Map<Address, bigint>()
    for (const [position, { index, measure, op, prefund, value }] of current.entries()) {
      const before = spent.get(op.sender) ?? 0n
      const overdraft = before + prefund + value - (available.get(op.sender) ?? 0n)
      const unpaid = measure?.stage === "call" && measure.data === Hex.empty && value > 0n && overdraft > 0n
      const lack = unpaid ? overdraft : (lacks[position] ?? 0n)
      if (lack > 0n || measure?.stage === "prefund")
        failed.set(
          index,
          elementFailure("insufficient_funds", `insufficient funds: wallet ${op.sender} lacks ${lack} wei`, {
            wallet: op.sender,
            required: (unpaid ? prefund + value : prefund).toString(),
            available: (available.get(op.sender) ?? 0n).toString(),
            missing: lack.toString()
          })
        )
      else if (measure === undefined || measure.stage !== "ok")
        failed.set(
          index,
          measure === undefined ? elementFailure("execution_failed") : stageFailure(input, measure)
        )
      else spent.set(op.sender, before + prefund + value)
    }

    let estimated = current
      .filter(({ index }) => !failed.has(index))
      .map(({ index, l1Fee, measure, op, prefund, value }) => ({
        index,
        op,
        value,
        prefund,
        l1Fee,
        returned: measure?.data ?? Hex.empty
      }))
    for (let raise = 0; input.verify && estimated.length > 0; raise += 1) {
      const { measures } = yield* look(
        input,
        estimated.map((each) => ({
          ...each,
          verificationGas: each.op.verificationGasLimit,
          callGas: each.op.callGasLimit
        })),
        new Map()
      )
      if (measures.every(({ stage }) => stage === "ok")) break
      const kept: Array<Estimated> = []
      for (const [position, each] of estimated.entries()) {
        const measure = measures[position]
        if (measure !== undefined && measure.stage !== "ok" && raise === maxRaises) {
          failed.set(each.index, stageFailure(input, measure))
          continue
        }
        const op =
          measure?.stage === "call"
            ? { ...each.op, callGasLimit: each.op.callGasLimit * 2n }
            : measure?.stage === "validation" || measure?.stage === "creation"
              ? { ...each.op, verificationGasLimit: each.op.verificationGasLimit * 2n }
              : each.op
        kept.push({ ...each, op, prefund: Gas.requiredPrefund(version, op) })
      }
      estimated = kept
      if (raise === maxRaises) break
    }
    return { estimated, failed, available, sequences, implementation: report.implementation }
  })
