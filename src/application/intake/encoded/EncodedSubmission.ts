import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import type { Version } from "../../../domain/erc4337/EntryPoint.js"
import * as SubmitterReimbursement from "../../../domain/erc4337/gas/SubmitterReimbursement.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import * as Outcome from "../../../domain/erc4337/Outcome.js"
import * as Percent from "../../../domain/erc4337/Percent.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type * as Hex from "../../../domain/primitives/Hex.js"
import * as Conditions from "../../../domain/signature/Conditions.js"
import * as WalletCalls from "../../../domain/wallet/WalletCalls.js"
import * as Connection from "../../chain/Connection.js"
import * as Inclusions from "../../chain/Inclusions.js"
import * as Prices from "../../chain/Prices.js"
import type { Engine } from "../../lanes/Engine.js"
import * as Funding from "../../pay/Funding.js"
import * as Payer from "../../pay/Payer.js"
import { Payers } from "../../pay/Payers.js"
import * as Submitter from "../../pay/Submitter.js"
import type { AbiStore } from "../../ports/AbiStore.js"
import { Budgets } from "../../ports/Budgets.js"
import type { Bundler, OpOutcome } from "../../ports/chain/Bundler.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { LaneAccess } from "../../ports/journal/Transactions.js"
import type { Networks } from "../../ports/Networks.js"
import type { Signer, Signers, SystemSigners } from "../../ports/Signers.js"
import type { Caller } from "../../request/Caller.js"
import { type AnsweredElsewhere, CurrentRequest } from "../../request/CurrentRequest.js"
import * as Decoding from "../../request/Decoding.js"
import { type ElementFailure, elementFailure } from "../../request/Elements.js"
import { type Failure, invalid } from "../../request/Failure.js"
import * as Reasons from "../../request/Reasons.js"
import type { ForOps } from "../../request/Settings.js"
import type { Executed } from "../../request/TransactionResult.js"
import * as EventLoop from "../../runtime/EventLoop.js"
import * as Epochs from "../Epochs.js"
import * as Estimation from "../estimate/Estimation.js"
import * as NodeFault from "../NodeFault.js"
import * as OwnedWallets from "../ops/OwnedWallets.js"
import * as Windows from "../ops/Windows.js"
import * as Preparation from "../Preparation.js"
import * as Results from "../Results.js"
import type * as Sending from "../Sending.js"
import * as ServiceSubmission from "../ServiceSubmission.js"
import * as SignerAuthorization from "../SignerAuthorization.js"
import * as Submission from "../Submission.js"
import { dependencyFailed, type Landed } from "../SubmissionElements.js"
import type { SubmissionJournals } from "../SubmissionRecords.js"
import * as EncodedLinks from "./EncodedLinks.js"
import type * as EncodedOps from "./EncodedOps.js"
import * as ExternalProofs from "./ExternalProofs.js"
import * as PreviousSubmission from "./PreviousSubmission.js"

/** What submitting needs beside the caller. */
export type Requirements =
  | AbiStore
  | Bundler
  | ChainRpc
  | Engine
  | Networks
  | SubmissionJournals
  | Signers
  | SystemSigners

/** A request whose ops were handed out before. */
export interface Posted {
  readonly endpoint: string
  readonly settings: ForOps
  readonly read: (context: EncodedOps.Where) => Effect.Effect<ReadonlyArray<EncodedOps.Given>, Failure>
}

/** Who submits, through which node. */
interface SubmitterRoute {
  readonly connection: Connection.Connection
  readonly settings: ForOps
  readonly submitter: Signer
  readonly key: LaneAccess["key"]
  /** The keys that the request names, its signer first. */
  readonly signers: ReadonlyArray<Signer>
}

