import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import type { Address } from "../../domain/evm/Address.js"
import type { Hex } from "../../domain/evm/Hex.js"
import type { FeePrices } from "../../domain/op/Fees.js"
import type { Caller } from "../Caller.js"
import { type Failure, unprocessable } from "../Failure.js"
import type { Receipt } from "../ports/ChainRpc.js"
import { Journal, type LaneAccess, type RequestRecord } from "../ports/Journal.js"
import type { Signer } from "../ports/Signers.js"
import * as Acceptance from "./Acceptance.js"
import { type Connection, refusal } from "./Connection.js"
import { CurrentRequest } from "./CurrentRequest.js"
import { Engine } from "./Engine.js"
import type { AnsweredElsewhere } from "./Requests.js"
import * as Turn from "./Turn.js"

/** A transaction of the EOA itself, ready to be accepted. */
export interface Prepared {
  readonly to: Address
  readonly data: Hex
  /** Wei. */
  readonly value: bigint
  readonly gasLimit: bigint
  readonly prices: FeePrices
  /** Wei that layer 1 may ask for its data. */
  readonly l1Fee: bigint
  /** What its call returns on the latest state. */
  readonly returned: Hex
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
  /** Null: it was prepared in an earlier life. */
  readonly returned: Hex | null
}

/**
 * Brings one transaction of the EOA onto the chain, exactly once: accepted, signed under a nonce of the lane, watched. When
 * somebody else's transaction has used that nonce for good, it goes again under the next one.
 */
export const run = <R>(
  plan: Plan<R>
): Effect.Effect<Mined, Failure | AnsweredElsewhere, R | Engine | Journal | CurrentRequest> =>
  Effect.gen(function* () {
    const { access, caller, connection, endpoint, signer } = plan
    const { chain, profile, trust } = connection
    const { requestId } = caller
    const { accountId } = caller.principal
    const { chainId } = profile
    const lane = { chainId, signer: signer.address }
    const journal = yield* Journal
    const current = yield* CurrentRequest
    const engine = yield* Engine
    const { lanes, releases, watcher } = engine
    let returned: Hex | null = null

    const load: Effect.Effect<RequestRecord> = Effect.orDie(
      Effect.filterOrDieMessage(
        journal.request(requestId),
        (found): found is RequestRecord => found !== null,
        "the journal has lost an accepted request"
      )
    )

    const send = Effect.gen(function* () {
      const prepared = yield* plan.prepare
      yield* Acceptance.withoutOps(caller, endpoint, profile)
      returned = prepared.returned
      yield* Turn.take(
        engine,
        lane,
        profile.maxInFlight,
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
              chainNonce: BigInts.max(pending, latest),
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
                        message: `insufficient funds: ${signer.address} lacks ${missing} wei`,
                        missing: missing.toString()
                      }
                    ])
                  ),
                SignerError: ({ message }) =>
                  Effect.fail(unprocessable("signer_unavailable", [{ path: "settings.signer", message }]))
              })
            )
          yield* watcher.watch({ chain, profile, record })
        })
      )
    })

    /** Its mined transaction; null while there is none that could still be mined. */
    const outcome = releases.until(
      requestId,
      Effect.gen(function* () {
        const newest = (yield* load).txHashes.at(-1)
        if (newest === undefined) return { mined: null }
        const record = yield* Effect.orDie(journal.findTransaction(accountId, chainId, newest))
        return record === null || record.state === "signed" ? null : { mined: record.mined }
      })
    )

    let mined = current.resumed ? (yield* outcome).mined : null
    while (mined === null) {
      yield* Effect.catchAll(send, (failure) =>
        current.accepted() ? Effect.zipRight(current.conclude, Effect.fail(failure)) : Effect.fail(failure)
      )
      mined = (yield* outcome).mined
    }
    const receipt = yield* watcher.receiptOf(chain, mined.txHash)
    yield* current.conclude
    return { receipt, returned }
  })
