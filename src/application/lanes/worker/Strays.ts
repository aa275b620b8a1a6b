import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as BundledOps from "../../../domain/erc4337/BundledOps.js"
import * as EntryPoint from "../../../domain/erc4337/EntryPoint.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Ledger from "../../../domain/wallet/Ledger.js"
import * as EoaTransactions from "../../chain/EoaTransactions.js"
import * as Inclusions from "../../chain/Inclusions.js"
import type { KnownTransaction } from "../../ports/chain/ChainRpc.js"
import type { JournalError } from "../../ports/journal/JournalError.js"
import type { OpJournal } from "../../ports/journal/OpJournal.js"
import type { Op } from "../../ports/journal/Records.js"
import type { RecoveryJournal } from "../../ports/journal/RecoveryJournal.js"
import type { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { TransactionJournal } from "../../ports/journal/TransactionJournal.js"
import type { Lane } from "../../ports/journal/Transactions.js"
import type { OpCall } from "../../prepare/Call.js"
import type { Known } from "./LaneState.js"
import { isSameCall } from "./LookUp.js"
import { type Context, type Obstacle, obstacle } from "./rules/Context.js"

/**
 * Transactions of a lane's key that the journal does not know: after a backup was restored, or a standby was promoted that
 * lagged, the chain has some. What they did of the lane's ready ops is recorded; what they may have done is held until the
 * operator decides.
 */

export interface Journals {
  readonly opJournal: Pick<OpJournal["Service"], "publish" | "ready">
  readonly recoveryJournal: Pick<RecoveryJournal["Service"], "explain" | "hold" | "knownTo" | "openIn">
  readonly requestJournal: Pick<RequestJournal["Service"], "request">
  readonly transactionJournal: Pick<TransactionJournal["Service"], "adopt">
}

type Unopened = ReadonlyArray<OpCall>

export interface Dependencies extends Journals {
  /** The lane's transactions that are not settled are followed to their ends. */
  readonly watch: (lane: Lane) => Effect.Effect<void, JournalError>
  /** What of these requests has no ops yet, whenever it is due. */
  readonly unopened: (
    requestIds: ReadonlyArray<string>,
    chainId: bigint
  ) => Effect.Effect<ReadonlyMap<string, Unopened>, Obstacle>
}

/** Ready ops of a lane that are held against one transaction at most. */
const page = 1_024

const readyOf = ({ opJournal }: Journals, lane: Lane) =>
  Effect.gen(function* () {
    const all: Array<Op> = []
    for (let last: Op | undefined, isOver = false; !isOver; ) {
      const some = yield* opJournal.ready(lane, page, last === undefined ? {} : { after: last.opId })
      all.push(...some)
      last = some.at(-1)
      isOver = some.length < page
    }
    return all
  })

/** The ops that a transaction carries. */
const bundledIn = ({ data, to }: KnownTransaction): ReadonlyArray<UserOperation> => {
  const version = to === null ? undefined : EntryPoint.versionOf(to)
  return version === undefined ? [] : BundledOps.read(version, data)
}

/** An element, and the wallet that may have made its call already, under a nonce that is not its own. */
interface Doubtful {
  readonly requestId: string
  readonly index: number
  readonly wallet: Address
}

/** Ready ops that the transaction may have done under other nonces: whoever goes on might do them twice. */
const doneElsewhere = (
  ready: ReadonlyArray<Op>,
  bundled: ReadonlyArray<UserOperation>,
  { connection: { profile } }: Context
): ReadonlyArray<Doubtful> =>
  ready.flatMap(({ index, nonceKey, prepared, requestId, sequence, space: { wallet } }) =>
    prepared !== null &&
    prepared.kind !== "direct" &&
    bundled.some(
      (op) =>
        op.sender === wallet &&
        op.nonce !== Nonce.make(nonceKey, sequence) &&
        isSameCall(prepared.unsigned.callData, op.callData, profile.ledger)
    )
      ? [{ requestId, index, wallet }]
      : []
  )

/** The same of elements that have no ops, and no nonces: of each request the first is enough. */
const openedElsewhere = (
  unopened: ReadonlyMap<string, Unopened>,
  bundled: ReadonlyArray<UserOperation>,
  { connection: { profile } }: Context
): ReadonlyArray<Doubtful> =>
  [...unopened].flatMap(([requestId, calls]) => {
    const done = calls.find(({ data, to, value, wallet }) =>
      bundled.some(
        ({ callData, sender }) =>
          sender === wallet && Ledger.makes(callData, { target: to, value, data }, profile.ledger)
      )
    )
    return done === undefined ? [] : [{ requestId, index: done.index, wallet: done.wallet }]
  })

const isDirect = ({ prepared }: Op, { data, to, value }: KnownTransaction): boolean =>
  prepared?.kind === "direct" &&
  prepared.unsigned.to === to &&
  prepared.unsigned.value === value &&
  prepared.unsigned.data === data

/** When the oldest open request of the lane was accepted, Unix milliseconds. */
const acceptedSince = ({ recoveryJournal, requestJournal }: Journals, lane: Lane) =>
  Effect.gen(function* () {
    const [oldest] = yield* recoveryJournal.openIn(lane)
    const request = oldest === undefined ? null : yield* requestJournal.request(oldest.requestId)
    return request?.acceptedAt ?? (yield* Clock.currentTimeMillis)
  })

/** The EOA's transactions of these nonces; of a node that keeps no past states those since the first request was accepted. */
const transactionsOf = (
  journals: Journals,
  lane: Lane,
  { connection: { chain } }: Context,
  nonces: ReadonlyArray<bigint>
) =>
  Effect.catch(EoaTransactions.read(chain, lane.signer, nonces), () =>
    Effect.flatMap(acceptedSince(journals, lane), (since) =>
      Effect.map(EoaTransactions.since(chain, lane.signer, since - Inclusions.skewMillis), (all) =>
        all.filter(({ nonce }) => nonces.includes(nonce))
      )
    )
  )

export const make = ({ unopened, watch, ...journals }: Dependencies): Known => {
  const { opJournal, recoveryJournal, transactionJournal } = journals
  return {
    from: (lane, { connection: { chain } }) =>
      Effect.gen(function* () {
        const known = yield* recoveryJournal.knownTo(lane)
        if (known !== null) return known
        const since = yield* acceptedSince(journals, lane)
        const head = yield* chain.block("latest")
        const block = yield* Inclusions.olderThan(chain, head?.number ?? 0n, since)
        // A node that keeps no past states has the blocks, perhaps.
        return yield* Effect.catch(chain.transactionCount(lane.signer, block), () =>
          Effect.flatMap(
            EoaTransactions.since(chain, lane.signer, since - Inclusions.skewMillis),
            ([first]) =>
              first === undefined
                ? chain.transactionCount(lane.signer, "latest")
                : Effect.succeed(first.nonce)
          )
        )
      }).pipe(Effect.mapError(({ message }) => obstacle(message))),
    read: (lane, context, nonces) =>
      Effect.gen(function* () {
        const ready = yield* readyOf(journals, lane)
        const transactions = yield* transactionsOf(journals, lane, context, nonces)
        const open = yield* recoveryJournal.openIn(lane)
        const later = yield* unopened(
          open.map(({ requestId }) => requestId),
          lane.chainId
        )
        const read: Array<{ readonly nonce: bigint; readonly isOurs: boolean }> = []
        for (const transaction of transactions) {
          const { nonce, txHash } = transaction
          const at = ready.findIndex((op) => isDirect(op, transaction))
          const [direct] = at < 0 ? [] : ready.splice(at, 1)
          if (direct !== undefined) {
            yield* transactionJournal.adopt({
              ...lane,
              nonce,
              requestId: direct.requestId,
              access: context.access,
              transaction
            })
            yield* watch(lane)
          }
          const bundled = bundledIn(transaction)
          const doubtful = [
            ...doneElsewhere(ready, bundled, context),
            ...openedElsewhere(later, bundled, context)
          ]
          for (const { index, requestId, wallet } of doubtful)
            if (
              yield* recoveryJournal.hold(
                lane,
                requestId,
                `element ${index}: wallet ${wallet} has made the same call in transaction ${txHash}, under a nonce that is not the element's, and the journal does not know of it`
              )
            )
              yield* Effect.annotateLogs(
                Effect.logError(
                  "request held: it may be done already; run castellan requests release or drop"
                ),
                { requestId, txHash }
              )
          const isOurs = direct !== undefined || bundled.length > 0
          read.push({ nonce, isOurs })
        }
        // The journal is the older one: of the other ops, too, bytes may be on their way.
        if (read.some(({ isOurs }) => isOurs))
          yield* opJournal.publish(
            lane,
            ready.map(({ opId }) => opId)
          )
        const below = read.reduce((most, { nonce }) => (nonce >= most ? nonce + 1n : most), 0n)
        if (read.length === nonces.length) yield* recoveryJournal.explain(lane, below)
        return read
      }).pipe(Effect.mapError((error) => (error._tag === "Obstacle" ? error : obstacle(error.message))))
  }
}
