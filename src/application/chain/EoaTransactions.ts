import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import type { Address } from "../../domain/primitives/Address.js"
import { type ChainClient, ChainRpcError, type KnownTransaction } from "../ports/chain/ChainRpc.js"

/** Finds mined transactions of an EOA, which no method of a node lists. */

/** Most transactions in one search. */
const most = 1_024
/** Most blocks read whole from a node that does not serve the EOA's nonce at past blocks. */
const mostBlocks = 256n
const atOnce = 16n

const missing = (chain: ChainClient, count: number) =>
  new ChainRpcError({
    reason: "rejected",
    origin: chain.origin,
    message: `it does not give ${count} of the EOA's mined transactions`
  })

/** Reads whole blocks backwards from the head until all nonces are found. */
const fromBlocks = Effect.fnUntraced(function* (
  chain: ChainClient,
  eoa: Address,
  nonces: ReadonlySet<bigint>,
  head: bigint
) {
  const found = new Map<bigint, KnownTransaction>()
  const last = head > mostBlocks ? head - mostBlocks : 0n
  for (let to = head; to >= last && found.size < nonces.size; to -= atOnce) {
    const blocks = Array.from({ length: Number(atOnce) }, (_, back) => to - BigInt(back)).filter(
      (block) => block >= last
    )
    const read = yield* Effect.forEach(blocks, (block) => chain.transactionsIn(block), {
      concurrency: "unbounded"
    })
    for (const each of read.flatMap((transactions) => transactions ?? []))
      if (each.from === eoa && nonces.has(each.nonce)) found.set(each.nonce, each)
  }
  return found
})

/** Bisects the blocks where the EOA's nonce grows, down to the blocks with its transactions. */
const byCounts = Effect.fnUntraced(function* (
  chain: ChainClient,
  eoa: Address,
  nonces: ReadonlySet<bigint>,
  head: { readonly block: bigint; readonly count: bigint }
) {
  const found = new Map<bigint, KnownTransaction>()
  const lowest = [...nonces].reduce(BigInts.min)
  const countAt = (block: bigint) => (block < 0n ? Effect.succeed(0n) : chain.transactionCount(eoa, block))
  const below = { block: head.block, count: head.count }
  for (let back = 1n; below.count > lowest && below.block >= 0n; back *= 4n) {
    below.block = head.block >= back ? head.block - back : -1n
    below.count = yield* countAt(below.block)
  }
  /** Searches the blocks above `from` up to `to`, across which the EOA's nonce grows from one count to the other. */
  const within = (
    from: { readonly block: bigint; readonly count: bigint },
    to: { readonly block: bigint; readonly count: bigint }
  ): Effect.Effect<void, ChainRpcError> =>
    Effect.gen(function* () {
      if (![...nonces].some((nonce) => nonce >= from.count && nonce < to.count)) return
      // Every one of these blocks may have a transaction, so bisecting would read all of them anyway.
      if (to.block - from.block <= BigInts.min(to.count - from.count, atOnce)) {
        const blocks = Array.from(
          { length: Number(to.block - from.block) },
          (_, back) => to.block - BigInt(back)
        )
        const read = yield* Effect.forEach(blocks, (block) => chain.transactionsIn(block), {
          concurrency: "unbounded"
        })
        for (const each of read.flatMap((transactions) => transactions ?? []))
          if (each.from === eoa && nonces.has(each.nonce)) found.set(each.nonce, each)
        return
      }
      const block = (from.block + to.block) / 2n
      const middle = { block, count: yield* countAt(block) }
      yield* Effect.all([within(from, middle), within(middle, to)], { concurrency: "unbounded" })
    })
  yield* within(below, head)
  return found
})

/** Mined transactions of the EOA with these nonces, as far as the node shows them: at most 1,024, of the latest nonces. */
export const find = Effect.fnUntraced(function* (
  chain: ChainClient,
  eoa: Address,
  nonces: ReadonlyArray<bigint>
) {
  if (nonces.length === 0) return []
  const wanted = new Set([...nonces].sort((one, other) => (one < other ? 1 : -1)).slice(0, most))
  const head = yield* chain.block("latest")
  if (head === null) return yield* missing(chain, wanted.size)
  const count = yield* chain.transactionCount(eoa, head.number)
  const found = yield* Effect.catchIf(
    byCounts(chain, eoa, wanted, { block: head.number, count }),
    ({ reason }) => reason === "rejected" || reason === "unsupported",
    // The node keeps no historical state; most nodes keep it only for a short time.
    () => fromBlocks(chain, eoa, wanted, head.number)
  )
  return [...found.values()].sort((one, other) => (one.nonce < other.nonce ? -1 : 1))
})

/**
 * The EOA's mined transactions with these nonces, in order. All nonces must be below its nonce at the latest block.
 * Fails unless the node returns each of them.
 */
export const read = Effect.fnUntraced(function* (...of: Parameters<typeof find>) {
  const found = yield* find(...of)
  const [chain, , nonces] = of
  const count = new Set(nonces).size - found.length
  return count === 0 ? found : yield* missing(chain, count)
})

/**
 * The mined transaction that used a nonce of the EOA. This is positive proof, while a missing receipt would only be a
 * hint (nodes of a balancer lag behind each other). Null while the chain's latest state has not used the nonce.
 */
export const userOf = Effect.fnUntraced(function* (chain: ChainClient, eoa: Address, nonce: bigint) {
  if ((yield* chain.transactionCount(eoa, "latest")) <= nonce) return null
  const [user = null] = yield* read(chain, eoa, [nonce])
  return user
})

/** Most blocks read whole. */
const mostWhole = 1_024n

/**
 * The EOA's transactions in blocks since `millis` (Unix milliseconds), in the order of their nonces; for nodes that do
 * not serve its past nonces.
 */
export const since = Effect.fnUntraced(function* (
  chain: ChainClient,
  eoa: Address,
  millis: number
): Effect.fn.Return<ReadonlyArray<KnownTransaction>, ChainRpcError> {
  const head = yield* chain.block("latest")
  const found: Array<KnownTransaction> = []
  for (let to = head?.number ?? -1n; to >= 0n; to -= atOnce) {
    if ((head?.number ?? 0n) - to >= mostWhole)
      return yield* new ChainRpcError({
        reason: "rejected",
        origin: chain.origin,
        message:
          "it does not report the EOA's past nonces, and has too many blocks since then to read all of them"
      })
    const lowest = BigInts.max(to - atOnce + 1n, 0n)
    const blocks = Array.from({ length: Number(to - lowest) + 1 }, (_, above) => lowest + BigInt(above))
    const [first, read] = yield* Effect.all(
      [
        chain.block(lowest),
        Effect.forEach(blocks, (block) => chain.transactionsIn(block), { concurrency: "unbounded" })
      ],
      { concurrency: "unbounded" }
    )
    for (const transactions of read) {
      if (transactions === null)
        return yield* new ChainRpcError({
          reason: "unreachable",
          origin: chain.origin,
          message: "it lags behind: it does not have its own latest blocks"
        })
      found.push(...transactions.filter(({ from }) => from === eoa))
    }
    if (first !== null && first.timestamp * 1_000 < millis) break
  }
  const sorted = found.sort((one, other) => (one.nonce < other.nonce ? -1 : 1))
  const [first] = sorted
  if (first === undefined) return sorted
  // A transaction that the node omits leaves a gap.
  const count = yield* chain.transactionCount(eoa, head?.number ?? "latest")
  const gaps = Number(count - first.nonce) - sorted.length
  return gaps > 0 ? yield* missing(chain, gaps) : sorted
})
