import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Outcome from "../../domain/erc4337/Outcome.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Words from "../../domain/primitives/Words.js"
import {
  type Block,
  type BlockTag,
  type ChainClient,
  ChainRpcError,
  type FoundLog,
  type LogFilter,
  type Receipt
} from "../ports/chain/ChainRpc.js"
import * as LogRanges from "./logs/LogRanges.js"
import * as LogRefusal from "./logs/LogRefusal.js"

/**
 * Finds the inclusions of ops by the EntryPoint's logs: in a receipt, in a range of blocks, or of wallets. Settlement,
 * recovery and budgets decide by the results.
 *
 * Gotchas: a node that lags returns fewer logs without an error. A miss counts only up to the block `known` or `block`
 * of the search.
 */

/** Search depth for an op that is not in the transaction that should have carried it. */
const searchedBlocks = 1_024n

const noHash = `0x${"00".repeat(32)}`

export interface OpOutcome {
  readonly success: boolean
  readonly txHash: Hex.Bytes32
  readonly revertData: Hex.Hex | null
}

/**
 * Whether the latest block shows that the receipt's block is sealed. Nodes of some chains return a receipt as soon as
 * the sequencer has executed the transaction. Its block is then the next one, with no hash yet or with a hash that it
 * will not have. Null: the latest block is above it and does not show that.
 */
export const isSealedBy = ({ blockHash, blockNumber }: Receipt, head: Block | null): boolean | null => {
  if (blockHash === noHash) return false
  if (head === null || head.number > blockNumber) return null
  return head.number === blockNumber && head.hash === blockHash
}

/** The receipt; null while the node has no such block. `head`: the node's latest block, if already known. */
export const seal = (
  chain: Pick<ChainClient, "block">,
  receipt: Receipt,
  head: Block | null = null
): Effect.Effect<Receipt | null, ChainRpcError> => {
  const known = isSealedBy(receipt, head)
  if (known !== null) return Effect.succeed(known ? receipt : null)
  return Effect.map(chain.block(receipt.blockNumber), (block) =>
    block?.hash === receipt.blockHash ? receipt : null
  )
}

/** An op's outcome, and the EntryPoint's charge to its wallet or its paymaster, wei. */
export interface Charged extends OpOutcome {
  readonly cost: bigint
}

/** Outcomes of these ops in a receipt's logs of the EntryPoint. */
export const inReceipt = (
  entryPoint: Address,
  receipt: Receipt,
  userOpHashes: ReadonlyArray<Hex.Bytes32>
): ReadonlyMap<Hex.Bytes32, Charged> => {
  const parsed = Outcome.parse(entryPoint, receipt.logs)
  const outcomes = new Map<Hex.Bytes32, Charged>()
  for (const hash of userOpHashes) {
    const outcome = parsed.get(hash)
    if (outcome === undefined) continue
    const { actualGasCost: cost, revertData, success } = outcome
    outcomes.set(hash, { success, revertData, txHash: receipt.txHash, cost })
  }
  return outcomes
}

export interface Inclusion extends Charged {
  readonly blockNumber: bigint
  readonly blockHash: Hex.Bytes32
}

/** An inclusion, with the op's sender and nonce. */
export interface IncludedOp extends Inclusion {
  readonly sender: Address
  readonly nonce: bigint
}

const seenIn = (entryPoint: Address, logs: ReadonlyArray<FoundLog>): ReadonlyMap<Hex.Bytes32, IncludedOp> => {
  const inclusions = new Map<Hex.Bytes32, IncludedOp>()
  for (const { blockHash, blockNumber, txHash } of new Map(logs.map((log) => [log.txHash, log])).values()) {
    const own = logs.filter((log) => log.txHash === txHash)
    for (const [hash, outcome] of Outcome.parse(entryPoint, own)) {
      const { actualGasCost: cost, nonce, revertData, sender, success } = outcome
      inclusions.set(hash, { success, revertData, txHash, blockNumber, blockHash, cost, nonce, sender })
    }
  }
  return inclusions
}

