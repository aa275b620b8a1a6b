import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Transaction from "../../../domain/evm/Transaction.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Results from "../../answers/Results.js"
import type { Final } from "../../answers/Waiters.js"
import * as Connection from "../../chain/Connection.js"
import type { Offer } from "../../intake/Intake.js"
import * as Keys from "../../keys/Keys.js"
import * as Reprice from "../../lanes/worker/Reprice.js"
import * as Funding from "../../pay/Funding.js"
import type { Payers } from "../../pay/Payers.js"
import type { AbiStore } from "../../ports/AbiStore.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { Networks } from "../../ports/Networks.js"
import { type Signers, SystemSigners } from "../../ports/Signers.js"
import * as Call from "../../prepare/Call.js"
import * as Direct from "../../prepare/Direct.js"
import * as EncodeCall from "../../prepare/EncodeCall.js"
import * as GivenLinks from "../../prepare/given/GivenLinks.js"
import type * as GivenOps from "../../prepare/given/GivenOps.js"
import * as OpContext from "../../prepare/OpContext.js"
import type { Operation } from "../../prepare/Operation.js"
import * as Links from "../../prepare/ops/Links.js"
import * as ServiceEoa from "../../prepare/ServiceEoa.js"
import * as SignerAuthorization from "../../prepare/SignerAuthorization.js"
import * as Account from "../../prepare/wallets/Account.js"
import * as WantedWallets from "../../prepare/wallets/WantedWallets.js"
import * as Answer from "../../request/Answer.js"
import type { Caller } from "../../request/Caller.js"
import * as Decoding from "../../request/Decoding.js"
import { type ElementList, elementFailure } from "../../request/Elements.js"
import { type Failure, invalid, type Unprocessable } from "../../request/Failure.js"
import type { ForOps, ForSigner, ForSubmission } from "../../request/Settings.js"
import { Created, Executed, Unstuck } from "../../request/TransactionResult.js"
import * as EventLoop from "../../runtime/EventLoop.js"

/** What requests ask for, as intake takes it: everything that a request can be wrong about by itself ends here. */

/** What is needed to make offers of requests. */
export type Surroundings = AbiStore | ChainRpc | Networks | Payers | Signers | SystemSigners

/** An offer, and how its request is answered. */
export interface Offered<A> extends Offer {
  /** Where its elements stand in its body. */
  readonly list: ElementList
  readonly answer: (outcomes: Results.Outcomes) => Effect.Effect<A, Failure>
  /** Its answer as it is stored. */
  readonly final: (outcomes: Results.Outcomes) => Effect.Effect<Final>
  /** A stored answer of it. */
  readonly read: (outcome: string) => Effect.Effect<A, Failure>
  /** Transactions of its that the journal does not count to it, by its note. */
  readonly sent: (note: string | null) => ReadonlyArray<Hex.Bytes32>
}

const offered = <A, I>(
  offer: Offer,
  Response: Schema.Codec<A, I>,
  list: ElementList,
  answer: Offered<A>["answer"]
): Offered<A> => {
  let made: { readonly outcome: string; readonly result: Result.Result<A, Unprocessable> } | null = null
  return {
    ...offer,
    list,
    answer,
    final: (outcomes) =>
      Effect.gen(function* () {
        const result = Result.mapError(yield* Effect.result(answer(outcomes)), Answer.asUnprocessable)
        const outcome = yield* Answer.encode(Response, result)
        made = { outcome, result }
        return { outcome, summary: Answer.summary(result) }
      }),
    // What was just encoded need not be decoded.
    read: (outcome) =>
      made?.outcome === outcome ? Effect.fromResult(made.result) : Answer.decode(Response, outcome),
    sent: () => []
  }
}

