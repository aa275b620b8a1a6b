import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Dependencies from "../../domain/erc4337/Dependencies.js"
import * as SubmitterReimbursement from "../../domain/erc4337/gas/SubmitterReimbursement.js"
import * as Nonce from "../../domain/erc4337/Nonce.js"
import * as UserOperation from "../../domain/erc4337/UserOperation.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Conditions from "../../domain/signature/Conditions.js"
import * as Proof from "../../domain/signature/Proof.js"
import * as Ledger from "../../domain/wallet/Ledger.js"
import type { WalletConfig } from "../../domain/wallet/WalletConfig.js"
import type { ChainFacts } from "../chain/ChainFacts.js"
import { type ElementFailure, elementFailure } from "../failures/Elements.js"
import type { Failure, Unprocessable } from "../failures/Failure.js"
import type { Payers } from "../payers/Payer.js"
import * as Submitter from "../payers/Submitter.js"
import { Rules } from "../policies/Rules.js"
import type { AbiStore } from "../ports/AbiStore.js"
import type { BundlerRpc } from "../ports/chain/BundlerRpc.js"
import type { ChainRpc } from "../ports/chain/ChainRpc.js"
import { OpJournal } from "../ports/journal/OpJournal.js"
import * as Call from "../prepare/Call.js"
import * as EncodeCall from "../prepare/EncodeCall.js"
import * as CreatedContracts from "../prepare/estimate/CreatedContracts.js"
import * as Estimation from "../prepare/estimate/Estimation.js"
import * as OpContext from "../prepare/OpContext.js"
import type { Operation } from "../prepare/Operation.js"
import * as Links from "../prepare/ops/Links.js"
import * as Sift from "../prepare/ops/Sift.js"
import * as Windows from "../prepare/ops/Windows.js"
import * as Preparation from "../prepare/Preparation.js"
import type * as ServiceEoa from "../prepare/ServiceEoa.js"
import * as Snapshot from "../prepare/Snapshot.js"
import * as OwnedWallets from "../prepare/wallets/OwnedWallets.js"
import * as Wallets from "../prepare/wallets/Wallets.js"
import type { Shown } from "../preview/Preview.js"
import * as Simulation from "../preview/Simulation.js"
import type { Caller } from "../request/Caller.js"
import * as Decoding from "../request/Decoding.js"
import type { ForOps } from "../request/Settings.js"

/** Builds ops as `/execute` would, for signatures made elsewhere. */

/** Lease of a handed-out op's nonce key, milliseconds. */
const handedOutMillis = 15 * 60_000

/** Operations whose unsigned ops the service returns. */
export interface UnsignedInput<R> {
  readonly operations: ReadonlyArray<Operation>
  readonly settings: ForOps
  /** The endpoint that will get the signed ops: spending rules judge them as there. */
  readonly endpoint: string
  readonly route: Effect.Effect<ServiceEoa.Route, Failure, R>
  /** Whether to show what the ops would move. */
  readonly preview: boolean
  /** The request says that passkeys sign some of them. */
  readonly byPasskeys: boolean
  /** A proof of the shape that the wallet's owners will most probably send; `Failure`: they cannot send any. */
  readonly dummy: (config: WalletConfig) => Result.Result<Hex.Hex, ElementFailure>
}

/** An op without its signature, and the hash to sign. */
export interface Handed {
  readonly index: number
  readonly op: UserOperation.UserOperation
  readonly encodedUserOp: Hex.Hex
  readonly userOpHash: Hex.Bytes32
  readonly signingHash: Hex.Bytes32
}

/**
 * Dummy proof for unknown signers: as many passkeys as possible, whose proofs cost most, then owners up to the
 * threshold.
 */
export const costliest = (config: WalletConfig): Hex.Hex => {
  const passkeys = Math.min(config.passkeys.length, config.threshold)
  return Proof.dummy(config, { passkeys, owners: config.threshold - passkeys })
}

/** The refusal of a whole request in one line. */
export const textOf = ({ details: [detail], message }: Unprocessable): string =>
  detail === undefined ? message : `${message}: ${detail.message}`