/** The request's signer submits, through the caller's node, or the operator's when it pays for one of the ops. */
const bySigner = (
  caller: Caller,
  { read, settings }: Posted
): Effect.Effect<SubmitterRoute, Failure, ChainRpc | Networks | Signers> =>
  Effect.gen(function* () {
    const signers = yield* SignerAuthorization.signersOf(caller, settings)
    const [submitter] = signers
    if (submitter === undefined || settings.signer === undefined)
      return yield* Effect.dieMessage("the request names a signer")
    const opened = yield* Connection.open(caller, settings)
    const { chainId, sponsor } = opened.profile
    const { entryPoint } = settings
    const version = yield* Connection.entryPointVersion(opened.profile, entryPoint)
    const given = yield* read({ chainId, entryPoint, version })
    const sponsored = given.some(
      ({ op }) => sponsor !== null && Funding.paymasterOf(version, op) === sponsor.paymaster
    )
    const connection = sponsored ? yield* Connection.openOperator(caller, settings) : opened
    return { connection, settings, submitter, key: settings.signer, signers }
  })

/** The service's own EOA submits, through the operator's node. */
const byService = (
  caller: Caller,
  settings: ForOps
): Effect.Effect<SubmitterRoute, Failure, ChainRpc | Networks | Signers | SystemSigners> =>
  Effect.gen(function* () {
    const opened = yield* ServiceSubmission.open(caller, settings)
    const signers = yield* SignerAuthorization.signersOf(caller, settings)
    return { ...opened, key: "serviceEoa" as const, signers }
  })

/** 400 for ops that name another paymaster than the request does. */
const agree = (
  version: Version,
  paymaster: Address | undefined,
  given: ReadonlyArray<EncodedOps.Given>
): Effect.Effect<void, Failure> => {
  const other = given.find(
    ({ op }) => paymaster !== undefined && Funding.paymasterOf(version, op) !== paymaster
  )
  return other === undefined
    ? Effect.void
    : Effect.fail(
        invalid("invalid_request", [
          {
            path: `operations[${other.index}].encodedUserOp`,
            message: "the op does not name the paymaster of settings.paymaster"
          }
        ])
      )
}

