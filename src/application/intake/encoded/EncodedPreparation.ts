import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import * as SubmitterReimbursement from "../../../domain/erc4337/gas/SubmitterReimbursement.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import * as Percent from "../../../domain/erc4337/Percent.js"
import type * as Hex from "../../../domain/primitives/Hex.js"
import * as Conditions from "../../../domain/signature/Conditions.js"
import * as Custody from "../../../domain/wallet/Custody.js"
import * as WalletCalls from "../../../domain/wallet/WalletCalls.js"
import * as Connection from "../../chain/Connection.js"
import * as Inclusions from "../../chain/Inclusions.js"
import * as Prices from "../../chain/Prices.js"
import * as Funding from "../../pay/Funding.js"
import * as Payer from "../../pay/Payer.js"
import * as Submitter from "../../pay/Submitter.js"
import { Budgets } from "../../ports/Budgets.js"
import type { OpOutcome } from "../../ports/chain/Bundler.js"
import type { LaneAccess } from "../../ports/journal/Transactions.js"
import type { Signer } from "../../ports/Signers.js"
import * as CreatedContracts from "../../prepare/estimate/CreatedContracts.js"
import * as Estimation from "../../prepare/estimate/Estimation.js"
import type * as FirstLook from "../../prepare/estimate/FirstLook.js"
import * as ExternalProofs from "../../prepare/given/ExternalProofs.js"
import type * as EncodedOps from "../../prepare/given/GivenOps.js"
import * as NonceOrder from "../../prepare/given/NonceOrder.js"
import type * as OpContext from "../../prepare/OpContext.js"
import * as Windows from "../../prepare/ops/Windows.js"
import * as ServiceSubmission from "../../prepare/ServiceEoa.js"
import * as Snapshot from "../../prepare/Snapshot.js"
import * as Epochs from "../../prepare/wallets/Epochs.js"
import * as OwnedWallets from "../../prepare/wallets/OwnedWallets.js"
import type { Caller } from "../../request/Caller.js"
import type { CurrentRequest } from "../../request/CurrentRequest.js"
import * as Delays from "../../request/Delays.js"
import { dependencyFailed, type ElementFailure, elementFailure } from "../../request/Elements.js"
import type { Failure } from "../../request/Failure.js"
import type { ForOps } from "../../request/Settings.js"
import * as EventLoop from "../../runtime/EventLoop.js"
import type { Landed } from "../submission/SubmissionElements.js"
import type * as Transfers from "../submission/Transfers.js"
import * as PreviousSubmission from "./PreviousSubmission.js"

/** What is prepared of a request whose ops were handed out before: what landed, what its keys prove, what is sent. */

/** Who submits, through which node. */
export interface SubmitterRoute {
  readonly connection: Connection.Connection
  readonly settings: ForOps
  readonly submitter: Signer
  readonly key: LaneAccess["key"]
  /** The keys that the request names, its signer first. */
  readonly signers: ReadonlyArray<Signer>
}

/** One request that submits such ops. */
export interface Submitting extends SubmitterRoute {
  readonly caller: Caller
  readonly given: ReadonlyArray<EncodedOps.Given>
  readonly context: OpContext.OpContext
  readonly dependencies: Dependencies.Dependencies
  readonly revert: (data: Hex.Hex) => string
  /** By `MonotonicTime`. */
  readonly deadline: number
  /** The EOA is the service's own, and nobody else's bundler pays. */
  readonly guarded: boolean
  readonly current: CurrentRequest["Service"]
  readonly budgets: Budgets["Service"]
  /** Ops that were found on the chain, or with another request, by element. They are done. */
  readonly earlier: Map<number, Landed>
}

const note = ({ earlier }: Submitting, index: number, userOpHash: Hex.Bytes32, outcome: OpOutcome) => {
  earlier.set(index, { ...outcome, userOpHash, returned: null })
}

/** The ops, of those with these indexes, that were not posted before. */
export const unposted = (submitting: Submitting, elements: ReadonlyArray<number>) => {
  const { caller, connection, deadline, given } = submitting
  return Effect.filter(
    elements.flatMap((index) => given[index] ?? []),
    ({ index, userOpHash }) =>
      Effect.map(
        PreviousSubmission.outcome(caller, connection.profile.chainId, userOpHash, deadline),
        (outcome) => {
          if (outcome !== null) note(submitting, index, userOpHash, outcome)
          return outcome === null
        }
      )
  )
}