/** The service EOA's margin over its cost is charged as preVerificationGas. */
const withMargin = (op: UserOperation.UserOperation): UserOperation.UserOperation => ({
  ...op,
  preVerificationGas:
    op.preVerificationGas +
    SubmitterReimbursement.margin(op.callGasLimit + op.verificationGasLimit + op.preVerificationGas)
})

/** Selects the calls that can be signed, by wallets and windows, and the failures of the others. */
const sift = (
  dummy: UnsignedInput<never>["dummy"],
  calls: ReadonlyArray<Call.OpCall>,
  snapshot: Snapshot.Snapshot,
  bundler: Address
): Result.Result<Pick<Sift.Sifted, "failed" | "willing">, Failure> =>
  Result.gen(function* () {
    const { configs, failed } = yield* OwnedWallets.find(calls, snapshot)
    const willing = new Map<number, Sift.Willing>()
    for (const call of calls) {
      const { index, window } = call
      const bounds = yield* Windows.notOver(window, `operations[${index}]`, snapshot.block)
      const config = configs.get(index)
      if (config === undefined) continue
      const made = dummy(config)
      if (Result.isFailure(made)) failed.set(index, made.failure)
      else willing.set(index, { call, places: [], conditions: { ...bounds, bundler }, dummy: made.success })
    }
    return { failed, willing }
  })

/** Leases a separate nonce key for each call, as long as their wallets have free keys. */
const lease = (
  holder: string,
  { byService }: ServiceEoa.Route,
  { spaceOf }: OpContext.OpContext,
  calls: ReadonlyArray<Call.OpCall>,
  wallets: Snapshot.Snapshot["wallets"]
) =>
  Effect.gen(function* () {
    const opJournal = yield* OpJournal
    // These leases have different authorities, so separate key ranges keep the nonces distinct.
    const range = byService ? Nonce.anonymousKeys : Nonce.handedOutKeys
    const keys = new Map<number, bigint>()
    for (const [wallet, own] of Map.groupBy(calls, (call) => call.wallet)) {
      const epoch = Wallets.epochOf(wallets.get(wallet))
      const wanted = { holder, keys: Nonce.inEpoch(range, epoch), count: own.length }
      const [leased = []] = yield* Effect.orDie(
        opJournal.lease([{ ...spaceOf(wallet), ...wanted, ttlMillis: handedOutMillis }])
      )
      for (const [position, { index }] of own.entries()) {
        const key = leased[position]
        if (key !== undefined) keys.set(index, key)
      }
    }
    return keys
  })

/**
 * Returns the ops in execution order, the failures of the other calls, and the only EOA that may submit the signed ops;
 * zero: any EOA. Each op has a separate nonce key, so the ops may be signed and sent in any order, or not at all.
 */
export const make = <R>(
  caller: Caller,
  { byPasskeys, dummy, endpoint, operations, preview, route: routed, settings }: UnsignedInput<R>
): Effect.Effect<
  {
    readonly ops: ReadonlyArray<Handed>
    readonly failed: ReadonlyMap<number, ElementFailure>
    readonly bundler: Address
    /** By index; empty without `preview`. */
    readonly previews: ReadonlyMap<number, Shown>
  },
  Failure,
  AbiStore | BundlerRpc | ChainFacts | ChainRpc | Payers | OpJournal | Rules | R
