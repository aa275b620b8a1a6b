import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import * as SubmitterReimbursement from "../../../domain/erc4337/gas/SubmitterReimbursement.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Conditions from "../../../domain/signature/Conditions.js"
import * as Proof from "../../../domain/signature/Proof.js"
import * as Ledger from "../../../domain/wallet/Ledger.js"
import type { WalletConfig } from "../../../domain/wallet/WalletConfig.js"
import type { ChainFacts } from "../../chain/ChainFacts.js"
import * as Connection from "../../chain/Connection.js"
import * as Keys from "../../keys/Keys.js"
import type { PayerRefusal } from "../../pay/Payer.js"
import type { Payers } from "../../pay/Payers.js"
import * as Submitter from "../../pay/Submitter.js"
import type { BundlerRpc } from "../../ports/chain/BundlerRpc.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import { OpJournal } from "../../ports/journal/OpJournal.js"
import type { NonceSpace } from "../../ports/journal/Requests.js"
import type { Networks } from "../../ports/Networks.js"
import { type SignerError, type Signers, SystemSigners } from "../../ports/Signers.js"
import type { EncodedCall } from "../../prepare/EncodeCall.js"
import * as CreatedContracts from "../../prepare/estimate/CreatedContracts.js"
import * as Estimation from "../../prepare/estimate/Estimation.js"
import * as OpContext from "../../prepare/OpContext.js"
import type { Operation } from "../../prepare/Operation.js"
import * as Drafts from "../../prepare/ops/Drafts.js"
import * as Links from "../../prepare/ops/Links.js"
import * as Windows from "../../prepare/ops/Windows.js"
import * as ServiceSubmission from "../../prepare/ServiceEoa.js"
import * as Snapshot from "../../prepare/Snapshot.js"
import * as OwnedWallets from "../../prepare/wallets/OwnedWallets.js"
import * as Wallets from "../../prepare/wallets/Wallets.js"
import type { Caller } from "../../request/Caller.js"
import type { Decoding } from "../../request/Decoding.js"
import { dependencyFailed, type ElementFailure, elementFailure } from "../../request/Elements.js"
import type { Failure, Unprocessable } from "../../request/Failure.js"
import type { ForOps } from "../../request/Settings.js"

/** How long a nonce key is kept for an op that was handed out, milliseconds. */
export const handedOutMillis = 15 * 60_000

/** Who is to submit ops, and through which node the chain is read for that. */
export interface SubmitterRoute {
  readonly settings: ForOps
  readonly connection: Connection.Connection
  readonly submitter: Address
  /** The submitter is the service's own EOA. */
  readonly byService: boolean
}

/** The service's own EOA is to submit: the operator's node tells everything. */
export const serviceRoute = (
  caller: Caller,
  settings: ForOps
): Effect.Effect<SubmitterRoute, Failure, ChainRpc | Networks | SystemSigners> =>
  Effect.gen(function* () {
    const connection = yield* Connection.openOperator(caller, settings)
    const { serviceEoa } = yield* SystemSigners
    const { address } = yield* Effect.mapError(serviceEoa, Keys.refusal("settings.signer"))
    yield* ServiceSubmission.canSimulate(connection)
    return { settings, connection, submitter: address, byService: true }
  })

/** The request's signer is to submit, or the service's own EOA where it names none. */
export const routeOf = (
  caller: Caller,
  settings: ForOps
): Effect.Effect<SubmitterRoute, Failure, ChainRpc | Networks | Signers | SystemSigners> =>
  Effect.gen(function* () {
    if (settings.signer === undefined) return yield* serviceRoute(caller, settings)
    const { address } = yield* Keys.resolve(caller, settings.signer)
    const connection = yield* OpContext.connect(caller, settings)
    return { settings, connection, submitter: address, byService: false }
  })

/** Operations whose ops are encoded for signatures that are made elsewhere. */
export interface Handing extends SubmitterRoute {
  readonly operations: ReadonlyArray<Operation>
  readonly calls: ReadonlyArray<EncodedCall>
  readonly decoding: Decoding
  /** As far as the request says, passkeys are to sign some of them. */
  readonly byPasskeys: boolean
  /** A proof of the shape that the wallet's owners will most probably send; `Failure`: they can send none. */
  readonly dummy: (config: WalletConfig) => Result.Result<Hex.Hex, ElementFailure>
}

/** An op without its signature, and what is to be signed. */
export interface UnsignedOp {
  readonly index: number
  readonly op: UserOperation.UserOperation
  readonly encodedUserOp: Hex.Hex
  readonly userOpHash: Hex.Bytes32
  readonly signingHash: Hex.Bytes32
}