export const execute = (
  caller: Caller,
  {
    operations,
    settings
  }: { readonly operations: ReadonlyArray<Operation>; readonly settings: ForSubmission },
  body: string
): Effect.Effect<Offered<Executed>, Failure, AbiStore | ChainRpc | Networks | Payers | Signers> =>
  Effect.gen(function* () {
    const encoded = yield* EncodeCall.encodeAll(operations)
    const dependencies = yield* Effect.fromResult(Links.dependencies(operations))
    const decoding = yield* Decoding.load(caller, settings.useABI)
    const context = yield* OpContext.load(caller, settings)
    yield* Effect.fromResult(Links.ledger(dependencies, context.connection))
    const { requestId } = caller
    const calls = yield* Call.ofOperations(requestId, encoded, dependencies, context)
    const mayWait = caller.isAsynchronous === true
    const elements = calls.map(({ index }) => index)
    return offered(
      { requestId, caller, endpoint: "/execute", context, calls, body, revert: decoding.revert, mayWait },
      Executed,
      "operations",
      (outcomes) =>
        Results.executed(
          elements,
          outcomes,
          (index, returned) => encoded[index]?.decode(returned),
          decoding,
          dependencies
        )
    )
  })

/** A request whose ops were handed out before. */
export interface Posted {
  readonly endpoint: string
  readonly settings: ForOps
  readonly read: (where: GivenOps.Where) => Effect.Effect<ReadonlyArray<GivenOps.Given>, Failure>
}

/** The request's signer submits, through the caller's node, or the operator's when it pays for one of the ops. */
const bySigner = (
  caller: Caller,
  { read, settings: { useABI: _, ...settings } }: Posted
): Effect.Effect<OpContext.Route, Failure, ChainRpc | Networks | Signers> =>
  Effect.gen(function* () {
    const signers = yield* SignerAuthorization.signersOf(caller, settings)
    const [submitter] = signers
    if (submitter === undefined || settings.signer === undefined)
      return yield* Effect.die(new Error("the request names no signer"))
    const opened = yield* Connection.open(caller, settings)
    const { chainId, sponsor } = opened.profile
    const { entryPoint } = settings
    const version = yield* Connection.entryPointVersion(opened.profile, entryPoint)
    const given = sponsor === null ? [] : yield* read({ chainId, entryPoint, version })
    const isSponsored = given.some(({ op }) => Funding.paymasterOf(version, op) === sponsor?.paymaster)
    const connection = isSponsored ? yield* Connection.openOperator(caller, settings) : opened
    return { connection, submitter: submitter.address, key: settings.signer, signers, settings }
  })

/** The service's own EOA submits, through the operator's node. */
const byService = (
  caller: Caller,
  posted: Posted
): Effect.Effect<OpContext.Route, Failure, ChainRpc | Networks | Signers | SystemSigners> =>
  Effect.gen(function* () {
    const { connection, settings: own, submitter } = yield* ServiceEoa.open(caller, posted.settings)
    const { useABI: _, ...settings } = own
    const signers = yield* SignerAuthorization.signersOf(caller, settings)
    return { connection, submitter: submitter.address, key: "serviceEoa", signers, settings }
  })

