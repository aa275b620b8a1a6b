import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Bytes32, Hex } from "../../domain/evm/Hex.js"
import type { ChainClient, Receipt } from "../ports/ChainRpc.js"

/** A transaction that left, or perhaps left. */
export interface Watched<A> {
  readonly chain: ChainClient
  readonly txHash: Bytes32
  readonly raw: Hex
  readonly confirmations: number
  readonly pollIntervalMillis: number
  /** Settles the transaction when it is mined deep enough, before any waiter hears of it; tried again when it fails. */
  readonly onMined: (receipt: Receipt) => Effect.Effect<A, unknown>
}

/** A mined transaction and what its settlement found. */
export interface Mined<A> {
  readonly receipt: Receipt
  readonly settled: A
}

interface Entry {
  readonly watched: Omit<Watched<unknown>, "onMined">
  readonly onMined: (receipt: Receipt) => Effect.Effect<void, unknown>
  /** When the node was last given the bytes, milliseconds. */
  offered: number
}

export interface Watcher {
  /** Watches until the transaction is mined and settled, however long that takes. */
  readonly watch: <A>(watched: Watched<A>) => Effect.Effect<Deferred.Deferred<Mined<A>>>
}

/** A node that has lost the transaction is given the same bytes again, this often at most. */
const reofferMillis = 10_000

/** One poll asks a node for at most this many receipts, in turn. */
const maxReceiptsPerPoll = 256

/**
 * Watches transactions: one loop per node serves all waiters, and asks for all receipts in one batch. The receipt
 * itself is polled, never only new heads: a chain that mines on demand may not make another block.
 */
export const make: Effect.Effect<Watcher, never, Scope.Scope> = Effect.map(Effect.scope, (scope) => {
  const nodes = new Map<ChainClient, Map<Bytes32, Entry>>()

  const settle = (entries: Map<Bytes32, Entry>, entry: Entry, receipt: Receipt) =>
    Effect.gen(function* () {
      yield* entry.onMined(receipt)
      entries.delete(entry.watched.txHash)
    }).pipe(
      Effect.catchAllCause((cause) =>
        Effect.logError("a mined transaction could not be settled and is tried again", cause)
      ),
      Effect.annotateLogs({ txHash: entry.watched.txHash })
    )

  const reoffer = (chain: ChainClient, entry: Entry) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      if (now - entry.offered < reofferMillis) return
      entry.offered = now
      if ((yield* chain.transaction(entry.watched.txHash)) !== null) return
      yield* chain.sendRawTransaction(entry.watched.raw)
    }).pipe(Effect.catchTag("ChainRpcError", (error) => Effect.logDebug(error.message)))

  const poll = (chain: ChainClient, entries: Map<Bytes32, Entry>) =>
    Effect.gen(function* () {
      const asked = [...entries.values()].slice(0, maxReceiptsPerPoll)
      const deep = asked.some((entry) => entry.watched.confirmations > 1)
      const [head, receipts] = yield* Effect.all(
        [
          deep ? chain.block("latest") : Effect.succeed(null),
          // One that fails is asked for again, and holds up none of the others.
          Effect.forEach(
            asked,
            (entry) => Effect.orElseSucceed(chain.receipt(entry.watched.txHash), () => null),
            {
              concurrency: "unbounded"
            }
          )
        ],
        { concurrency: "unbounded" }
      )
      yield* Effect.forEach(
        asked,
        (entry, index) => {
          const receipt = receipts[index] ?? null
          const depth = BigInt(entry.watched.confirmations) - 1n
          if (receipt === null) return reoffer(chain, entry)
          if (depth === 0n || (head !== null && receipt.blockNumber + depth <= head.number))
            return settle(entries, entry, receipt)
          return Effect.void
        },
        { concurrency: "unbounded", discard: true }
      )
      // To the end of the queue: transactions that never are mined shall not keep others from their turn.
      for (const entry of asked)
        if (entries.delete(entry.watched.txHash)) entries.set(entry.watched.txHash, entry)
    }).pipe(
      Effect.catchTag("ChainRpcError", (error) => Effect.logDebug(error.message)),
      // The loop serves everybody who waits at this node: it ends with the process only.
      Effect.catchAllDefect((defect) => Effect.logError("a look at watched transactions crashed", defect))
    )

  const loop = (chain: ChainClient, entries: Map<Bytes32, Entry>): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (entries.size === 0) {
        nodes.delete(chain)
        return Effect.void
      }
      const interval = Math.min(...[...entries.values()].map((entry) => entry.watched.pollIntervalMillis))
      return Effect.zipRight(
        poll(chain, entries),
        Effect.suspend(() =>
          Effect.zipRight(entries.size === 0 ? Effect.void : Effect.sleep(interval), loop(chain, entries))
        )
      )
    })

  return {
    watch: <A>({ onMined, ...watched }: Watched<A>) =>
      Effect.gen(function* () {
        const mined = yield* Deferred.make<Mined<A>>()
        const offered = yield* Clock.currentTimeMillis
        const known = nodes.get(watched.chain)
        const entries = known ?? new Map<Bytes32, Entry>()
        entries.set(watched.txHash, {
          watched,
          offered,
          onMined: (receipt) =>
            Effect.flatMap(onMined(receipt), (settled) => Deferred.succeed(mined, { receipt, settled }))
        })
        if (known === undefined) {
          nodes.set(watched.chain, entries)
          yield* Effect.forkIn(Effect.interruptible(loop(watched.chain, entries)), scope)
        }
        return mined
      })
  }
})