/** What the EntryPoint says of these ops, by hash; those that never landed are left out. */
const landedOf = (
  { connection: { chain, trust }, context: { entryPoint } }: Submitting,
  ops: ReadonlyArray<EncodedOps.Given>,
  snapshot: Snapshot.Snapshot
) =>
  Effect.mapError(
    Inclusions.find(
      chain,
      entryPoint,
      ops.map(({ userOpHash }) => userOpHash),
      snapshot.block.number
    ),
    Connection.refusal(trust)
  )

/** Ops of another configuration than their wallet's: one may have landed before that was replaced, the others fail. */
const replaced = (
  submitting: Submitting,
  todo: ReadonlyArray<EncodedOps.Given>,
  snapshot: Snapshot.Snapshot,
  { configs }: OwnedWallets.Found
) =>
  Effect.gen(function* () {
    const failures = new Map<number, ElementFailure>()
    const past = todo.filter(({ index, op }) => {
      const failure = configs.has(index) ? Epochs.failureOf(op, snapshot.wallets.get(op.sender)) : null
      if (failure !== null) failures.set(index, failure)
      return failure !== null
    })
    if (past.length === 0) return failures
    const landed = yield* landedOf(submitting, past, snapshot)
    for (const { index, userOpHash } of past) {
      const outcome = landed.get(userOpHash)
      if (outcome === undefined) continue
      note(submitting, index, userOpHash, outcome)
      failures.delete(index)
    }
    return failures
  })

/** What the keys of the request prove of these ops; `failed` has those that they do not. */
const consentsOf = (
  { connection, context, current, earlier, signers, submitter }: Submitting,
  todo: ReadonlyArray<EncodedOps.Given>,
  snapshot: Snapshot.Snapshot,
  { configs }: OwnedWallets.Found,
  failed: Map<number, ElementFailure>
): Effect.Effect<ReadonlyMap<number, ExternalProofs.Consented>, Failure> =>
  Effect.gen(function* () {
    const consents = new Map<number, ExternalProofs.Consented>()
    const bundler = Submitter.boundTo(connection.profile, submitter.address)
    const lastSecond = yield* Snapshot.validUntil(snapshot.block)
    for (const each of todo) {
      const config = configs.get(each.index)
      if (config === undefined || failed.has(each.index) || earlier.has(each.index)) continue
      const bounds = Windows.check(each.window, each.windowPath, snapshot.block, context.version)
      if (Result.isFailure(bounds)) {
        if (!("_tag" in bounds.failure)) failed.set(each.index, bounds.failure)
        // Its time was up only after the request was accepted.
        else if (current.accepted()) failed.set(each.index, Delays.asElement(bounds.failure))
        else return yield* Effect.fail(bounds.failure)
        continue
      }
      const terms = { bounds: bounds.success, bundler, lastSecond, signers }
      const consent = ExternalProofs.consent(each, config, terms)
      if (Result.isFailure(consent)) failed.set(each.index, consent.failure)
      else consents.set(each.index, consent.success)
      // Checking signatures takes milliseconds.
      yield* EventLoop.breathe
    }
    return consents
  })

/** An op as it is accepted and then signed. */
const readyOf = (
  { budgets, caller, context, guarded }: Submitting,
  { op, userOpHash }: EncodedOps.Given,
  { conditions, prove }: ExternalProofs.Consented,
  each: Estimation.Estimated
): Transfers.Ready => {
  const { spaceOf, version } = context
  const { requestId } = caller
  const set = guarded ? ServiceSubmission.bind(context, { ...each, requestId }) : Effect.void
  return {
    index: each.index,
    op: each.op,
    space: spaceOf(op.sender),
    nonceKey: Nonce.keyOf(op.nonce),
    sequence: Nonce.sequenceOf(op.nonce),
    reserve: Payer.walletShare(
      { paymaster: Funding.paymasterOf(version, op) },
      { prefund: each.prefund, value: WalletCalls.valueOf(op.callData) }
    ),
    l1Fee: each.l1Fee,
    userOpHash,
    returned: each.returned,
    complete: Effect.as(Effect.provideService(set, Budgets, budgets), { op, userOpHash }),
    sign: () => Effect.map(prove, (proof) => Conditions.encodeSignature(conditions, proof))
  }
}