/** 400 for ops that name another paymaster than the request does. */
const agree = (
  { settings: { paymaster } }: Posted,
  given: ReadonlyArray<GivenOps.Given>,
  { version }: GivenOps.Where
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

export const given = (
  caller: Caller,
  posted: Posted,
  by: "signer" | "service",
  body: string
): Effect.Effect<Offered<Executed>, Failure, Surroundings> =>
  Effect.gen(function* () {
    const decoding = yield* Decoding.load(caller, posted.settings.useABI)
    const route = yield* by === "signer" ? bySigner(caller, posted) : byService(caller, posted)
    // Each op says who pays for it.
    const { paymaster: _, ...settings } = route.settings
    const context = yield* OpContext.of(caller, { ...route, settings })
    const ops = yield* posted.read(context)
    yield* agree(posted, ops, context)
    const dependencies = yield* Effect.fromResult(GivenLinks.dependencies(ops, context))
    const { requestId } = caller
    const calls = Call.ofGiven(requestId, ops, dependencies)
    const { ledger } = context.connection.profile
    return offered(
      {
        requestId,
        caller,
        endpoint: posted.endpoint,
        context,
        calls,
        body,
        revert: decoding.revert,
        mayWait: false
      },
      Executed,
      "operations",
      (outcomes) =>
        Results.executed(
          ops.map(({ index }) => index),
          outcomes,
          (index, data) => {
            const own = ops[index]
            return own === undefined ? data : GivenLinks.returned(ledger, own, data)
          },
          decoding,
          dependencies
        )
    )
  })

export const create = (
  caller: Caller,
  request: { readonly accounts: ReadonlyArray<Account.Account>; readonly settings: ForSubmission },
  body: string
): Effect.Effect<Offered<Created>, Failure, Surroundings> =>
  Effect.gen(function* () {
    const { accounts } = request
    const { useABI, ...settings } = request.settings
    if (accounts.length === 0)
      return yield* Effect.fail(
        invalid("invalid_request", [{ path: "accounts", message: "expected at least one account" }])
      )
    // Passkeys of a whole request are seconds of work.
    const parsed = yield* EventLoop.each(accounts, (account, index) =>
      Effect.fromResult(Account.parse(account, index))
    )
    const decoding = yield* Decoding.load(caller, useABI)
    const signer = yield* Keys.resolve(caller, settings.signer)
    const resolved = yield* WantedWallets.resolve(caller, parsed)
    const connection = yield* Connection.openOperator(caller, settings)
    const { deployer } = yield* SystemSigners
    const context = yield* OpContext.of(caller, {
      connection,
      submitter: signer.address,
      key: settings.signer,
      signers: [signer],
      settings,
      // No system key is asked for before the factory is known to be the account's own.
      relied: Effect.gen(function* () {
        yield* Effect.fromResult(WantedWallets.checkFactory(connection.profile, settings))
        const { address } = yield* Effect.mapError(deployer, Keys.refusal("settings.factory"))
        return [{ what: { kind: "signer", address }, path: "settings.factory" }] as const
      })
    })
    const wanted = yield* WantedWallets.read(resolved, signer.address, context)
    const { requestId } = caller
    const calls = Call.ofWanted(requestId, wanted)
    const made = wanted.map(({ account: { salt }, index, wallet }) => ({ index, salt, wallet }))
    return offered(
      {
        requestId,
        caller,
        endpoint: "/create",
        context,
        calls,
        body,
        revert: decoding.revert,
        mayWait: false
      },
      Created,
      "accounts",
      (outcomes) => Results.created(made, outcomes, decoding)
    )
  })

/** What a transaction of the signer's own calls; 400 for what nobody could send. */
const calldataOf = (
  funcSignature: string | undefined,
  funcParams: ReadonlyArray<unknown>
): Effect.Effect<EncodeCall.Encoded | null, Failure> =>
  Effect.gen(function* () {
    const wrong = (message: string) =>
      Effect.fail(invalid("invalid_request", [{ path: "funcParams", message }]))
    if (funcSignature === undefined)
      return funcParams.length === 0 ? null : yield* wrong("expected none without funcSignature")
    const call = yield* Effect.fromResult(EncodeCall.encodeCall(funcSignature, funcParams, ""))
    const bytes = Hex.size(call.data)
    return bytes <= Transaction.maxDataBytes
      ? call
      : yield* wrong(
          `the call has ${bytes} bytes; nodes take at most ${Transaction.maxDataBytes} in a transaction`
        )
  })

/** A transaction of the signer's own. */
export const transact = (
  caller: Caller,
  request: {
    readonly to: Address
    readonly funcSignature?: string | undefined
    readonly funcParams?: ReadonlyArray<unknown>
    readonly value?: bigint
    readonly settings: ForSigner
  },
  body: string
): Effect.Effect<Offered<Executed>, Failure, AbiStore | ChainRpc | Networks | Signers> =>
  Effect.gen(function* () {
    const { funcParams = [], funcSignature, settings, to, value = 0n } = request
    const encoded = yield* calldataOf(funcSignature, funcParams)
    const data = encoded?.data ?? Hex.empty
    const decoding = yield* Decoding.load(caller, settings.useABI)
    const context = yield* OpContext.direct(caller, settings)
    const { requestId } = caller
    const calls = [Call.ofTransaction(requestId, context.submitter, { to, value, data })]
    const { chain } = context.connection
    const { revert } = decoding
    return offered(
      { requestId, caller, endpoint: "/transactSigner", context, calls, body, revert, mayWait: false },
      Executed,
      "operations",
      ({ failed, landed, receipts }) =>
        Effect.gen(function* () {
          const receipt = receipts.at(-1)
          if (receipt === undefined)
            return yield* Effect.fail(Direct.failureOf(failed.get(0) ?? elementFailure("execution_failed")))
          const error = receipt.success
            ? null
            : yield* chain
                .call({ from: context.submitter, to, data, value }, undefined, receipt.blockNumber - 1n)
                .pipe(
                  Effect.map((again) =>
                    again.success ? "out of gas, or a state that has passed" : revert(again.data)
                  ),
                  Effect.orElseSucceed(() => "the transaction reverted")
                )
          const returned = landed.get(0)?.returned ?? null
          const result =
            returned === null || encoded === null
              ? returned
              : EncodeCall.decodeReturned(encoded.signature, returned)
          const element = {
            userOpHash: null,
            success: receipt.success,
            error,
            result: receipt.success ? result : null,
            txHash: receipt.txHash
          }
          return {
            status: receipt.success ? 1 : 0,
            returnData: [{ "0": element }],
            ...(yield* Results.transactionFields([receipt], decoding))
          }
        })
    )
  })

/** An offer of `/unstuck`. */
export interface Repricing extends Offered<Unstuck> {
  readonly context: OpContext.Direct
  readonly decoding: Decoding.Decoding
}

/** Other prices of the signer's transactions that wait. */
export const unstuck = (
  caller: Caller,
  { fillUnknown = false, settings }: { readonly fillUnknown?: boolean; readonly settings: ForSigner },
  body: string
): Effect.Effect<Repricing, Failure, AbiStore | ChainRpc | Networks | Signers> =>
  Effect.gen(function* () {
    const decoding = yield* Decoding.load(caller, settings.useABI)
    const context = yield* OpContext.direct(caller, settings)
    const { requestId } = caller
    const calls = [Call.ofRepricing(requestId, context.submitter, fillUnknown)]
    const { chain } = context.connection
    const offer = offered(
      {
        requestId,
        caller,
        endpoint: Reprice.endpoint,
        context,
        calls,
        body,
        revert: decoding.revert,
        mayWait: false
      },
      Unstuck,
      "operations",
      ({ failed, note }) =>
        Effect.gen(function* () {
          const failure = failed.get(0)
          if (failure !== undefined) return yield* Effect.fail(Direct.refusalOf(failure))
          const { replaced = [], txHash = null, unknown = [] } = Reprice.planOf(note) ?? {}
          const receipt =
            txHash === null
              ? null
              : // It is in a block: a node that does not show it is asked again later.
                yield* Effect.filterOrFail(
                  Effect.orDie(chain.receipt(Hex.unsafe32(txHash))),
                  (found) => found !== null
                ).pipe(Effect.orDie)
          const told = replaced.flatMap(
            ({ maxFeePerGas, maxPriorityFeePerGas, newTxHash, nonce, oldTxHash }) =>
              maxFeePerGas === undefined || maxPriorityFeePerGas === undefined || newTxHash === undefined
                ? []
                : [{ nonce: Number(nonce), oldTxHash, newTxHash, maxFeePerGas, maxPriorityFeePerGas }]
          )
          return yield* Results.unstuck(receipt, { replaced: told, unknown }, decoding)
        })
    )
    return {
      ...offer,
      context,
      decoding,
      sent: (note) =>
        (Reprice.planOf(note)?.replaced ?? []).flatMap(({ newTxHash }) =>
          newTxHash === undefined ? [] : [Hex.unsafe32(newTxHash)]
        )
    }
  })
