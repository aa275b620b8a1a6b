import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Conditions from "../../../domain/signature/Conditions.js"
import * as Proof from "../../../domain/signature/Proof.js"
import * as Deployment from "../../../domain/wallet/Deployment.js"
import * as EstimationDeployer from "../../../domain/wallet/EstimationDeployer.js"
import * as Results from "../../answers/Results.js"
import * as Connection from "../../chain/Connection.js"
import type * as HeldNonces from "../../intake/submission/HeldNonces.js"
import * as Submission from "../../intake/submission/Submission.js"
import type * as Transfers from "../../intake/submission/Transfers.js"
import * as Keys from "../../keys/Keys.js"
import { Requests } from "../../lanes/requests/Requests.js"
import * as Span from "../../observe/Span.js"
import * as Payer from "../../pay/Payer.js"
import * as Submitter from "../../pay/Submitter.js"
import { OpJournal } from "../../ports/journal/OpJournal.js"
import { SystemSigners } from "../../ports/Signers.js"
import * as Estimation from "../../prepare/estimate/Estimation.js"
import * as OpContext from "../../prepare/OpContext.js"
import * as Snapshot from "../../prepare/Snapshot.js"
import * as Account from "../../prepare/wallets/Account.js"
import * as WantedWallets from "../../prepare/wallets/WantedWallets.js"
import type { Caller } from "../../request/Caller.js"
import type { AnsweredElsewhere, CurrentRequest } from "../../request/CurrentRequest.js"
import * as Decoding from "../../request/Decoding.js"
import type { ElementFailure } from "../../request/Elements.js"
import { elementFailure } from "../../request/Elements.js"
import {
  type Failure,
  type InvalidRequest,
  invalid,
  type RefusalDetail,
  unprocessable
} from "../../request/Failure.js"
import * as Reasons from "../../request/Reasons.js"
import * as Settings from "../../request/Settings.js"
import { Created } from "../../request/TransactionResult.js"
import * as EventLoop from "../../runtime/EventLoop.js"
import * as KillSwitch from "../../tenants/KillSwitch.js"
import type * as ExecuteOperations from "../operations/ExecuteOperations.js"
import * as Offers from "../operations/Offers.js"
import * as Submissions from "../operations/Submissions.js"

/** Deploys wallets. */

export const Request = Schema.Struct({
  accounts: Schema.Array(Account.schema),
  settings: Settings.ForSubmission
}).annotate({ identifier: "CreateRequest" })
export type Request = typeof Request.Type

export const Response = Created
export type Response = Created

/** What its requests need beside the caller. */
export type Requirements = ExecuteOperations.Requirements | SystemSigners | Submissions.Submissions

/** A wallet that does not stand yet. */
interface Missing {
  readonly index: number
  readonly wallet: Address.Address
  readonly making: WantedWallets.Making
}

const hasPasskeys = ({ making }: WantedWallets.Wanted): boolean =>
  making !== null && making.config.passkeys.length > 0

/** A wallet that is named by its address alone has to exist: its address does not tell how to make it. */
const saltRequired = ({ index, wallet }: WantedWallets.Wanted): InvalidRequest =>
  invalid("salt_required", [
    { path: `accounts[${index}].salt`, message: "salt is required: the wallet is not deployed", wallet }
  ])

export const kind = {
  endpoint: "/create",
  Request,
  Response,
  elements: ({ accounts }: Request) => accounts.length,
  list: "accounts"
} as const