/** What one look at the chain makes of these elements. */
export const prepare = (submitting: Submitting, elements: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const { caller, connection, context, dependencies, earlier, given, guarded, settings } = submitting
    const { profile } = connection
    const { version } = context
    // Also when it is tried again: another request may have posted the same op in the meantime.
    const todo = yield* unposted(submitting, Dependencies.order(dependencies, elements))
    const calls = todo.flatMap(({ op }) => WalletCalls.read(op.callData))
    const [snapshot, least] = yield* Effect.all(
      [
        Snapshot.read(
          context,
          [...new Set(todo.map(({ op }) => op.sender))],
          calls,
          "now",
          todo.some(
            ({ evidence, walletCustody }) =>
              evidence._tag === "assertion" || Custody.usesPasskeys(walletCustody)
          )
        ),
        guarded ? Prices.now(connection, Percent.zero) : Effect.succeed(null)
      ],
      { concurrency: "unbounded" }
    )
    const found = yield* Effect.fromResult(
      OwnedWallets.find(
        todo.map(({ index, op, walletCustody }) => ({ index, wallet: op.sender, walletCustody })),
        snapshot
      )
    )
    const failed = new Map<number, ElementFailure>(found.failed)
    for (const [index, failure] of yield* replaced(submitting, todo, snapshot, found))
      failed.set(index, failure)
    const consents = yield* consentsOf(submitting, todo, snapshot, found, failed)
    const drafts = todo.flatMap(({ index, op }): ReadonlyArray<FirstLook.Draft> => {
      const consent = consents.get(index)
      if (consent === undefined) return []
      const signature = Conditions.encodeSignature(consent.conditions, consent.proof)
      const draft = { index, op: { ...op, signature }, value: 0n }
      const objection = least === null ? null : ServiceSubmission.objection(profile, version, draft.op, least)
      if (objection === null) return [draft]
      failed.set(index, objection)
      return []
    })
    const view = {
      context,
      entryPointCode: snapshot.entryPointCode,
      from: submitting.submitter.address,
      declared: true
    }
    const estimate = yield* Estimation.estimate({
      ...view,
      drafts,
      lowestPrefund: false,
      revert: submitting.revert
    })
    yield* Snapshot.checkImplementation(connection, estimate.implementation, settings.validator)
    for (const [index, failure] of estimate.failed) failed.set(index, failure)
    const uncalled = yield* CreatedContracts.missing(view, drafts, snapshot.codeless)
    for (const [index, failure] of uncalled) failed.set(index, failure)
    for (const index of Dependencies.order(dependencies, failed.keys())) {
      const on = dependencies[index] ?? null
      if (on !== null && failed.has(on)) failed.set(index, dependencyFailed(on))
    }
    const { consumed, misplaced } = NonceOrder.of(todo, estimate.sequences, failed)
    const landed = yield* landedOf(submitting, consumed, snapshot)
    for (const { index, userOpHash } of consumed) {
      const outcome = landed.get(userOpHash)
      if (outcome === undefined) misplaced.set(index, elementFailure("invalid_nonce"))
      else note(submitting, index, userOpHash, outcome)
    }
    const { gasBound } = snapshot
    const prices = guarded
      ? SubmitterReimbursement.prices(
          snapshot.prices,
          estimate.estimated.map(({ op }) => op)
        )
      : snapshot.prices
    const done = [...earlier.keys()]
    const nothing = { ready: [], done, funds: [], deployments: [], leased: 0, prices, gasBound }
    // The others were measured behind ops that will not run: they are looked at again without those.
    if (consumed.length > 0 || misplaced.size > 0) return { ...nothing, failed: misplaced }
    if (guarded) {
      const estimated = estimate.estimated.filter(({ index }) => !failed.has(index))
      const { requestId } = caller
      const risks = estimated.map((each) => ({ ...each, requestId }))
      const unreserved = yield* ServiceSubmission.reserve(context, risks, prices)
      for (const [place, failure] of unreserved.entries())
        if (failure !== null) failed.set(estimated[place]?.index ?? -1, failure)
    }
    const ready = estimate.estimated.flatMap((each): ReadonlyArray<Transfers.Ready> => {
      const own = given[each.index]
      const consent = consents.get(each.index)
      if (own === undefined || consent === undefined || failed.has(each.index) || earlier.has(each.index))
        return []
      return [readyOf(submitting, own, consent, each)]
    })
    return { ...nothing, ready, failed, funds: Estimation.fundsOf(context, estimate) }
  })
