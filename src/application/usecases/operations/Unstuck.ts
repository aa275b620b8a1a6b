import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { FeePrices } from "../../../domain/erc4337/gas/Fees.js"
import * as Results from "../../answers/Results.js"
import * as Reprice from "../../lanes/worker/Reprice.js"
import * as Span from "../../observe/Span.js"
import type { AbiStore } from "../../ports/AbiStore.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import { RequestJournal } from "../../ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../ports/journal/TransactionJournal.js"
import type { Networks } from "../../ports/Networks.js"
import type { Signers } from "../../ports/Signers.js"
import type { Caller } from "../../request/Caller.js"
import type { Failure } from "../../request/Failure.js"
import { optional } from "../../request/Fields.js"
import * as Settings from "../../request/Settings.js"
import * as TransactionResult from "../../request/TransactionResult.js"
import * as Offers from "./Offers.js"
import { Submissions } from "./Submissions.js"

/** Prices waiting transactions anew. */

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

/** What its requests need beside the caller. */
export type Requirements =
  | AbiStore
  | ChainRpc
  | Networks
  | RequestJournal
  | Signers
  | Submissions
  | TransactionJournal

export const kind = { endpoint: Reprice.endpoint, Request, Response }

const encodeRequest = Schema.encodeEffect(Request)

const waiting = (nonce: bigint, oldTxHash: string | null, prices: FeePrices): TransactionResult.Replaced => ({
  nonce: Number(nonce),
  oldTxHash,
  newTxHash: null,
  maxFeePerGas: prices.maxFeePerGas.toString(),
  maxPriorityFeePerGas: prices.maxPriorityFeePerGas.toString()
})

/** Whether a request of the same key is accepted. */
const isKnown = ({ idempotency, principal }: Caller) =>
  idempotency == null
    ? Effect.succeed(false)
    : Effect.flatMap(RequestJournal, ({ requestOf }) =>
        Effect.map(
          Effect.orDie(requestOf(principal.accountId, kind.endpoint, idempotency.key)),
          (found) => found !== null
        )
      )

/**
 * Prices the waiting transactions of a signer anew, each under its own nonce and with its own payload, and answers with
 * what became of the oldest.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Effect.gen(function* () {
    const { dryRun = false, fillUnknown = false } = request
    const submissions = yield* Submissions
    const body = JSON.stringify(yield* Effect.orDie(encodeRequest(request)))
    const offer = yield* Offers.unstuck(caller, request, body)
    const { chainId, submitter } = offer.context
    const seen = yield* Effect.result(
      Effect.catchTag(
        Reprice.look(offer.context, yield* TransactionJournal, { chainId, signer: submitter }),
        "JournalError",
        Effect.die
      )
    )
    const filled = Result.isSuccess(seen) && fillUnknown ? seen.success.unknown : []
    const isIdle = Result.isSuccess(seen) && seen.success.priced.length + filled.length === 0
    // Nothing is accepted of it then, unless it was before.
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
