import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Revert from "../../../domain/abi/Revert.js"
import * as Gas from "../../../domain/erc4337/gas/Gas.js"
import * as Transaction from "../../../domain/evm/Transaction.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Uint from "../../../domain/primitives/Uint.js"
import * as Results from "../../answers/Results.js"
import { ChainFacts } from "../../chain/ChainFacts.js"
import * as Connection from "../../chain/Connection.js"
import * as Prices from "../../chain/Prices.js"
import * as Keys from "../../keys/Keys.js"
import * as DirectTransaction from "../../lanes/DirectTransaction.js"
import type { Engine } from "../../lanes/Engine.js"
import { Requests } from "../../lanes/requests/Requests.js"
import * as Span from "../../observe/Span.js"
import type { AbiStore } from "../../ports/AbiStore.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { TransactionJournal } from "../../ports/journal/TransactionJournal.js"
import type { Networks } from "../../ports/Networks.js"
import type { Signers } from "../../ports/Signers.js"
import * as CalledContracts from "../../prepare/CalledContracts.js"
import * as Calls from "../../prepare/EncodeCall.js"
import * as L1Fees from "../../prepare/estimate/L1Fees.js"
import * as OpContext from "../../prepare/OpContext.js"
import * as SilentRevert from "../../prepare/SilentRevert.js"
import type { Caller } from "../../request/Caller.js"
import type { RefusalCode } from "../../request/Catalogue.js"
import type { AnsweredElsewhere, CurrentRequest } from "../../request/CurrentRequest.js"
import * as Decoding from "../../request/Decoding.js"
import { type Failure, invalid, type RefusalDetail, unprocessable } from "../../request/Failure.js"
import { FunctionText, optional, shown } from "../../request/Fields.js"
import * as Reasons from "../../request/Reasons.js"
import * as Settings from "../../request/Settings.js"
import { Executed } from "../../request/TransactionResult.js"

export const Request = Schema.Struct({
  to: shown(Address.schema, { description: "Receiver of the transaction." }),
  funcSignature: optional(FunctionText).annotateKey({
    description: "Function to call; absent: a plain transfer of value."
  }),
  funcParams: optional(Schema.Array(Schema.Unknown), []).annotateKey({
    description: "Parameters as strings; arrays and tuples as JSON text or JSON arrays."
  }),
  value: shown(optional(Uint.schema, 0n), {
    description: "Wei sent with the transaction, decimal or 0x hex."
  }),
  settings: Settings.ForSigner
}).annotate({ identifier: "TransactSignerRequest" })
export type Request = typeof Request.Type

export const Response = Executed
export type Response = Executed

/** What its requests need beside the caller. */
export type Requirements =
  | AbiStore
  | ChainRpc
  | Engine
  | RequestJournal
  | TransactionJournal
  | Networks
  | Signers

export const kind = { endpoint: "/transactSigner", Request, Response }

/**
 * Sends a transaction of the signer's own EOA, by the same lane as its bundles. One that would revert is not sent: 422
 * with the reason.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Effect.flatMap(Requests, (requests) => requests.run(kind, caller, request, work(caller, request)))

/** 422 that says why the transaction is not sent, in its element too, as the other writes do. */
const refused = (code: RefusalCode, detail: RefusalDetail): Effect.Effect<never, Failure> => {
  const { data } = detail
  const shown = typeof data === "string" ? { data } : {}
  const element = {
    userOpHash: null,
    success: false,
    error: detail.message,
    result: null,
    txHash: null,
    ...shown
  }
  return Effect.fail(unprocessable(code, [detail], { extra: { returnData: [{ "0": element }] } }))
}

/** 422 when the address has not so many wei, whatever else is on its way. */
const affordable = (address: Address.Address, balance: bigint, cost: bigint): Effect.Effect<void, Failure> =>
  cost <= balance
    ? Effect.void
    : refused("insufficient_funds", {
        path: "settings.signer",
        message: Reasons.text("signerFunds", { signer: address, missing: cost - balance }),
        missing: (cost - balance).toString()
      })

