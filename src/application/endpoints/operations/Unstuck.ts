import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { FeePrices } from "../../../domain/erc4337/gas/Fees.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Results from "../../answers/Results.js"
import * as TransactionResult from "../../answers/TransactionResult.js"
import type { Failure } from "../../failures/Failure.js"
import * as Reprice from "../../lanes/worker/Reprice.js"
import * as Span from "../../observe/Span.js"
import type { AbiStore } from "../../ports/AbiStore.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import { RequestJournal } from "../../ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../ports/journal/TransactionJournal.js"
import type { Networks } from "../../ports/Networks.js"
import type { Signers } from "../../ports/Signers.js"
import type { RepricingCall } from "../../prepare/Call.js"
import * as Direct from "../../prepare/Direct.js"
import * as OpContext from "../../prepare/OpContext.js"
import type { Caller } from "../../request/Caller.js"
import * as Decoding from "../../request/Decoding.js"
import { optional } from "../../request/Fields.js"
import * as Settings from "../../request/Settings.js"
import * as Offers from "../Offers.js"
import { Submissions } from "../Submissions.js"

/** Reprices pending transactions. */

export const Request = Schema.Struct({
  settings: Settings.ForSigner,
  dryRun: optional(Schema.Boolean, false).annotateKey({
    description: "Only report the replacements and their prices."
  }),
  fillUnknown: optional(Schema.Boolean, false).annotateKey({
    description:
      "Also replace pending transactions that the service did not send, by an empty transfer to the signer itself. Their prices are unknown: if the node rejects the transfer as too cheap, raise percentTxGasPriceOvershoot."
  })
}).annotate({ identifier: "UnstuckRequest" })
export type Request = typeof Request.Type

export const Response = TransactionResult.Unstuck
export type Response = TransactionResult.Unstuck

type Surroundings = AbiStore | ChainRpc | Networks | Signers

export type Requirements = Surroundings | RequestJournal | Submissions | TransactionJournal

const { endpoint } = Reprice

interface Offered extends Offers.Offered<Response> {
  readonly context: OpContext.Direct
  readonly decoding: Decoding.Decoding
}

const offerOf = (
  caller: Caller,
  { fillUnknown = false, settings }: Request,
  body: string
): Effect.Effect<Offered, Failure, Surroundings> =>
  Effect.gen(function* () {
    const decoding = yield* Decoding.load(caller, settings.useABI)
    const context = yield* OpContext.direct(caller, settings)
    const { chain } = context.connection
    const call: RepricingCall = {
      requestId: caller.requestId,
      index: 0,
      kind: "repricing",
      wallet: context.submitter,
      custody: 0,
      fillUnknown,
      window: null,
      dependsOn: null
    }
    const offer = Offers.make({
      caller,
      endpoint,
      context,
      calls: [call],
      body,
      revert: decoding.revert,
      Response,
      sent: (note) =>
        (Reprice.planOf(note)?.replaced ?? []).flatMap(({ newTxHash }) =>
          newTxHash === undefined ? [] : [Hex.unsafe32(newTxHash)]
        ),
      answer: ({ failed, note }) =>
        Effect.gen(function* () {
          const failure = failed.get(0)
          if (failure !== undefined) return yield* Effect.fail(Direct.refusalOf(failure))
          const { replaced = [], txHash = null, unknown = [] } = Reprice.planOf(note) ?? {}
          const receipt =
            txHash === null
              ? null
              : // It is in a block, so query a node that does not show it again later.
                yield* Effect.filterOrFail(
                  Effect.orDie(chain.receipt(Hex.unsafe32(txHash))),
                  (found) => found !== null
                ).pipe(Effect.orDie)
          const reported = replaced.flatMap(
            ({ maxFeePerGas, maxPriorityFeePerGas, newTxHash, nonce, oldTxHash }) =>
              maxFeePerGas === undefined || maxPriorityFeePerGas === undefined || newTxHash === undefined
                ? []
                : [{ nonce: Number(nonce), oldTxHash, newTxHash, maxFeePerGas, maxPriorityFeePerGas }]
          )
          return yield* Results.unstuck(receipt, { replaced: reported, unknown }, decoding)
        })
    })
    return { ...offer, context, decoding }
  })

export const kind = { endpoint, Request, Response, offerOf }

const encodeRequest = Schema.encodeEffect(Request)

const waiting = (nonce: bigint, oldTxHash: string | null, prices: FeePrices): TransactionResult.Replaced => ({
  nonce: Number(nonce),
  oldTxHash,
  newTxHash: null,
  maxFeePerGas: prices.maxFeePerGas.toString(),
  maxPriorityFeePerGas: prices.maxPriorityFeePerGas.toString()
})

/** Whether a request with the same idempotency key is accepted. */
const isKnown = ({ idempotency, principal }: Caller) =>
  idempotency == null
    ? Effect.succeed(false)
    : Effect.flatMap(RequestJournal, ({ requestOf }) =>
        Effect.map(
          Effect.orDie(requestOf(principal.accountId, endpoint, idempotency.key)),
          (found) => found !== null
        )
      )

/**
 * Reprices the pending transactions of a signer, each with its own nonce and payload, and answers with the outcome of
 * the oldest.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Effect.gen(function* () {
    const { dryRun = false, fillUnknown = false } = request
    const submissions = yield* Submissions
    const body = JSON.stringify(yield* Effect.orDie(encodeRequest(request)))
    const offer = yield* offerOf(caller, request, body)
    const { chainId, submitter } = offer.context
    const seen = yield* Effect.result(
      Effect.catchTag(
        Reprice.snapshot(offer.context, yield* TransactionJournal, { chainId, signer: submitter }),
        "JournalError",
        Effect.die
      )
    )
    const filled = Result.isSuccess(seen) && fillUnknown ? seen.success.unknown : []
    const isIdle = Result.isSuccess(seen) && seen.success.priced.length + filled.length === 0
    // Such a request is not accepted, unless it was before.
    if ((Result.isFailure(seen) || dryRun || isIdle) && !(yield* isKnown(caller))) {
      const { priced, quote, unknown } = yield* Effect.fromResult(seen)
      const replaced = [
        ...filled.map((nonce) => waiting(nonce, null, quote)),
        ...priced.map(({ prices, record }) =>
          waiting(record.nonce, record.versions.at(-1)?.txHash ?? null, prices)
        )
      ].toSorted((one, other) => one.nonce - other.nonce)
      const left = fillUnknown ? [] : unknown.map(Number)
      return yield* Results.unstuck(null, { unknown: left, replaced: dryRun ? replaced : [] }, offer.decoding)
    }
    return yield* submissions.run(caller, offer)
  }).pipe(Span.named("Unstuck"))