/** Limits of one search; the range is halved where the node takes fewer blocks per query. */
const bounds: LogRanges.Bounds = { asks: 128, concurrency: 2, results: 1_024, bytes: 16_777_216 }
/** Limits of a search whose misses would cause a second execution. */
const generous: LogRanges.Bounds = { ...bounds, asks: 1_024, concurrency: 4 }

/** The ops to search for: those with these hashes, or all of these wallets. */
type OpSelection =
  | { readonly hashes: ReadonlyArray<Hex.Bytes32> }
  | { readonly wallets: ReadonlyArray<Address> }

const filterOf = (
  entryPoint: Address,
  wanted: OpSelection,
  fromBlock: BlockTag,
  toBlock: BlockTag
): LogFilter => ({
  address: [entryPoint],
  topics: [
    [Outcome.userOperationEvent, Outcome.userOperationRevertReason],
    ...("hashes" in wanted
      ? [wanted.hashes]
      : [null, wanted.wallets.map((wallet) => Hex.unsafe32(`0x${Words.address(wallet)}`))])
  ],
  fromBlock,
  toBlock
})

/**
 * Logs from a node that has the block `known`. A lagging node returns the logs of its own blocks for any range, without
 * saying so. One request carries both queries, so that a single node behind a balancer answers them.
 */
const logsOf = (chain: ChainClient, filter: LogFilter, known: bigint) =>
  Effect.flatMap(
    Effect.all([chain.logs(filter), chain.block("latest")], { concurrency: "unbounded" }),
    ([logs, head]) =>
      head !== null && head.number >= known
        ? Effect.succeed(logs)
        : new ChainRpcError({
            reason: "unreachable",
            origin: chain.origin,
            message: `it lags behind: block ${known} is known, and it has ${head === null ? "none" : head.number}`
          })
  )

/**
 * The inclusions of these ops within a range of blocks, both ends included. A missing op is not in blocks up to
 * `known`; without `known`, a lagging node may miss the newest blocks of the range.
 */
export const within = (
  chain: ChainClient,
  entryPoint: Address,
  userOpHashes: ReadonlyArray<Hex.Bytes32>,
  range: LogRefusal.BlockRange,
  { known = null, most = bounds }: { readonly known?: bigint | null; readonly most?: LogRanges.Bounds } = {}
): Effect.Effect<ReadonlyMap<Hex.Bytes32, Inclusion>, ChainRpcError | LogRanges.TooManyAsks> =>
  wantedWithin(chain, entryPoint, { hashes: userOpHashes }, range, { known, most })

/** The inclusions of all ops of these wallets within a range of blocks, see `within`. */
export const ofWalletsWithin = (
  chain: ChainClient,
  entryPoint: Address,
  wallets: ReadonlyArray<Address>,
  range: LogRefusal.BlockRange,
  known: bigint
): Effect.Effect<ReadonlyArray<IncludedOp>, ChainRpcError | LogRanges.TooManyAsks> =>
  wallets.length === 0
    ? Effect.succeed([])
    : Effect.map(wantedWithin(chain, entryPoint, { wallets }, range, { known, most: bounds }), (found) => [
        ...found.values()
      ])

const wantedWithin = Effect.fnUntraced(function* (
  chain: ChainClient,
  entryPoint: Address,
  wanted: OpSelection,
  range: LogRefusal.BlockRange,
  { known, most }: { readonly known: bigint | null; readonly most: LogRanges.Bounds }
) {
  const logs = yield* LogRanges.read({
    range,
    bounds: most,
    bytesOf: LogRanges.bytesOf,
    beforeSplit: Effect.void,
    ask: ({ from, to }) => {
      const filter = filterOf(entryPoint, wanted, from, to)
      return known === null ? chain.logs(filter) : logsOf(chain, filter, known)
    }
  }).pipe(Effect.catchTag("TooManyResults", () => new LogRanges.TooManyAsks({ span: 1n })))
  return seenIn(entryPoint, logs)
})

