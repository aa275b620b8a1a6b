import * as BigInts from "effect/BigInt"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { FeePrices } from "../../domain/erc4337/gas/Fees.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import { type Connection, refusal } from "../chain/Connection.js"
import * as EoaNonces from "../chain/EoaNonces.js"
import * as Keys from "../keys/Keys.js"
import { ChainRpcError, type Receipt } from "../ports/chain/ChainRpc.js"
import { ClockTrust } from "../ports/clock/ClockTrust.js"
import { RequestJournal } from "../ports/journal/RequestJournal.js"
import type { RequestRecord } from "../ports/journal/Requests.js"
import { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import type { LaneAccess } from "../ports/journal/Transactions.js"
import type { Signer } from "../ports/Signers.js"
import type { Caller } from "../request/Caller.js"
import { type AnsweredElsewhere, CurrentRequest } from "../request/CurrentRequest.js"
import * as Delays from "../request/Delays.js"
import { type Failure, unprocessable } from "../request/Failure.js"
import * as Reasons from "../request/Reasons.js"
import * as LaneSlot from "./LaneSlot.js"
import { NonceManager } from "./NonceManager.js"
import * as Acceptance from "./requests/Acceptance.js"
import { WakeUps } from "./requests/WakeUps.js"
import { TransactionMonitor } from "./TransactionMonitor.js"

/** A transaction of the EOA itself, ready to be accepted. */
export interface Prepared {
  readonly to: Address
  readonly data: Hex.Hex
  /** Wei. */
  readonly value: bigint
  readonly gasLimit: bigint
  readonly prices: FeePrices
  /** Wei that layer 1 may ask for its data. */
  readonly l1Fee: bigint
  /** What its call returns on the latest state. */
  readonly returned: Hex.Hex
}

export interface Plan<R> {
  readonly caller: Caller
  readonly endpoint: string
  readonly connection: Connection
  readonly signer: Signer
  readonly access: LaneAccess
  readonly prepare: Effect.Effect<Prepared, Failure, R>
}

export interface Mined {
  readonly receipt: Receipt
  /** What its call returned when it was last prepared; null: more than is kept. */
  readonly returned: Hex.Hex | null
}

/** Longer return values are not kept. */
const maxReturned = 65_536

/** What passes is no end of an accepted request: its work is tried again until it expires. */
const isPassing = (failure: Failure | AnsweredElsewhere): boolean =>
  failure._tag === "AnsweredElsewhere" || Delays.ofFailure(failure) !== null

/** A node whose nonces of the EOA make no sense. */
const impossible = ({ chain: { origin }, trust }: Connection): Failure =>
  refusal(trust)(
    new ChainRpcError({ reason: "rejected", origin, message: "it gives a nonce of the EOA that cannot be" })
  )

const kept = (returned: Hex.Hex): string | null => (Hex.size(returned) > maxReturned ? null : returned)

/**
 * Brings one transaction of the EOA onto the chain, exactly once: accepted, signed under a nonce of the lane, watched.
 * When somebody else's transaction has used that nonce for good, it goes again under the next one.
 */
export const run = <R>(
  plan: Plan<R>
): Effect.Effect<
  Mined,
  Failure | AnsweredElsewhere,
  | R
  | NonceManager
  | WakeUps
  | LaneSlot.LaneSlots
  | TransactionMonitor
  | RequestJournal
  | TransactionJournal
  | CurrentRequest
> =>
  Effect.gen(function* () {
    const { access, caller, connection, endpoint, signer } = plan
    const { chain, profile, trust } = connection
    const { requestId } = caller
    const { accountId } = caller.principal
    const { chainId } = profile
    const requestJournal = yield* RequestJournal
    const transactionJournal = yield* TransactionJournal
    const current = yield* CurrentRequest
    const lanes = yield* NonceManager
    const wakeUps = yield* WakeUps
    const slots = yield* LaneSlot.LaneSlots
    const monitor = yield* TransactionMonitor

    const load: Effect.Effect<RequestRecord> = Effect.orDie(
      Effect.filterOrElse(
        requestJournal.request(requestId),
        (found): found is RequestRecord => found !== null,
        () => Effect.die(new Error("the journal has lost an accepted request"))
      )
    )

    const send = Effect.gen(function* () {
      yield* current.work
      const prepared = yield* plan.prepare
      yield* current.rest
      const note = kept(prepared.returned)
      // It goes again, perhaps from a state on which it returns something else.
      if (current.accepted()) yield* Effect.orDie(requestJournal.note(requestId, note))
      else yield* Acceptance.withoutOps(caller, endpoint, { profile, access, signer: signer.address, note })
      const lane = { chainId, signer: signer.address }
      // What keeps the lane full may be stuck at nodes of others, or of the past.
      yield* monitor.useNode(lane, access, chain)
      yield* slots.take(
        {
          ...lane,
          route: "direct",
          below: profile.maxInFlight,
          arrival: slots.arrive(),
          confirmedNonce: LaneSlot.confirmedNonce(chain, signer.address, profile)
        },
        (drainedTo) =>
          Effect.gen(function* () {
            const [latest, pending, balance] = yield* Effect.mapError(
              Effect.all(
                [
                  chain.transactionCount(signer.address, "latest"),
                  chain.transactionCount(signer.address, "pending"),
                  chain.balance(signer.address)
                ],
                { concurrency: "unbounded" }
              ),
              refusal(trust)
            )
            const nonces = { latest, next: BigInts.max(pending, latest) }
            if (!EoaNonces.canBe(nonces)) return yield* Effect.fail(impossible(connection))
            const record = yield* lanes
              .sign({
                access,
                ops: [],
                direct: requestId,
                chain,
                chainId,
                signer,
                to: prepared.to,
                data: prepared.data,
                value: prepared.value,
                gasLimit: prepared.gasLimit,
                prices: prepared.prices,
                l1Fee: prepared.l1Fee,
                chainNonce: nonces.next,
                drainedTo,
                balance
              })
              .pipe(
                Effect.catchTags({
                  JournalError: (error) => Effect.die(error),
                  LaneFunds: ({ missing }) =>
                    Effect.fail(
                      unprocessable("insufficient_funds", [
                        {
                          path: "settings.signer",
                          message: Reasons.text("signerFunds", { signer: signer.address, missing }),
                          missing: missing.toString()
                        }
                      ])
                    ),
                  SignerError: (error) => Effect.fail(Keys.refusal("settings.signer")(error))
                })
              )
            yield* monitor.watch({ chain, profile, record })
          })
      )
    })

    /** Its mined transaction; null while there is none that could still be mined. */
    const outcome = wakeUps.until(
      requestId,
      Effect.gen(function* () {
        const newest = (yield* load).txHashes.at(-1)
        if (newest === undefined) return { mined: null }
        const record = yield* Effect.orDie(transactionJournal.findTransaction(accountId, chainId, newest))
        return record === null || record.state === "signed" ? null : { mined: record.mined }
      })
    )

    /** Something was signed for it long ago, whose nonce somebody else's has used: it expires as what was never signed. */
    const isOverdue = Effect.gen(function* () {
      const newest = (yield* load).txHashes.at(-1)
      const record =
        newest === undefined
          ? null
          : yield* Effect.orDie(transactionJournal.findTransaction(accountId, chainId, newest))
      return (
        record !== null &&
        (yield* (yield* ClockTrust).mayExpire) &&
        (yield* Clock.currentTimeMillis) > record.signedAt + profile.requestExpiryMillis
      )
    })

    if (current.resumed) yield* current.rest
    let mined = current.resumed ? (yield* outcome).mined : null
    while (mined === null) {
      yield* Effect.catch(send, (failure) =>
        Effect.gen(function* () {
          const isOver = current.accepted() && (!isPassing(failure) || (yield* isOverdue))
          if (isOver) yield* current.conclude
          return yield* failure
        })
      )
      mined = (yield* outcome).mined
    }
    const receipt = yield* monitor.receiptOf(chain, mined.txHash)
    yield* current.conclude
    const { note } = yield* load
    return { receipt, returned: note === null ? null : Hex.unsafe(note) }
  })
