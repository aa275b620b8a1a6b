import * as Array from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Scope from "effect/Scope"
import type { FeePrices } from "../../domain/erc4337/gas/Fees.js"
import * as Replacement from "../../domain/erc4337/gas/Replacement.js"
import * as Percent from "../../domain/erc4337/Percent.js"
import * as Transaction from "../../domain/evm/Transaction.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as NonceUse from "../chain/NonceUse.js"
import * as Prices from "../chain/Prices.js"
import type { ChainClient, ChainRpcError, KnownTransaction } from "../ports/chain/ChainRpc.js"
import type { LaneAccess, TransactionRecord } from "../ports/journal/Lanes.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import type { Signer, SignerError } from "../ports/Signers.js"
import * as NonceLanes from "./NonceLanes.js"
import type { Settlement } from "./Settlement.js"
import {
  type Attend,
  type Entry,
  firstOfferMillis,
  offerMillis,
  type TransactionMonitor
} from "./TransactionMonitor.js"

const overshoot = Either.getOrElse(Percent.from(20), () => Percent.zero)

/** What a transaction costs now; null when that is above the operator's caps. */
const quote = (chain: ChainClient, profile: NetworkProfile): Effect.Effect<FeePrices | null, ChainRpcError> =>
  Effect.map(chain.fees, (market) => Either.getOrNull(Prices.quote(profile, market, overshoot)))

/** Whether a mined transaction does what this one would do. */
const isPayloadOf = ({ versions }: TransactionRecord, { data, to, value }: KnownTransaction): boolean => {
  const parsed = Transaction.parse(versions.at(-1)?.raw ?? Hex.empty)
  if (Either.isLeft(parsed)) return false
  const { transaction } = parsed.right
  return transaction.to === to && transaction.data === data && transaction.value === value
}

export interface Dependencies {
  readonly lanes: NonceLanes.NonceLanes
  readonly settlement: Settlement
  readonly signerOf: (access: LaneAccess) => Effect.Effect<Signer, SignerError>
  readonly scope: Scope.Scope
}

/**
 * Cares for transactions that are not mined, lane by lane: bytes that the node has lost are given to it again, the
 * lowest nonce is priced anew when it waits too long, a hole below it that nobody fills is filled, and work whose nonce
 * somebody else used is set free.
 */
