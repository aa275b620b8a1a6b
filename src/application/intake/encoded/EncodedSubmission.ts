import * as Effect from "effect/Effect"
import type { Version } from "../../../domain/erc4337/EntryPoint.js"
import * as Outcome from "../../../domain/erc4337/Outcome.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Results from "../../answers/Results.js"
import * as Connection from "../../chain/Connection.js"
import type { Engine } from "../../lanes/Engine.js"
import * as Funding from "../../pay/Funding.js"
import type { AbiStore } from "../../ports/AbiStore.js"
import { Budgets } from "../../ports/Budgets.js"
import type { Bundler } from "../../ports/chain/Bundler.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { Networks } from "../../ports/Networks.js"
import type { Signers, SystemSigners } from "../../ports/Signers.js"
import * as EncodedLinks from "../../prepare/given/GivenLinks.js"
import type * as EncodedOps from "../../prepare/given/GivenOps.js"
import * as OpContext from "../../prepare/OpContext.js"
import * as ServiceSubmission from "../../prepare/ServiceEoa.js"
import * as SignerAuthorization from "../../prepare/SignerAuthorization.js"
import type { Caller } from "../../request/Caller.js"
import { type AnsweredElsewhere, CurrentRequest } from "../../request/CurrentRequest.js"
import * as Decoding from "../../request/Decoding.js"
import { type Failure, invalid } from "../../request/Failure.js"
import type { ForOps } from "../../request/Settings.js"
import type { Executed } from "../../request/TransactionResult.js"
import * as MonotonicTime from "../../runtime/MonotonicTime.js"
import * as Submission from "../submission/Submission.js"
import type { SubmissionJournals } from "../submission/SubmissionRecords.js"
import * as EncodedPreparation from "./EncodedPreparation.js"

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

/** The request's signer submits, through the caller's node, or the operator's when it pays for one of the ops. */
const bySigner = (
  caller: Caller,
  { read, settings }: Posted
): Effect.Effect<EncodedPreparation.SubmitterRoute, Failure, ChainRpc | Networks | Signers> =>
  Effect.gen(function* () {
    const signers = yield* SignerAuthorization.signersOf(caller, settings)
    const [submitter] = signers
    if (submitter === undefined || settings.signer === undefined)
      return yield* Effect.die(new Error("the request names a signer"))
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
): Effect.Effect<EncodedPreparation.SubmitterRoute, Failure, ChainRpc | Networks | Signers | SystemSigners> =>
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

/** Receipts of transactions that brought ops of the request before it did, and of their logs those of its own ops. */
const receiptsBefore = (
  { connection: { chain, trust }, context: { entryPoint }, earlier }: EncodedPreparation.Submitting,
  { landed, receipts }: Submission.Outcomes
) => {
  // A transaction may carry other requests' ops, and some of both parts of this one's.
  const own = new Set([...earlier.values(), ...landed.values()].map(({ userOpHash }) => userOpHash))
  const hashes = new Set([...earlier.values()].map(({ txHash }) => txHash))
  return Effect.forEach(hashes, (txHash) => chain.receipt(txHash), { concurrency: "unbounded" }).pipe(
    Effect.map((found) =>
      found.flatMap((receipt) =>
        receipt === null ? [] : [{ ...receipt, logs: Outcome.logsOf(entryPoint, receipt.logs, own) }]
      )
    ),
    // What this request has sent is answered in any case.
    Effect.catch((error) =>
      receipts.length > 0 ? Effect.succeed([]) : Effect.fail(Connection.refusal(trust)(error))
    )
  )
}

const submit = (
  caller: Caller,
  { endpoint, read }: Posted,
  route: EncodedPreparation.SubmitterRoute,
  decoding: Decoding.Decoding
): Effect.Effect<Executed, Failure | AnsweredElsewhere, Requirements | CurrentRequest> =>
  Effect.gen(function* () {
    const { connection, key, settings, submitter } = route
    const { profile } = connection
    const { paymaster, ...others } = settings
    const context = yield* OpContext.contextOf(connection, others, submitter.address, caller)
    const { version } = context
    const given = yield* read(context)
    yield* agree(version, paymaster, given)
    const dependencies = yield* Effect.fromResult(EncodedLinks.dependencies(given, context))
    const submitting: EncodedPreparation.Submitting = {
      ...route,
      caller,
      given,
      context,
      dependencies,
      revert: decoding.revert,
      deadline: (yield* MonotonicTime.millis) + profile.receiptTimeoutMillis,
      guarded: key === "serviceEoa" && profile.remoteBundler === null,
      current: yield* CurrentRequest,
      budgets: yield* Budgets,
      earlier: new Map()
    }
    const elements = given.map(({ index }) => index)
    const fresh = yield* EncodedPreparation.unposted(submitting, elements)
    const running = Submission.run(
      {
        caller,
        endpoint,
        context,
        submitter,
        access: Connection.access(caller, connection, key),
        elements: fresh.map(({ index }) => index),
        dependencies,
        prepare: (todo) => EncodedPreparation.prepare(submitting, todo)
      },
      decoding.revert
    )
    const outcomes = yield* submitting.guarded
      ? ServiceSubmission.settling(caller, profile, elements)(running)
      : running
    const before = yield* receiptsBefore(submitting, outcomes)
    return yield* Results.executed(
      elements,
      {
        landed: new Map([...submitting.earlier, ...outcomes.landed]),
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
