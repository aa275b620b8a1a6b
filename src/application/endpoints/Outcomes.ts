import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type * as Answer from "../answers/Answer.js"
import * as Earlier from "../answers/Earlier.js"
import * as Ended from "../answers/Ended.js"
import * as Results from "../answers/Results.js"
import * as Connection from "../chain/Connection.js"
import * as Delays from "../failures/Delays.js"
import * as Elements from "../failures/Elements.js"
import { unavailable, unprocessable } from "../failures/Failure.js"
import type { Following } from "../lanes/worker/Lanes.js"
import { Budgets } from "../ports/Budgets.js"
import type { Receipt } from "../ports/chain/ChainRpc.js"
import type { OpJournal } from "../ports/journal/OpJournal.js"
import type { RequestJournal } from "../ports/journal/RequestJournal.js"
import type { RequestRecord } from "../ports/journal/Requests.js"
import type { Offer } from "../prepare/Offer.js"
import * as Slices from "../prepare/ops/Slices.js"
import * as Reservations from "../prepare/Reservations.js"
import type { Offered } from "./Offers.js"
import type { Submissions } from "./Submissions.js"

/** Makes the answers of requests from their journal rows and the receipts of their transactions. */

/** Time limit for reading receipts; afterwards they are queried again later, milliseconds. */
const receiptMillis = 3_000

/** The logs of the request's own ops in these receipts. */
const ownReceipts = (
  { context }: Offer,
  { landed }: Ended.Ended,
  receipts: ReadonlyArray<Receipt>
): ReadonlyArray<Receipt> => {
  if (context.kind === "direct") return receipts
  const own = new Set([...landed.values()].flatMap(({ userOpHash }) => userOpHash ?? []))
  return Results.receiptsOf(context.entryPoint, receipts, own)
}

/** A pending request's known state: its transactions, its elements' failures, and the others' delay. */
export const outcomeUnknown = (
  requestId: string,
  record: Pick<RequestRecord, "failed" | "txHashes"> | null,
  sent: ReadonlyArray<Bytes32>,
  delay: string | null,
  list: Elements.ElementList = "operations"
) => {
  const txHashes = [...(record?.txHashes ?? []), ...sent]
  const details = Elements.detailsOf(list, Elements.ofJournal(record?.failed ?? []))
  return unprocessable("outcome_unknown", [...details, ...Delays.detailsOf(delay)], {
    extra: { txHash: txHashes.at(-1) ?? "", txHashes, requestId }
  })
}

/** Ends the copies of a refused request that arrived before; fails where one is accepted. */
export const refuse =
  (requestJournal: Pick<RequestJournal["Service"], "refuse">): Submissions["refuse"] =>
  ({ idempotency, principal: { accountId }, requestId }, endpoint) =>
    idempotency == null
      ? Effect.void
      : Effect.matchEffect(requestJournal.refuse(requestId, { accountId, endpoint, key: idempotency.key }), {
          onFailure: () => unavailable(),
          onSuccess: (accepted) =>
            accepted === null ? Effect.void : outcomeUnknown(accepted, null, [], null)
        })

interface Dependencies {
  readonly opJournal: OpJournal["Service"]
  readonly budgets: Budgets["Service"]
  readonly monitor: Following["monitor"]
  readonly offerOf: (record: RequestRecord) => Effect.Effect<Offered<unknown>, unknown>
}

export const make = ({ budgets, monitor, offerOf, opJournal }: Dependencies) => {
  const withEarlier = ({ calls, context }: Offer, ended: Ended.Ended) => {
    const given = calls.flatMap((call) => (call.kind === "given" ? [call] : []))
    if (context.kind === "direct" || given.length === 0 || ended.existing.size === 0)
      return Effect.succeed(ended)
    const { accountId, chainId, connection, entryPoint } = context
    return Earlier.add(opJournal, { accountId, chainId, chain: connection.chain, entryPoint }, given, ended)
  }

  /** Null: one of its transactions is not mined, or its receipts cannot be read now. */
  const receiptsOf = (offer: Offer, requestId: string, ended: Ended.Ended) =>
    Effect.gen(function* () {
      const { context } = offer
      if (Ended.mayBeUnmined(ended) && (yield* opJournal.ofRequest(requestId)).hasUnmined) return null
      const receipts = yield* Effect.timeoutOption(
        Effect.forEach(ended.txHashes, (txHash) => monitor.receiptOf(context.connection.chain, txHash), {
          concurrency: "unbounded"
        }),
        receiptMillis
      )
      if (Option.isNone(receipts)) return null
      const all = ownReceipts(offer, ended, receipts.value)
      // A large request has too many logs.
      return offer.calls.length > Slices.size ? all.map((receipt) => ({ ...receipt, logs: [] })) : all
    })

  const finalOf = (record: RequestRecord): Effect.Effect<Answer.Final | null> =>
    Effect.gen(function* () {
      const { body, requestId } = record
      if (body === null) return null
      const offer = yield* offerOf(record)
      const ended = yield* withEarlier(offer, Ended.of(record))
      const receipts = yield* receiptsOf(offer, requestId, ended)
      if (receipts === null) return null
      yield* Effect.provideService(Reservations.giveBack(offer.context, offer.calls), Budgets, budgets)
      return yield* offer.final({ ...ended, receipts })
    }).pipe(
      Effect.catchCause((cause) => Effect.as(Effect.logDebug("final request not answered yet", cause), null))
    )

  /** Earlier outcomes for a request without accepted work. */
  const doneBefore = (offer: Offer, nothing: Ended.Ended) =>
    Effect.gen(function* () {
      const { chain } = offer.context.connection
      const ended = yield* Effect.catchTag(withEarlier(offer, nothing), "JournalError", Effect.die)
      const receipts = yield* Effect.forEach(ended.txHashes, (txHash) => chain.receipt(txHash), {
        concurrency: "unbounded"
      })
      const mined = receipts.flatMap((receipt) => receipt ?? [])
      return { ...ended, receipts: ownReceipts(offer, ended, mined) }
    }).pipe(Effect.mapError(Connection.refusal(offer.context.connection.trust)))

  return { finalOf, doneBefore }
}