/**
 * Deploys wallets, several in one transaction. The deployer's authorisation and signature come from the operator's
 * own key, so that everything is read from the operator's own node; the request's signer submits and pays for the
 * transaction, and each wallet pays for its op out of what stands at its predicted address.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Effect.flatMap(Requests, (requests) =>
    Submissions.submit(
      caller,
      Request,
      request,
      (body) => Offers.create(caller, request, body),
      requests.run(kind, caller, request, work(caller, request))
    )
  ).pipe(Span.named("CreateWallets"))

const work = (
  caller: Caller,
  request: Request
): Effect.Effect<Response, Failure | AnsweredElsewhere, Requirements | CurrentRequest> =>
  Effect.gen(function* () {
    const { accounts, settings } = request
    if (accounts.length === 0)
      yield* Effect.fail(
        invalid("invalid_request", [{ path: "accounts", message: "expected at least one account" }])
      )
    // Passkeys of a whole request are seconds of work.
    const parsed = yield* EventLoop.each(accounts, (account, index) =>
      Effect.fromResult(Account.parse(account, index))
    )
    const decoding = yield* Decoding.load(caller, settings.useABI)
    const signer = yield* Keys.resolve(caller, settings.signer)
    const resolved = yield* WantedWallets.resolve(caller, parsed)
    const connection = yield* Connection.openOperator(caller, settings)
    const { profile } = connection
    const context = yield* OpContext.contextOf(connection, settings, signer.address, caller)
    const { chainId, entryPoint, formula, payer, spaceOf, version } = context
    yield* Effect.fromResult(WantedWallets.checkFactory(profile, settings))
    const wanted = yield* WantedWallets.read(resolved, signer.address, context)
    const deployer = yield* Effect.flatMap(SystemSigners, ({ deployer }) =>
      Effect.mapBoth(deployer, { onFailure: Keys.refusal("settings.factory"), onSuccess: Keys.bounded })
    )
    yield* KillSwitch.guard({ kind: "signer", address: deployer.address }, "settings.factory")
    const opJournal = yield* OpJournal
    const existing = new Set<number>()

    const prepare = (elements: ReadonlyArray<number>, held: HeldNonces.HeldNonces) =>
      Effect.gen(function* () {
        const todo = wanted.filter(({ index }) => elements.includes(index) && !existing.has(index))
        const makeable = todo.filter(({ making }) => making !== null)
        // In one order, so that of two requests for the same wallets one gets all it needs.
        // Its nonce here, and at no EntryPoint: the wallet is deployed once, through whichever of them.
        const places = makeable
          .sort((a, b) => (a.wallet < b.wallet ? -1 : 1))
          .flatMap(({ index, wallet }) =>
            (held.has(index) ? [Address.zero] : [Address.zero, entryPoint]).map((at) => ({
              at,
              index,
              wallet
            }))
          )
        const leased = yield* Effect.orDie(
          opJournal.lease(
            places.map(({ at, wallet }) => ({
              ...spaceOf(wallet),
              entryPoint: at,
              holder: caller.requestId,
              keys: { from: 0n, to: 0n },
              count: 1,
              ttlMillis: OpContext.leaseMillis
            }))
          )
        )
        const busy = places[leased.length]
        if (busy !== undefined) return { busy: [busy.index] }
        const snapshot = yield* Snapshot.read(
          context,
          todo.map(({ wallet }) => wallet),
          [],
          "now",
          todo.some(hasPasskeys)
        )
        const failed = new Map<number, ElementFailure>()
        const others: Array<RefusalDetail> = []
        const missing: Array<Missing> = []
        for (const each of todo) {
          const { index, making, wallet } = each
          const state = snapshot.wallets.get(wallet)
          if (state?._tag === "foreign")
            failed.set(index, elementFailure("wallet_not_supported", undefined, { wallet }))
          else if (state?._tag === "deployed") {
            existing.add(index)
            if (
              !(yield* Effect.fromResult(
                WantedWallets.isAsWanted(each, signer.address, state.configuration.config)
              ))
            )
              others.push({
                path: `accounts[${index}]`,
                message: Reasons.text("otherConfiguration"),
                wallet
              })
          } else if (making === null) yield* Effect.fail(saltRequired(each))
          else if (snapshot.forgeable && hasPasskeys(each))
            failed.set(index, elementFailure("passkeys_forgeable", undefined, { wallet }))
          else missing.push({ index, wallet, making })
        }
        if (others.length > 0) return yield* Effect.fail(unprocessable("account_exists", others))

        const conditions = {
          validUntil: yield* Snapshot.deployableUntil(snapshot.block),
          validAfter: 0,
          bundler: Submitter.boundTo(profile, signer.address)
        }
        const deploymentOf = ({ making }: Missing): Deployment.Deployment => ({
          ...making,
          deadline: conditions.validUntil
        })
        const initCodeOf = (each: Missing, signature: Hex.Hex): Hex.Hex =>
          Deployment.initCode(
            formula.factory,
            deploymentOf(each),
            Deployment.authorization(signature, conditions.bundler)
          )
        const opOf = (each: Missing, signature: Hex.Hex): UserOperation.UserOperation => ({
          sender: each.wallet,
          nonce: 0n,
          initCode: initCodeOf(each, signature),
          callData: Hex.empty,
          callGasLimit: 0n,
          verificationGasLimit: 0n,
          preVerificationGas: 0n,
          maxFeePerGas: snapshot.prices.maxFeePerGas,
          maxPriorityFeePerGas: snapshot.prices.maxPriorityFeePerGas,
          paymasterAndData: Hex.empty,
          signature: Hex.empty
        })
        const digestOf = (each: Missing) =>
          Deployment.digest({ chainId, factory: formula.factory }, deploymentOf(each), conditions.bundler)
        const signatureOf = (proof: Hex.Hex) => Conditions.encodeSignature(conditions, proof)
        const dummy = signatureOf(Proof.dummyEcdsa(1))
        const draftOf = (each: Missing) =>
          Effect.map(
            payer.draft({ ...opOf(each, EstimationDeployer.sign(digestOf(each))), signature: dummy }),
            (op) => {
              const hash = UserOperation.hash(version, entryPoint, chainId, op)
              const own = signatureOf(EstimationDeployer.sign(Conditions.signingHash(hash, conditions)))
              // What the payer adds stands behind the op's own signature.
              const added = Hex.unsafe(`0x${op.signature.slice(dummy.length)}`)
              return { index: each.index, value: 0n, op: { ...op, signature: Hex.concat(own, added) } }
            }
          )
        const estimate = yield* Estimation.estimate({
          context,
          entryPointCode: snapshot.entryPointCode,
          from: signer.address,
          drafts: yield* EventLoop.each(missing, draftOf),
          declared: false,
          lowestPrefund: false,
          revert: decoding.revert,
          extra: { [formula.factory]: { stateDiff: EstimationDeployer.factoryStorage } }
        })
        yield* Snapshot.checkImplementation(connection, estimate.implementation, settings.validator)
        for (const [index, failure] of estimate.failed) failed.set(index, failure)

        const accounts = new Map(missing.map((each) => [each.index, each]))
        const ready = estimate.estimated.flatMap((each): ReadonlyArray<Transfers.Ready> => {
          const account = accounts.get(each.index)
          if (account === undefined) return []
          return [
            {
              index: each.index,
              op: each.op,
              space: spaceOf(account.wallet),
              nonceKey: 0n,
              sequence: 0n,
              reserve: Payer.walletShare(payer, each),
              l1Fee: each.l1Fee,
              userOpHash: null,
              returned: Hex.empty,
              complete: deployer.sign(digestOf(account)).pipe(
                Effect.flatMap((signature) =>
                  payer.complete({
                    ...each.op,
                    initCode: initCodeOf(account, signature),
                    signature: Hex.empty
                  })
                ),
                Effect.map((op) => ({
                  op,
                  userOpHash: UserOperation.hash(version, entryPoint, chainId, op)
                }))
              ),
              sign: (hash) => Effect.map(deployer.sign(Conditions.signingHash(hash, conditions)), signatureOf)
            }
          ]
        })
        return {
          ready,
          failed,
          done: existing,
          leased: leased.length,
          funds: Estimation.fundsOf(context, estimate),
          deployments: ready.flatMap(({ index }) => {
            const account = accounts.get(index)
            if (account === undefined) return []
            const { configHash, create2Salt } = account.making
            return [
              {
                index,
                intent: {
                  chainId,
                  factory: formula.factory,
                  create2Salt,
                  configHash,
                  deadline: conditions.validUntil,
                  chainTime: snapshot.block.timestamp
                }
              }
            ]
          }),
          prices: snapshot.prices,
          gasBound: snapshot.gasBound
        }
      })

    const outcomes = yield* Submission.run(
      {
        caller,
        endpoint: kind.endpoint,
        context,
        submitter: signer,
        access: Connection.access(caller, connection, settings.signer),
        elements: wanted.map(({ index }) => index),
        prepare
      },
      decoding.revert
    )

    return yield* Results.created(
      wanted.map(({ account: { salt }, index, wallet }) => ({ index, salt, wallet })),
      { ...outcomes, existing, note: null },
      decoding
    )
  })