const work = (
  caller: Caller,
  request: Request
): Effect.Effect<Response, Failure | AnsweredElsewhere, Requirements | CurrentRequest> =>
  Effect.gen(function* () {
    const { settings, to, value = 0n } = request
    if (request.funcSignature === undefined && (request.funcParams ?? []).length > 0)
      return yield* Effect.fail(
        invalid("invalid_request", [{ path: "funcParams", message: "expected none without funcSignature" }])
      )
    const call =
      request.funcSignature === undefined
        ? null
        : yield* Effect.fromResult(Calls.encodeCall(request.funcSignature, request.funcParams ?? [], ""))
    const data = call?.data ?? Hex.empty
    if (Hex.size(data) > Transaction.maxDataBytes)
      return yield* Effect.fail(
        invalid("invalid_request", [
          {
            path: "funcParams",
            message: `the call has ${Hex.size(data)} bytes; nodes take at most ${Transaction.maxDataBytes} in a transaction`
          }
        ])
      )
    const decoding = yield* Decoding.load(caller, settings.useABI)
    const signer = yield* Keys.resolve(caller, settings.signer)
    const connection = yield* Connection.open(caller, settings)
    const { chain, profile, trust } = connection
    const facts = yield* ChainFacts
    const buffers = OpContext.buffers(settings)
    const transaction = { from: signer.address, to, data, value }

    const prepare = Effect.gen(function* () {
      const answered = Effect.mapError(Connection.refusal(trust))
      const [prices, block, balance, estimated, called, code] = yield* Effect.all(
        [
          Prices.now(connection, buffers.price),
          answered(facts.block(chain, "recent")),
          answered(chain.balance(signer.address)),
          Effect.result(answered(chain.estimateGas(transaction))),
          Effect.result(answered(chain.call(transaction))),
          CalledContracts.needsOne({ target: to, data }, profile)
            ? answered(facts.code(chain, to, "recent"))
            : Effect.succeed(undefined)
        ],
        { concurrency: "unbounded" }
      )
      if (code === null) {
        const { code, message } = CalledContracts.failureAt(to, profile)
        return yield* refused(code, { path: "to", message })
      }
      // Before what the node says of it, which nodes put in words of their own.
      yield* affordable(signer.address, balance, value)
      const seen = yield* Effect.fromResult(called)
      const estimate = seen.success ? yield* Effect.fromResult(estimated) : { ...seen, gas: 0n }
      const failure = seen.success ? estimate : seen
      if (!failure.success) {
        const data = failure.data
        const reason = failure.outOfGas
          ? SilentRevert.outOfGas
          : SilentRevert.isSilent(failure)
            ? yield* SilentRevert.reason(chain, facts, transaction)
            : decoding.revert(data)
        const undecoded = Revert.undecoded(data, reason)
        return yield* refused("execution_failed", {
          path: "",
          message: Reasons.text("reverted", { reason }),
          ...(undecoded !== null && { data: undecoded })
        })
      }
      const gasLimit = Gas.overshoot(estimate.gas, buffers.transaction)
      // No block takes a transaction with a higher limit than its own: the lane would wait for it for ever.
      const bound = BigInts.min(profile.caps.transactionGas, block?.gasLimit ?? profile.caps.transactionGas)
      if (estimate.gas > bound)
        return yield* refused("too_large_to_bundle", {
          path: "",
          message: Reasons.text("transactionGas", { gas: estimate.gas, cap: bound })
        })
      const payload = { ...transaction, gasLimit: BigInts.min(gasLimit, bound), prices }
      const l1Fee = yield* L1Fees.ofTransaction(connection, { ...payload, chainId: profile.chainId })
      yield* affordable(signer.address, balance, value + payload.gasLimit * prices.maxFeePerGas + l1Fee)
      return { ...payload, l1Fee, returned: seen.data }
    })

    const { receipt, returned } = yield* DirectTransaction.run({
      caller,
      endpoint: kind.endpoint,
      connection,
      signer,
      access: Connection.access(caller, connection, settings.signer),
      prepare
    })
    const reason = receipt.success
      ? null
      : yield* chain.call(transaction, undefined, receipt.blockNumber - 1n).pipe(
          Effect.map((again) =>
            again.success ? "out of gas, or a state that has passed" : decoding.revert(again.data)
          ),
          Effect.orElseSucceed(() => "the transaction reverted")
        )
    const result =
      returned === null ? null : call === null ? returned : Calls.decodeReturned(call.signature, returned)
    return {
      status: receipt.success ? 1 : 0,
      returnData: [
        {
          "0": {
            userOpHash: null,
            success: receipt.success,
            error: reason,
            result: receipt.success ? result : null,
            txHash: receipt.txHash
          }
        }
      ],
      ...(yield* Results.transactionFields([receipt], decoding))
    }
  }).pipe(Span.named("TransactSigner"))