export const make = ({ lanes, scope, settlement, signerOf }: Dependencies): Attend => {
  const busy = new Set<string>()

  /** At most once at a time for one nonce, beside the poll: a signature may take long. */
  const beside = ({ record: { chainId, nonce, signer } }: Entry, work: Effect.Effect<void, unknown>) =>
    Effect.suspend(() => {
      const name = `${chainId}:${signer}:${nonce}`
      if (busy.has(name)) return Effect.void
      busy.add(name)
      return Effect.asVoid(
        Effect.forkIn(
          work.pipe(
            Effect.catchAllCause((cause) =>
              Effect.logWarning("a waiting transaction is left as it is", cause)
            ),
            Effect.ensuring(Effect.sync(() => busy.delete(name))),
            Effect.annotateLogs({ nonce: nonce.toString(), signer })
          ),
          scope
        )
      )
    })

  /** The next look at it is later each time. */
  const putOff = (entry: Entry, now: number) => {
    entry.offerDelay = Math.min(entry.offerDelay * 2, offerMillis)
    entry.offerAt = now + entry.offerDelay
  }

  /** Gives the newest bytes to the node again; whether it took them. */
  const offer = (entry: Entry, now: number): Effect.Effect<boolean> =>
    Effect.suspend(() => {
      const newest = entry.record.versions.at(-1)
      if (newest === undefined) return Effect.succeed(true)
      return Effect.matchEffect(entry.chain.sendRawTransaction(newest.raw), {
        onSuccess: () =>
          Effect.sync(() => {
            entry.offerAt = now + offerMillis
            return true
          }),
        onFailure: (error) =>
          Effect.as(
            Effect.zipRight(
              Effect.sync(() => putOff(entry, now)),
              Effect.logDebug(`the node did not take a transaction again: ${error.message}`)
            ),
            false
          )
      })
    })

  const bump = ({ chain, profile, record: waiting }: Entry, monitor: TransactionMonitor) =>
    Effect.gen(function* () {
      const signer = yield* signerOf(waiting.access)
      const now = yield* quote(chain, profile)
      yield* lanes.exclusive(
        waiting,
        Effect.gen(function* () {
          // Another process, or a request, may have priced it anew, or seen it mined.
          const record = yield* lanes.current(waiting)
          if (record?.state !== "signed") return
          const prices = Replacement.prices({
            ...NonceLanes.standing(record.versions),
            quote: now,
            caps: profile.caps
          })
          if (Either.isLeft(prices))
            return yield* Effect.logWarning(
              "a transaction waits, and the operator's cap allows no higher price for it"
            )
          const renewed = yield* lanes.replace(record, signer, prices.right)
          yield* monitor.watch({ chain, profile, record: renewed })
          yield* Effect.logInfo("a waiting transaction was priced anew")
        })
      )
    })

  /** The chain asks for more than the newest version gives: no node takes it, and no block will. */
  const pricedOut = ({ chain, record }: Entry): Effect.Effect<boolean, ChainRpcError> =>
    Effect.map(chain.fees, ({ nextBaseFee, tip }) => {
      const newest = record.versions.at(-1)
      return newest !== undefined && newest.maxFeePerGas < (nextBaseFee ?? tip)
    })

  /** Gives a nonce that nobody uses to a transfer of nothing to the EOA itself. */
  const fill = ({ chain, profile, record }: Entry, monitor: TransactionMonitor) =>
    Effect.gen(function* () {
      const prices = yield* quote(chain, profile)
      if (prices === null) return
      const signer = yield* signerOf(record.access)
      yield* lanes.exclusive(
        record,
        Effect.gen(function* () {
          const [chainNonce, balance] = yield* Effect.all(
            [chain.transactionCount(record.signer, "pending"), chain.balance(record.signer)],
            { concurrency: "unbounded" }
          )
          if ((yield* lanes.firstFree(record, chainNonce)) >= record.nonce) return
          const filler = yield* lanes.fill({
            access: record.access,
            chain,
            chainId: record.chainId,
            signer,
            prices,
            chainNonce,
            balance
          })
          yield* monitor.watch({ chain, profile, record: filler })
          yield* Effect.logInfo("a nonce that nobody used was filled")
        })
      )
    })

  /** Positive proof of a foreign transaction, at settled depth, sets the work free. */
  const consumed = (entry: Entry, monitor: TransactionMonitor) =>
    Effect.gen(function* () {
      const { chain, profile, record: waiting } = entry
      const user = yield* NonceUse.find(chain, waiting, waiting.nonce)
      if (user === null || user.blockNumber === null) return
      const { blockNumber, txHash } = user
      if (waiting.versions.some((version) => version.txHash === txHash)) return
      const head = yield* chain.block("latest")
      if (head === null || blockNumber + BigInt(profile.settledDepth) - 1n > head.number) return
      yield* lanes.exclusive(
        waiting,
        Effect.gen(function* () {
          const record = yield* lanes.current(waiting)
          if (record === null) return yield* monitor.forget(entry)
          // A version that another process has signed, or that was signed a moment ago.
          if (record.versions.some((version) => version.txHash === txHash))
            return yield* monitor.watch({ chain, profile, record })
          if (record.direct !== null && isPayloadOf(record, user))
            return yield* Effect.logError(
              "a transaction that is not in the journal has the nonce and does the same; whether it is ours is for the operator to say"
            )
          yield* settlement.stranded(chain, record, blockNumber)
          yield* monitor.forget(entry)
          yield* Effect.annotateLogs(
            Effect.logWarning(
              "another transaction of the same key used the nonce; its work goes on under another one"
            ),
            { foreignTxHash: txHash }
          )
        })
      )
    })

  const attendLane = (
    chain: ChainClient,
    entries: ReadonlyArray<Entry>,
    monitor: TransactionMonitor,
    now: number
  ) =>
    Effect.gen(function* () {
      const [lowest] = entries
      if (lowest === undefined) return
      const { signer } = lowest.record
      const [latest, pending] = yield* Effect.all(
        [chain.transactionCount(signer, "latest"), chain.transactionCount(signer, "pending")],
        { concurrency: "unbounded" }
      )
      const open = entries.filter(({ record }) => record.nonce >= latest)
      for (const entry of entries)
        if (entry.record.nonce < latest) {
          putOff(entry, now)
          yield* beside(entry, consumed(entry, monitor))
        }
      const [next] = open
      if (next === undefined) return
      const stuck = now >= next.careAt
      // All are cared for by now, whatever comes of it: the next time is a while off.
      for (const entry of open)
        if (now >= entry.careAt) entry.careAt = now + Math.max(entry.profile.bumpAfterMillis / 4, 1_000)
      if (stuck && next.record.nonce === latest) yield* beside(next, bump(next, monitor))
      if (stuck && next.record.nonce > latest && pending < next.record.nonce)
        yield* beside(next, fill(next, monitor))
      const known = yield* Effect.forEach(
        open,
        ({ record: { versions } }) => {
          const newest = versions.at(-1)
          return newest === undefined ? Effect.succeed(null) : chain.transaction(newest.txHash)
        },
        { concurrency: "unbounded" }
      )
      // In nonce order, one after another: many nodes refuse a nonce that is ahead of what they know.
      for (const [place, entry] of open.entries())
        if (known[place] === null) {
          const taken = yield* offer(entry, now)
          const keepsOthers = entry === next && entry.record.nonce === latest
          if (!taken && !stuck && keepsOthers && (yield* pricedOut(entry)))
            yield* beside(entry, bump(entry, monitor))
        } else {
          entry.offerAt = now + offerMillis
          entry.offerDelay = firstOfferMillis
        }
    }).pipe(Effect.catchTag("ChainRpcError", (error) => Effect.logDebug(error.message)))

  return (chain, entries, monitor) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const byLane = Array.groupBy(entries, ({ record }) => `${record.chainId}:${record.signer}`)
      for (const members of Object.values(byLane)) {
        if (!members.some(({ careAt, offerAt }) => now >= offerAt || now >= careAt)) continue
        const inOrder = [...members].sort((a, b) => (a.record.nonce < b.record.nonce ? -1 : 1))
        yield* attendLane(chain, inOrder, monitor, now)
      }
    })
}