export interface UnsignedOps {
  /** In the order in which they are executed. */
  readonly ops: ReadonlyArray<UnsignedOp>
  readonly failed: ReadonlyMap<number, ElementFailure>
  /** The only EOA that may submit them when they are signed so; zero: any. */
  readonly bundler: Address
}

/**
 * Who signs is not known: as many of the wallet's passkeys as can be, whose proofs cost most, and owners for the rest of
 * the threshold.
 */
export const costliest = (config: WalletConfig): Hex.Hex => {
  const passkeys = Math.min(config.passkeys.length, config.threshold)
  return Proof.dummy(config, { passkeys, owners: config.threshold - passkeys })
}

/** The refusal of a whole request in one line. */
export const textOf = ({ details: [detail], message }: Unprocessable): string =>
  detail === undefined ? message : `${message}: ${detail.message}`

const lease = (
  opJournal: OpJournal["Service"],
  caller: Caller,
  space: NonceSpace,
  { anonymous, epoch }: { readonly anonymous: boolean; readonly epoch: bigint },
  count: number
): Effect.Effect<ReadonlyArray<bigint>> =>
  count === 0
    ? Effect.succeed([])
    : Effect.map(
        Effect.orDie(
          opJournal.lease([
            {
              ...space,
              holder: caller.requestId,
              // Leased under different authorities: keys of their own keep the nonces apart.
              keys: Nonce.inEpoch(anonymous ? Nonce.anonymousKeys : Nonce.handedOutKeys, epoch),
              count,
              ttlMillis: handedOutMillis
            }
          ])
        ),
        ([keys]) => keys ?? []
      )

/** What depends on elements that have failed has failed too. */
const failDependants = (on: Dependencies.Dependencies, failed: Map<number, ElementFailure>): void => {
  for (const index of Dependencies.order(on)) {
    const before = on[index] ?? null
    if (before !== null && failed.has(before)) failed.set(index, dependencyFailed(before))
  }
}

/** Why who should pay for an op does not. */
const refusalOf = (error: SignerError | PayerRefusal): ElementFailure =>
  error._tag === "PayerRefusal" ? error.failure : elementFailure("signer_unavailable")

/** What the service's EOA wants back beside its cost is charged as preVerificationGas. */
const withMargin = (op: UserOperation.UserOperation): UserOperation.UserOperation => ({
  ...op,
  preVerificationGas:
    op.preVerificationGas +
    SubmitterReimbursement.margin(op.callGasLimit + op.verificationGasLimit + op.preVerificationGas)
})

/**
 * Encodes and estimates operations as `/execute` would, for signatures that are made elsewhere. Each op gets a nonce
 * key of its own, so that they may be signed and sent in any order, or not at all.
 */