const submit = (
  caller: Caller,
  { endpoint, read }: Posted,
  { connection, key, settings, signers, submitter }: SubmitterRoute,
  decoding: Decoding.Decoding
): Effect.Effect<Executed, Failure | AnsweredElsewhere, Requirements | CurrentRequest> =>
  Effect.gen(function* () {
    const { chain, profile, trust } = connection
    const payers = yield* Payers
    const budgets = yield* Budgets
    const { paymaster, ...others } = settings
    const bare = yield* Preparation.contextOf(connection, others, submitter.address, caller)
    const { chainId, entryPoint, spaceOf, version } = bare
    const bundler = Submitter.boundTo(profile, submitter.address)
    const given = yield* read(bare)
    yield* agree(version, paymaster, given)
    const ops = given.map(({ op }) => op)
    const terms = { entryPoint, version, submitter: submitter.address }
    const context = { ...bare, payer: yield* payers.ofGiven(caller, connection, terms, ops) }
    const dependencies = yield* EncodedLinks.dependencies(given, context)
    const deadline = (yield* Clock.currentTimeMillis) + profile.receiptTimeoutMillis
    /** The EOA is the service's own, and nobody else's bundler pays. */
    const guarded = key === "serviceEoa" && profile.remoteBundler === null
    const current = yield* CurrentRequest
    const earlier = new Map<number, Landed>()
    const done = new Set<number>()

    const note = (index: number, userOpHash: Hex.Bytes32, outcome: OpOutcome) => {
      earlier.set(index, { ...outcome, userOpHash, returned: null })
      done.add(index)
    }

    /** The ops, of those with these indexes, that were not posted before. */
    const unposted = (elements: ReadonlyArray<number>) =>
      Effect.filter(
        elements.flatMap((index) => given[index] ?? []),
        ({ index, userOpHash }) =>
          Effect.map(PreviousSubmission.outcome(caller, chainId, userOpHash, deadline), (outcome) => {
            if (outcome !== null) note(index, userOpHash, outcome)
            return outcome === null
          })
      )

    /** What the EntryPoint says of these ops, by hash; those that never landed are left out. */
    const landedOf = (ops: ReadonlyArray<EncodedOps.Given>, snapshot: Preparation.ChainSnapshot) =>
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
      todo: ReadonlyArray<EncodedOps.Given>,
      snapshot: Preparation.ChainSnapshot,
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
        const landed = yield* landedOf(past, snapshot)
        for (const { index, userOpHash } of past) {
          const outcome = landed.get(userOpHash)
          if (outcome === undefined) continue
          note(index, userOpHash, outcome)
          failures.delete(index)
        }
        return failures
      })

    const prepare = (elements: ReadonlyArray<number>) =>
      Effect.gen(function* () {
        // Also when it is tried again: another request may have posted the same op in the meantime.
        const todo = yield* unposted(Dependencies.order(dependencies, elements))
        const [snapshot, least] = yield* Effect.all(
          [
            Preparation.snapshot(context, [...new Set(todo.map(({ op }) => op.sender))]),
            guarded ? Prices.now(connection, Percent.zero) : Effect.succeed(null)
          ],
          { concurrency: "unbounded" }
        )
        const found = yield* OwnedWallets.find(
          todo.map(({ index, op, walletCustody }) => ({ index, wallet: op.sender, walletCustody })),
          snapshot.wallets
        )
        const failed = new Map<number, ElementFailure>(found.failed)
        const consents = new Map<number, ExternalProofs.Consented>()
        const lastSecond = Preparation.validUntil(snapshot.block)
        for (const [index, failure] of yield* replaced(todo, snapshot, found)) failed.set(index, failure)
        for (const each of todo) {
          const config = found.configs.get(each.index)
          if (config === undefined || failed.has(each.index) || done.has(each.index)) continue
          const bounds = Windows.check(each.window, each.windowPath, snapshot.block)
          if (Either.isLeft(bounds)) {
            if (!("_tag" in bounds.left)) failed.set(each.index, bounds.left)
            // Its time was up only after the request was accepted.
            else if (current.accepted()) failed.set(each.index, NodeFault.asElement(bounds.left))
            else return yield* Effect.fail(bounds.left)
            continue
          }
          const terms = { bounds: bounds.right, bundler, lastSecond, signers }
          const consent = ExternalProofs.consent(each, config, terms)
          if (Either.isLeft(consent)) failed.set(each.index, consent.left)
          else consents.set(each.index, consent.right)
          // Checking signatures takes milliseconds.
          yield* EventLoop.breathe
        }
        const drafts = todo.flatMap(({ index, op }): ReadonlyArray<Estimation.Draft> => {
          const consent = consents.get(index)
          if (consent === undefined) return []
          const signature = Conditions.encodeSignature(consent.conditions, consent.proof)
          const draft = { index, op: { ...op, signature }, value: 0n }
          const objection =
            least === null ? null : ServiceSubmission.objection(profile, version, draft.op, least)
          if (objection === null) return [draft]
          failed.set(index, objection)
          return []
        })
        const estimate = yield* Estimation.estimate({
          context,
          entryPointCode: snapshot.entryPointCode,
          from: submitter.address,
          drafts,
          declared: true,
          lowestPrefund: false,
          revert: decoding.revert
        })
        yield* Preparation.checkImplementation(connection, estimate.implementation, settings.validator)
        for (const [index, failure] of estimate.failed) failed.set(index, failure)
        for (const index of Dependencies.order(dependencies, failed.keys())) {
          const on = dependencies[index] ?? null
          if (on !== null && failed.has(on)) failed.set(index, dependencyFailed(on))
        }

        // Ops of one key follow each other; one that the EntryPoint has consumed may have landed elsewhere.
        const next = new Map<string, bigint>()
        const consumed: Array<EncodedOps.Given> = []
        const misplaced = new Map<number, ElementFailure>()
        for (const each of todo) {
          const sequence = estimate.sequences.get(each.index)
          if (sequence === undefined) continue
          const nonceKey = `${each.op.sender}:${Nonce.keyOf(each.op.nonce)}`
          const expected = next.get(nonceKey) ?? sequence
          const own = Nonce.sequenceOf(each.op.nonce)
          if (own < sequence) consumed.push(each)
          else if (own === expected && !failed.has(each.index)) next.set(nonceKey, expected + 1n)
          else if (!failed.has(each.index))
            misplaced.set(
              each.index,
              elementFailure("invalid_nonce", Reasons.text("nonceOrder", { expected }))
            )
        }
        const landed = yield* landedOf(consumed, snapshot)
        for (const { index, userOpHash } of consumed) {
          const outcome = landed.get(userOpHash)
          if (outcome === undefined) misplaced.set(index, elementFailure("invalid_nonce"))
          else note(index, userOpHash, outcome)
        }
        const { gasBound } = snapshot
        const prices = guarded
          ? SubmitterReimbursement.prices(
              snapshot.prices,
              estimate.estimated.map(({ op }) => op)
            )
          : snapshot.prices
        const nothing = { ready: [], done, funds: [], deployments: [], leased: 0, prices, gasBound }
        // The others were measured behind ops that will not run: they are looked at again without those.
        if (consumed.length > 0 || misplaced.size > 0) return { ...nothing, failed: misplaced }
        if (guarded)
          for (const [index, failure] of yield* ServiceSubmission.reserve(
            caller,
            profile,
            version,
            estimate.estimated,
            prices
          ))
            failed.set(index, failure)

        const ready = estimate.estimated.flatMap((each): ReadonlyArray<Sending.Ready> => {
          const own = given[each.index]
          const consent = consents.get(each.index)
          if (own === undefined || consent === undefined || failed.has(each.index) || done.has(each.index))
            return []
          const { op, userOpHash } = own
          const { conditions, prove } = consent
          const set = guarded ? ServiceSubmission.bind(caller, profile, each.index) : Effect.void
          return [
            {
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
          ]
        })
        return { ...nothing, ready, failed, funds: Estimation.fundsOf(context, estimate) }
      })

    const elements = given.map(({ index }) => index)
    const fresh = yield* unposted(elements)
    const running = Submission.run(
      {
        caller,
        endpoint,
        context,
        submitter,
        access: Connection.access(caller, connection, key),
        elements: fresh.map(({ index }) => index),
        dependencies,
        prepare
      },
      decoding.revert
    )
    const outcomes = yield* guarded ? ServiceSubmission.settling(caller, profile, elements)(running) : running
    const hashes = [...new Set([...earlier.values()].map(({ txHash }) => txHash))]
    const sent = outcomes.receipts.length > 0
    // A transaction may carry other requests' ops, and some of both parts of this one's.
    const own = new Set(
      [...earlier.values(), ...outcomes.landed.values()].map(({ userOpHash }) => userOpHash)
    )
    const before = yield* Effect.forEach(hashes, chain.receipt, { concurrency: "unbounded" }).pipe(
      Effect.map((receipts) =>
        receipts.flatMap((receipt) =>
          receipt === null ? [] : [{ ...receipt, logs: Outcome.logsOf(entryPoint, receipt.logs, own) }]
        )
      ),
      // What this request has sent is answered in any case.
      Effect.catchAll((error) => (sent ? Effect.succeed([]) : Effect.fail(Connection.refusal(trust)(error))))
    )
    return yield* Results.executed(
      elements,
      {
        landed: new Map([...earlier, ...outcomes.landed]),
        failed: outcomes.failed,
        receipts: [
          ...before,
          ...outcomes.receipts.filter(({ txHash }) => before.every((other) => other.txHash !== txHash))
        ]
      },
      (index, data) => {
        const own = given[index]
        return own === undefined ? data : EncodedLinks.returned(profile.ledger, own, data)
      },
      decoding,
      dependencies
    )
  })

/** Submits ops that were handed out: by the request's signer where it names one, else by the service's own EOA. */
export const work = (
  caller: Caller,
  posted: Posted,
  by: "signer" | "service"
): Effect.Effect<Executed, Failure | AnsweredElsewhere, Requirements | CurrentRequest> =>
  Effect.gen(function* () {
    const { settings } = posted
    const decoding = yield* Decoding.load(caller, settings.useABI)
    const route = yield* by === "signer" ? bySigner(caller, posted) : byService(caller, settings)
    return yield* submit(caller, posted, route, decoding)
  })
