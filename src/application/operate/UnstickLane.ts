import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { FeePrices } from "../../domain/erc4337/gas/Fees.js"
import * as Replacement from "../../domain/erc4337/gas/Replacement.js"
import * as Percent from "../../domain/erc4337/Percent.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import * as Prices from "../chain/Prices.js"
import { Submissions } from "../endpoints/Submissions.js"
import { SignerOf } from "../keys/LaneSigners.js"
import { Claims } from "../lanes/Claims.js"
import type { Engine } from "../lanes/Engine.js"
import { Following } from "../lanes/worker/Lanes.js"
import * as Record from "../lanes/worker/Record.js"
import { ChainRpc, type ChainRpcError } from "../ports/chain/ChainRpc.js"
import type { JournalError } from "../ports/journal/JournalError.js"
import { TransactionJournal } from "../ports/journal/TransactionJournal.js"
import type { Lane, LaneAccess, TransactionRecord } from "../ports/journal/Transactions.js"
import { Networks } from "../ports/Networks.js"

/** A transaction of the lane that has new prices, or would have them. */
export interface Replaced {
  readonly nonce: bigint
  readonly oldTxHash: Bytes32 | null
  /** Null in a dry run. */
  readonly newTxHash: Bytes32 | null
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

export interface Left {
  readonly nonce: bigint
  readonly reason: string
}

export interface Unstuck {
  readonly replaced: ReadonlyArray<Replaced>
  readonly left: ReadonlyArray<Left>
}

/** Another process of the same journal works on the lane. */
export class OtherOwner extends Data.TaggedError("OtherOwner")<{ readonly message: string }> {}

export type Requirements = ChainRpc | Engine | TransactionJournal | Networks | Submissions

const overshoot = Result.getOrElse(Percent.from(20), () => Percent.zero)

const aboveCap = ({ cap, needed }: { readonly cap: bigint; readonly needed: bigint }): string =>
  `it needs ${needed} wei a gas unit; the operator's cap is ${cap}`

/** The node of a transaction, and the current price of a gas unit. */
const snapshot = Effect.fnUntraced(
  function* ({
    access,
    chainId,
    nonce,
    signer
  }: Pick<TransactionRecord, "access" | "chainId" | "nonce" | "signer">) {
    const networks = yield* Networks
    const rpcs = yield* ChainRpc
    const profile = yield* networks.profile(access.accountId, chainId)
    if (profile === null) return yield* Effect.fail("its network is not configured any more")
    if (access.rpc === null) return yield* Effect.fail("its node was sealed under another key")
    const chain = yield* rpcs.connect(
      Redacted.value(access.rpc),
      access.trust === "operator" ? access.trust : { account: access.accountId }
    )
    const [market, latest] = yield* Effect.all([chain.fees, chain.transactionCount(signer, "latest")], {
      concurrency: "unbounded"
    })
    if (nonce < latest) return yield* Effect.fail("its nonce is used on the chain already")
    const quote = yield* Effect.fromResult(
      Result.mapError(Prices.quote(profile, market, overshoot), aboveCap)
    )
    return { chain, profile, quote }
  },
  Effect.mapError((why) => (typeof why === "string" ? why : `its node: ${why.message}`))
)

const newest = ({ versions }: TransactionRecord): Bytes32 | null => versions.at(-1)?.txHash ?? null

const replace = Effect.fnUntraced(function* (
  waiting: TransactionRecord,
  dryRun: boolean
): Effect.fn.Return<Replaced, string | JournalError, Requirements> {
  const { lanes, monitor } = yield* Following
  const signerOf = yield* SignerOf
  const { chain, profile, quote } = yield* snapshot(waiting)
  const priced = ({ versions }: TransactionRecord) =>
    Result.mapError(
      Replacement.prices({ ...Record.highestOf(versions), quote, caps: profile.caps }),
      aboveCap
    )
  const toReplaced = (record: TransactionRecord, newTxHash: Bytes32 | null, prices: FeePrices): Replaced => ({
    nonce: record.nonce,
    oldTxHash: newest(record),
    newTxHash,
    maxFeePerGas: prices.maxFeePerGas,
    maxPriorityFeePerGas: prices.maxPriorityFeePerGas
  })
  if (dryRun) return toReplaced(waiting, null, yield* Effect.fromResult(priced(waiting)))
  const signer = yield* Effect.mapError(signerOf(waiting.access), ({ message }) => message)
  return yield* lanes.exclusive(
    waiting,
    Effect.gen(function* () {
      // A request, or the monitor, may have repriced it meanwhile, or seen it mined.
      const record = yield* lanes.current(waiting)
      if (record?.state !== "signed") return yield* Effect.fail("it was mined meanwhile")
      const prices = yield* Effect.fromResult(priced(record))
      const renewed = yield* Effect.mapError(lanes.replace(record, signer, prices), (error) =>
        error._tag === "JournalError" ? error : error.message
      )
      yield* monitor.watch({ chain, profile, record: renewed })
      return toReplaced(record, newest(renewed), prices)
    })
  )
})

/** Fills a nonce with an empty transfer when the journal does not know its transaction and the pool has dropped it. */
const fill = Effect.fnUntraced(function* (
  lane: Lane,
  access: LaneAccess,
  nonce: bigint,
  dryRun: boolean
): Effect.fn.Return<Replaced, string | JournalError, Requirements> {
  const { lanes, monitor } = yield* Following
  const signerOf = yield* SignerOf
  const transactionJournal = yield* TransactionJournal
  const { chain, profile, quote } = yield* snapshot({ ...lane, access, nonce })
  const toReplaced = (newTxHash: Bytes32 | null): Replaced => ({
    nonce,
    oldTxHash: null,
    newTxHash,
    maxFeePerGas: quote.maxFeePerGas,
    maxPriorityFeePerGas: quote.maxPriorityFeePerGas
  })
  const answered = Effect.mapError(({ message }: ChainRpcError) => `its node: ${message}`)
  if (nonce < (yield* answered(chain.transactionCount(lane.signer, "pending"))))
    return yield* Effect.fail("a transaction that is not the service's waits under it")
  if (dryRun) return toReplaced(null)
  const signer = yield* Effect.mapError(signerOf(access), ({ message }) => message)
  return yield* lanes.exclusive(
    lane,
    Effect.gen(function* () {
      if ((yield* transactionJournal.transactionsBetween(lane, nonce, nonce + 1n)).length > 0)
        return yield* Effect.fail("it is known meanwhile")
      const balance = yield* answered(chain.balance(lane.signer))
      const record = yield* Effect.mapError(
        lanes.fill(lane.chainId, { access, balance, chainNonce: nonce, prices: quote, signer }),
        (error) => (error._tag === "JournalError" ? error : error.message)
      )
      yield* monitor.watch({ chain, profile, record })
      return toReplaced(newest(record))
    })
  )
})

/**
 * Reprices the pending transactions of a lane at the operator's command, for any key, the service's EOA included: each
 * with its own nonce, payload and node. Fills a nonce that blocks the lane and has no transaction in the pool. Does not
 * wait for outcomes. Only the process that owns the lane may do it.
 */
export const run = Effect.fnUntraced(
  function* (lane: Lane, dryRun: boolean) {
    const claims = yield* Claims
    if (!(yield* claims.take(lane)))
      return yield* new OtherOwner({ message: "another process works on this lane: ask that one" })
    const transactionJournal = yield* TransactionJournal
    const submissions = yield* Submissions
    const replaced: Array<Replaced> = []
    const left: Array<Left> = []
    const tell = <R>(nonce: bigint, work: Effect.Effect<Replaced, string | JournalError, R>) =>
      Effect.matchEffect(work, {
        onFailure: (why) =>
          typeof why === "string"
            ? Effect.sync(() => void left.push({ nonce, reason: why }))
            : Effect.fail(why),
        onSuccess: (done) => Effect.sync(() => void replaced.push(done))
      })
    const { access, nonces } = submissions.unknown(lane) ?? { access: null, nonces: [] }
    // Start with the lowest nonce: once it is filled, the pool may have transactions for the others.
    for (const nonce of nonces.toSorted((one, other) => (one < other ? -1 : 1)))
      if (access !== null) yield* tell(nonce, fill(lane, access, nonce, dryRun))
    const filled = new Set(replaced.map(({ nonce }) => nonce))
    for (const record of yield* transactionJournal.openOf(lane))
      if (record.state === "signed" && !filled.has(record.nonce))
        yield* tell(record.nonce, replace(record, dryRun))
    return { replaced, left }
  },
  Effect.annotateLogs({ endpoint: "lanes unstick" }),
  Effect.withSpan("UnstickLane")
)