export const make = (
  caller: Caller,
  handing: Handing
): Effect.Effect<UnsignedOps, Failure, BundlerRpc | ChainFacts | Payers | OpJournal> =>
  Effect.gen(function* () {
    const { byService, calls, connection, decoding, operations, settings, submitter } = handing
    const { profile } = connection
    const context = yield* OpContext.contextOf(connection, settings, submitter, caller)
    const { chainId, entryPoint, formula, payer, spaceOf, version } = context
    const on = yield* Effect.fromResult(Links.dependencies(operations))
    yield* Effect.fromResult(Links.held(on, connection))
    const ledger = yield* Effect.fromResult(Links.ledger(on, connection))
    yield* Links.present(ledger, on, connection)
    const wallets = yield* Effect.fromResult(
      Result.all(
        calls.map(({ index, selector }) => Wallets.select(selector, formula, profile, `operations[${index}]`))
      )
    )
    const walletOf = (index: number): Address => wallets[index] ?? entryPoint
    const distinct = [...new Set(wallets)]
    const made = calls.map(({ call }) => call)
    const snapshot = yield* Snapshot.read(context, distinct, made, "now", handing.byPasskeys)
    const found = yield* Effect.fromResult(
      OwnedWallets.find(
        calls.map(({ index, selector }) => ({
          index,
          wallet: walletOf(index),
          walletCustody: selector.walletCustody
        })),
        snapshot
      )
    )
    const failed = new Map<number, ElementFailure>(found.failed)
    const bundler = Submitter.boundTo(profile, submitter)
    const signatures = new Map<number, { conditions: Conditions.Conditions; dummy: Hex.Hex }>()
    for (const { index, window } of calls) {
      const bounds = yield* Effect.fromResult(Windows.notOver(window, `operations[${index}]`, snapshot.block))
      const config = found.configs.get(index)
      if (config === undefined) continue
      const dummy = handing.dummy(config)
      if (Result.isFailure(dummy)) failed.set(index, dummy.failure)
      else signatures.set(index, { conditions: { ...bounds, bundler }, dummy: dummy.success })
    }
    failDependants(on, failed)

    const opJournal = yield* OpJournal
    const keys = new Map<number, bigint>()
    for (const wallet of distinct) {
      const indexes = calls
        .map(({ index }) => index)
        .filter((index) => walletOf(index) === wallet && !failed.has(index))
      const epoch = Wallets.epochOf(snapshot.wallets.get(wallet))
      const kind = { anonymous: byService, epoch }
      const leased = yield* lease(opJournal, caller, spaceOf(wallet), kind, indexes.length)
      for (const [position, index] of indexes.entries()) {
        const key = leased[position]
        if (key === undefined) failed.set(index, elementFailure("wallet_busy"))
        else keys.set(index, key)
      }
    }
    failDependants(on, failed)

    const elements = Dependencies.order(on).filter((index) => !failed.has(index))
    /** The calldata of each op, once it is said how ops are told apart. */
    const callDataBy = (keyOf: (index: number) => Hex.Bytes32) => {
      const links = Links.of(on, elements, (index) => ({ wallet: walletOf(index), key: keyOf(index) }))
      return ({ call, index }: EncodedCall) => Links.callData(ledger, call, links(index))
    }
    const measured = callDataBy(Ledger.placeholder)
    const drafts = yield* Effect.forEach(elements, (index) =>
      Effect.gen(function* () {
        const call = calls[index]
        const signature = signatures.get(index)
        if (call === undefined || signature === undefined) return []
        const draft = Drafts.make({
          index,
          wallet: walletOf(index),
          nonce: Nonce.make(keys.get(index) ?? 0n, 0n),
          callData: measured(call),
          value: call.call.value,
          prices: snapshot.prices,
          ...signature
        })
        return [{ ...draft, op: yield* payer.draft(draft.op) }]
      })
    )
    const view = { context, entryPointCode: snapshot.entryPointCode, from: submitter, declared: false }
    const uncalled = yield* CreatedContracts.missing(view, drafts.flat(), snapshot.codeless)
    for (const [index, failure] of uncalled) failed.set(index, failure)
    const estimate = yield* Estimation.estimate({
      ...view,
      drafts: drafts.flat().filter(({ index }) => !failed.has(index)),
      lowestPrefund: true,
      revert: decoding.revert
    })
    yield* Snapshot.checkImplementation(connection, estimate.implementation, settings.validator)
    for (const [index, failure] of estimate.failed) failed.set(index, failure)
    failDependants(on, failed)

    const nonceOf = (index: number): bigint =>
      Nonce.make(keys.get(index) ?? 0n, estimate.sequences.get(index) ?? 0n)
    const final = callDataBy((index) => Ledger.key(entryPoint, walletOf(index), nonceOf(index)))
    const guarded = byService && profile.remoteBundler === null
    const ops: Array<UnsignedOp> = []
    for (const { index, op: limited } of estimate.estimated) {
      const call = calls[index]
      const signature = signatures.get(index)
      if (call === undefined || signature === undefined || failed.has(index)) continue
      const bare = { ...limited, nonce: nonceOf(index), callData: final(call), signature: Hex.empty }
      const completed = yield* Effect.result(payer.complete(guarded ? withMargin(bare) : bare))
      if (Result.isFailure(completed)) {
        failed.set(index, refusalOf(completed.failure))
        continue
      }
      const op = completed.success
      const userOpHash = UserOperation.hash(version, entryPoint, chainId, op)
      yield* payer.handOut(op, userOpHash)
      ops.push({
        index,
        op,
        encodedUserOp: UserOperation.encode(version, op),
        userOpHash,
        signingHash: Conditions.signingHash(userOpHash, signature.conditions)
      })
    }
    failDependants(on, failed)
    if (ops.length === 0) yield* Effect.ignore(opJournal.release(caller.requestId))
    return { ops: ops.filter(({ index }) => !failed.has(index)), failed, bundler }
  }).pipe(
    Effect.onError(() =>
      Effect.flatMap(OpJournal, (opJournal) => Effect.ignore(opJournal.release(caller.requestId)))
    )
  )
