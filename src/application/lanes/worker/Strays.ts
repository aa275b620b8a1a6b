import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as BundledOps from "../../../domain/erc4337/BundledOps.js"
import * as EntryPoint from "../../../domain/erc4337/EntryPoint.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
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
import { type Context, type Obstacle, type OpContext, obstacle } from "./rules/Context.js"

/**
 * Transactions of a lane's key that the journal does not know: after a backup was restored, or a standby was promoted that
 * lagged, the chain has some. What they did of the lane's ready ops is recorded; what they may have done is held until the
 * operator decides.
 */

export interface Journals {
  readonly opJournal: Pick<OpJournal["Service"], "publish" | "ready">
  readonly recoveryJournal: Pick<
    RecoveryJournal["Service"],
    "explain" | "hold" | "known" | "knownTo" | "openIn" | "provenAt"
  >
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
const bundledIn = ({ data, to }: KnownTransaction): ReadonlyArray<UserOperation.UserOperation> => {
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
  bundled: ReadonlyArray<UserOperation.UserOperation>,
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
  bundled: ReadonlyArray<UserOperation.UserOperation>,
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

/** Wallets that one question for logs names. */
const walletsAtOnce = 200

/** Holds the requests; names them in the log. */
const hold = (
  { recoveryJournal }: Journals,
  lane: Lane,
  txHash: Hex.Bytes32,
  doubtful: ReadonlyArray<Doubtful>,
  what: string
) =>
  Effect.forEach(
    doubtful,
    ({ index, requestId, wallet }) =>
      Effect.flatMap(
        recoveryJournal.hold(
          lane,
          requestId,
          `element ${index}: wallet ${wallet} has ${what} in transaction ${txHash}, and the journal does not know of it`
        ),
        (isHeld) =>
          isHeld
            ? Effect.annotateLogs(
                Effect.logError(
                  "request held: it may be done already; run castellan requests release or drop"
                ),
                { requestId, txHash }
              )
            : Effect.void
      ),
    { discard: true }
  )

const sameCall = "made the same call, under a nonce that is not the element's,"

/** Ops of these wallets on the chain that the journal does not know, by their transactions. */
const unknownOf = (
  { recoveryJournal }: Journals,
  lane: Lane,
  { connection: { chain }, entryPoint }: OpContext,
  wallets: ReadonlyArray<Address>,
  since: number
) =>
  Effect.gen(function* () {
    const head = yield* chain.block("latest")
    const seen = new Map<Hex.Bytes32, Inclusions.Seen>()
    for (let from = 0; from < wallets.length; from += walletsAtOnce) {
      const some = wallets.slice(from, from + walletsAtOnce)
      const own = yield* Inclusions.ofWallets(chain, entryPoint, some, head?.number ?? 0n, since)
      for (const [userOpHash, each] of own) seen.set(userOpHash, each)
    }
    const known = yield* recoveryJournal.known(lane.chainId, entryPoint, [...seen.keys()])
    return Map.groupBy(
      [...seen].filter(([userOpHash]) => !known.has(userOpHash)),
      ([, { txHash }]) => txHash
    )
  })

export const make = ({ unopened, watch, ...journals }: Dependencies): Known => {
  const { opJournal, recoveryJournal, transactionJournal } = journals
  return {
    provenAt: recoveryJournal.provenAt,
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
          yield* hold(journals, lane, txHash, doubtful, sameCall)
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
      }).pipe(Effect.mapError((error) => (error._tag === "Obstacle" ? error : obstacle(error.message)))),
    holdDone: (lane, context) =>
      Effect.gen(function* () {
        const { access, connection, entryPoint, version } = context
        const ready = (yield* readyOf(journals, lane)).filter(
          ({ accountId, space }) => accountId === access.accountId && space.entryPoint === entryPoint
        )
        const open = yield* recoveryJournal.openIn(lane)
        const later = yield* unopened(
          open.map(({ requestId }) => requestId),
          lane.chainId
        )
        const calls = [...later].flatMap(([requestId, own]) =>
          own.map(({ index, wallet }): Doubtful => ({ requestId, index, wallet }))
        )
        const waiting = ready.map(
          ({ index, requestId, space: { wallet } }): Doubtful => ({ requestId, index, wallet })
        )
        const wallets = new Set([...waiting, ...calls].map(({ wallet }) => wallet))
        if (wallets.size === 0) return
        const since = yield* acceptedSince(journals, lane)
        const unknown = yield* unknownOf(journals, lane, context, [...wallets], since)
        for (const [txHash, seen] of unknown) {
          const transaction = yield* connection.chain.transaction(txHash)
          const byHash = new Map(
            BundledOps.read(version, transaction?.data ?? Hex.empty).map((op) => [
              UserOperation.hash(version, entryPoint, lane.chainId, op),
              op
            ])
          )
          const bundled = seen.flatMap(([userOpHash]) => byHash.get(userOpHash) ?? [])
          const done = [
            ...doneElsewhere(ready, bundled, context),
            ...openedElsewhere(later, bundled, context)
          ]
          yield* hold(journals, lane, txHash, done, sameCall)
          // Whatever their calls were: the calldata of the transaction does not show them.
          const hidden = new Set(
            seen.flatMap(([userOpHash, { sender }]) => (byHash.has(userOpHash) ? [] : [sender]))
          )
          const doubtful = [...waiting, ...calls].filter(({ wallet }) => hidden.has(wallet))
          yield* hold(journals, lane, txHash, doubtful, "an op that the node does not show")
        }
      }).pipe(Effect.mapError((error) => (error._tag === "Obstacle" ? error : obstacle(error.message))))
  }
}
