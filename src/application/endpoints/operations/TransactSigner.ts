import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Transaction from "../../../domain/evm/Transaction.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Uint from "../../../domain/primitives/Uint.js"
import * as Results from "../../answers/Results.js"
import { Executed } from "../../answers/TransactionResult.js"
import { elementFailure } from "../../failures/Elements.js"
import { type Failure, invalidAt } from "../../failures/Failure.js"
import * as Span from "../../observe/Span.js"
import type { AbiStore } from "../../ports/AbiStore.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { Networks } from "../../ports/Networks.js"
import type { Signers } from "../../ports/Signers.js"
import type { DirectCall } from "../../prepare/Call.js"
import * as Direct from "../../prepare/Direct.js"
import * as EncodeCall from "../../prepare/EncodeCall.js"
import type { Offer } from "../../prepare/Offer.js"
import * as OpContext from "../../prepare/OpContext.js"
import type { Caller } from "../../request/Caller.js"
import * as Decoding from "../../request/Decoding.js"
import { FunctionText, optional, shown } from "../../request/Fields.js"
import * as Settings from "../../request/Settings.js"
import * as Offers from "../Offers.js"
import * as Submissions from "../Submissions.js"

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

export type Surroundings = AbiStore | ChainRpc | Networks | Signers

export type Requirements = Surroundings | Submissions.Submissions

const endpoint = "/transactSigner"

/** Encodes the call of the signer's transaction; 400 for a call that nodes refuse. */
const calldataOf = (
  funcSignature: string | undefined,
  funcParams: ReadonlyArray<unknown>
): Effect.Effect<EncodeCall.Encoded | null, Failure> =>
  Effect.gen(function* () {
    const wrong = (message: string) => Effect.fail(invalidAt("funcParams", message))
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

/** The transaction, and its function where the answer decodes what it returns. */
export interface Sent extends Pick<DirectCall, "data" | "gas" | "to" | "value"> {
  readonly signature: EncodeCall.Encoded["signature"] | null
}

/** Offers one transaction of the context's EOA. */
export const offer = (
  {
    decoding,
    ...source
  }: Pick<Offer, "body" | "caller" | "endpoint"> & {
    readonly context: OpContext.Direct
    readonly decoding: Decoding.Decoding
  },
  { signature, ...transaction }: Sent
): Offers.Offered<Executed> => {
  const { connection, submitter } = source.context
  const { data, to, value } = transaction
  const call: DirectCall = {
    ...transaction,
    requestId: source.caller.requestId,
    index: 0,
    kind: "direct",
    wallet: submitter,
    custody: 0,
    window: null,
    dependsOn: null
  }
  /** The transaction's revert reason, by the state before its block. */
  const reverted = (blockNumber: bigint) =>
    connection.chain.call({ from: submitter, to, data, value }, undefined, blockNumber - 1n).pipe(
      Effect.map((again) =>
        again.success ? "out of gas, or a state that has passed" : decoding.revert(again.data)
      ),
      Effect.orElseSucceed(() => "the transaction reverted")
    )
  return Offers.make({
    ...source,
    calls: [call],
    revert: decoding.revert,
    Response: Executed,
    answer: ({ failed, landed, receipts }) =>
      Effect.gen(function* () {
        const receipt = receipts.at(-1)
        if (receipt === undefined)
          return yield* Effect.fail(Direct.failureOf(failed.get(0) ?? elementFailure("execution_failed")))
        const { blockNumber, success, txHash } = receipt
        const returned = landed.get(0)?.returned ?? null
        const result =
          returned === null || signature === null ? returned : EncodeCall.decodeReturned(signature, returned)
        const element = {
          userOpHash: null,
          success,
          error: success ? null : yield* reverted(blockNumber),
          result: success ? result : null,
          txHash
        }
        return {
          status: success ? 1 : 0,
          returnData: [{ "0": element }],
          ...(yield* Results.transactionFields([receipt], decoding))
        }
      })
  })
}

const offerOf = (
  caller: Caller,
  { funcParams = [], funcSignature, settings, to, value = 0n }: Request,
  body: string
): Effect.Effect<Offers.Offered<Executed>, Failure, Surroundings> =>
  Effect.gen(function* () {
    const encoded = yield* calldataOf(funcSignature, funcParams)
    const decoding = yield* Decoding.load(caller, settings.useABI)
    const context = yield* OpContext.direct(caller, settings)
    return offer(
      { body, caller, context, decoding, endpoint },
      { to, value, data: encoded?.data ?? Hex.empty, signature: encoded?.signature ?? null }
    )
  })

export const kind = { endpoint, Request, Response, offerOf }

/**
 * Sends a transaction of the signer's EOA, by the same lane as its bundles. A transaction that would revert is not
 * sent: 422 with the reason.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Span.named("TransactSigner")(Submissions.submit(caller, kind, request))