export interface LandedOp extends OpOutcome {
  readonly blockNumber: bigint
}

export const settledTo = (head: bigint, { settledDepth }: { readonly settledDepth: number }): bigint =>
  BigInts.max(head - BigInt(settledDepth) + 1n, 0n)

/** Blocks from this one to the head, including both. */
export const confirmationsOf = (blockNumber: bigint, head: bigint): number =>
  head < blockNumber ? 1 : Number(head - blockNumber) + 1

/** Largest assumed difference between a chain's clock and this one. */
export const skewMillis = 600_000

/** A block number up to `block` that is older than `millis` (Unix milliseconds), or the chain's first. */
export const olderThan = Effect.fnUntraced(function* (chain: ChainClient, block: bigint, millis: number) {
  let from = block
  for (let step = searchedBlocks; from > 0n; step *= 4n) {
    const found = yield* chain.block(from)
    if (found !== null && found.timestamp * 1_000 <= millis - skewMillis) return from
    from = from > step ? from - step : 0n
  }
  return from
})

/** Searches all blocks up to the head, in as many parts as the node needs. */
const inParts = Effect.fnUntraced(function* (
  chain: ChainClient,
  entryPoint: Address,
  wanted: OpSelection,
  from: bigint,
  known: bigint
) {
  const head = yield* chain.block("latest")
  const to = head === null || head.number < known ? known : head.number
  return yield* Effect.catchTag(
    wantedWithin(chain, entryPoint, wanted, { from, to }, { known, most: generous }),
    "TooManyAsks",
    ({ span }) =>
      new ChainRpcError({
        reason: "rejected",
        origin: chain.origin,
        message: `it returns logs of about ${span} blocks at a time, and the search has ${to - from + 1n} blocks`
      })
  )
})

const search = Effect.fnUntraced(function* (
  chain: ChainClient,
  entryPoint: Address,
  wanted: OpSelection,
  block: bigint,
  since: number | null
) {
  const recent = block > searchedBlocks ? block - searchedBlocks : 0n
  const fromBlock = since === null ? recent : yield* olderThan(chain, recent, since)
  const answer = yield* Effect.result(logsOf(chain, filterOf(entryPoint, wanted, fromBlock, "latest"), block))
  if (Result.isFailure(answer)) {
    const isTooWide =
      LogRefusal.cure(answer.failure, { from: fromBlock, to: block + searchedBlocks }) !== null
    return isTooWide ? yield* inParts(chain, entryPoint, wanted, fromBlock, block) : yield* answer.failure
  }
  return seenIn(entryPoint, answer.success)
})

/**
 * The inclusions of these ops, in any transaction: any bundler can copy an unbound op. Searches from 1,024 blocks
 * before `block`, and from before `since` (Unix milliseconds) where it is given. An op that is missing was not included
 * from there up to `block` at least. Fails when the node does not know `block`.
 */
export const find = (
  chain: ChainClient,
  entryPoint: Address,
  userOpHashes: ReadonlyArray<Hex.Bytes32>,
  block: bigint,
  since: number | null = null
): Effect.Effect<ReadonlyMap<Hex.Bytes32, LandedOp>, ChainRpcError> =>
  userOpHashes.length === 0
    ? Effect.succeed(new Map())
    : search(chain, entryPoint, { hashes: userOpHashes }, block, since)

/** The inclusions of all ops of these wallets, by any author and with any nonce, see `find`. */
export const ofWallets = (
  chain: ChainClient,
  entryPoint: Address,
  wallets: ReadonlyArray<Address>,
  block: bigint,
  since: number
): Effect.Effect<ReadonlyMap<Hex.Bytes32, IncludedOp>, ChainRpcError> =>
  search(chain, entryPoint, { wallets }, block, since)