> =>
  Effect.gen(function* () {
    const encoded = yield* EncodeCall.encodeAll(operations)
    const { revert } = yield* Decoding.load(caller, settings.useABI)
    const route = yield* routed
    const { byService, connection, submitter } = route
    const context = yield* OpContext.contextOf(caller, { ...route, settings })
    const { chainId, entryPoint, payer, version } = context
    const on = yield* Effect.fromResult(Links.dependencies(operations))
    yield* Effect.fromResult(Links.requireOwnBundler(on, connection))
    yield* Effect.fromResult(Links.requireLedger(on, connection))
    yield* Links.requireContract(on, connection)
    const calls = yield* Call.ofOperations(caller.requestId, encoded, on, context)
    const snapshot = yield* Snapshot.read(
      context,
      Preparation.walletsOf([{ calls }]),
      calls.map(Sift.callOf),
      "now",
      byPasskeys
    )
    const bundler = Submitter.boundTo(connection.profile, submitter)
    const { failed, willing } = yield* Effect.fromResult(sift(dummy, calls, snapshot, bundler))
    Links.failDependants(on, failed)
    const open = calls.filter(({ index }) => !failed.has(index))
    const keys = yield* lease(caller.requestId, route, context, open, snapshot.wallets)
    for (const { index } of open) if (!keys.has(index)) failed.set(index, elementFailure("wallet_busy"))
    Links.failDependants(on, failed)

    const order = Dependencies.order(on).filter((index) => !failed.has(index))
    const nonceOf = ({ index }: Call.OpCall) => ({ key: keys.get(index) ?? 0n, sequence: null })
    const batch = { requestId: caller.requestId, calls, revert, mayWait: false }
    const sifted = { batch, dependencies: on, willing }
    const whole = Sift.draft({ context, nonceOf, snapshot }, sifted, order, null)
    const uncalled = yield* CreatedContracts.missing(whole, whole.drafts, snapshot.codeless)
    for (const [index, failure] of uncalled) failed.set(index, failure)
    const estimate = yield* Estimation.estimate({
      ...whole,
      drafts: whole.drafts.filter(({ index }) => !failed.has(index)),
      lowestPrefund: true
    })
    yield* Snapshot.checkImplementation(connection, estimate.implementation, settings.validator)
    Links.fail(on, order, estimate.failed, failed)
    const signers = byService ? [] : [submitter]
    const asker = { calls, caller, context: { ...context, kind: "ops" as const, signers }, endpoint }
    const {
      batches: [judged]
    } = yield* (yield* Rules).judge(
      [{ ...asker, requestId: caller.requestId, isTrial: true }],
      [Result.succeed({ ...Preparation.nothing, failed })]
    )
    if (judged !== undefined && Result.isSuccess(judged))
      for (const [index, failure] of judged.success.failed) failed.set(index, failure)

    const limited = new Map(estimate.estimated.map(({ index, op }) => [index, op]))
    const nonceAt = (index: number) => Nonce.make(keys.get(index) ?? 0n, estimate.sequences.get(index) ?? 0n)
    const ledger = Links.ledger(on, connection)
    const links = Links.of(on, order, (index) => {
      const wallet = calls[index]?.wallet ?? entryPoint
      return { wallet, key: Ledger.key(entryPoint, wallet, nonceAt(index)) }
    })
    const isAtRisk = byService && connection.profile.remoteBundler === null
    const ops: Array<Handed> = []
    for (const index of order) {
      const own = limited.get(index)
      const { call, conditions } = willing.get(index) ?? {}
      if (own === undefined || call === undefined || conditions === undefined || failed.has(index)) continue
      const callData = Links.callData(ledger, Sift.callOf(call), links(index))
      const bare = { ...own, nonce: nonceAt(index), callData, signature: Hex.empty }
      const completed = yield* Effect.result(payer.complete(isAtRisk ? withMargin(bare) : bare))
      if (Result.isFailure(completed)) {
        failed.set(index, completed.failure.failure)
        continue
      }
      const op = completed.success
      const userOpHash = UserOperation.hash(version, entryPoint, chainId, op)
      yield* payer.handOut(op, userOpHash)
      const signingHash = Conditions.signingHash(userOpHash, conditions)
      ops.push({ index, op, encodedUserOp: UserOperation.encode(version, op), userOpHash, signingHash })
    }
    Links.failDependants(on, failed)
    const handed = ops.filter(({ index }) => !failed.has(index))
    if (handed.length === 0) yield* giveBack(caller)
    const shown = preview
      ? handed.map((each) => ({ ...each, wallet: each.op.sender, callData: each.op.callData }))
      : []
    const previews = yield* Simulation.of({ connection, entryPoint, version, revert }, shown)
    return { ops: handed, failed, bundler, previews }
  }).pipe(Effect.onError(() => giveBack(caller)))

const giveBack = ({ requestId }: Caller): Effect.Effect<void, never, OpJournal> =>
  Effect.flatMap(OpJournal, (opJournal) => Effect.ignore(opJournal.release(requestId)))
