import * as Effect from "effect/Effect"
import * as Outcome from "../../domain/erc4337/Outcome.js"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import type { OpOutcome } from "../ports/chain/Bundler.js"
import type { ChainClient, ChainRpcError, Receipt } from "../ports/chain/ChainRpc.js"
import * as LogRanges from "./LogRanges.js"
import type { BlockRange } from "./LogRefusal.js"

/** How far back an op is looked for that is not in the transaction that should have carried it. */
const lookBackBlocks = 1_024n

/** An op's outcome, and what the EntryPoint took for it from its wallet or its paymaster, wei. */
export interface Charged extends OpOutcome {
  readonly cost: bigint
}

/** What a receipt's logs of the EntryPoint say of these ops. */
export const inReceipt = (
  entryPoint: Address,
  receipt: Receipt,
  userOpHashes: ReadonlyArray<Bytes32>
): ReadonlyMap<Bytes32, Charged> => {
  const parsed = Outcome.parse(entryPoint, receipt.logs)
  const outcomes = new Map<Bytes32, Charged>()
  for (const hash of userOpHashes) {
    const outcome = parsed.get(hash)
    if (outcome === undefined) continue
    const { actualGasCost: cost, revertData, success } = outcome
    outcomes.set(hash, { success, revertData, txHash: receipt.txHash, cost })
  }
  return outcomes
}

/** An op's outcome, and the block that it is in. */
export interface Inclusion extends Charged {
  readonly blockNumber: bigint
  readonly blockHash: Bytes32
}

/** Questions that one look at a range may cost; it is halved where the node takes fewer blocks at a time. */
const bounds = { asks: 128, concurrency: 2, results: 1_024, bytes: 16_777_216 }

/** The inclusions of these ops within a range of blocks, both ends included. */
export const within = (
  chain: ChainClient,
  entryPoint: Address,
  userOpHashes: ReadonlyArray<Bytes32>,
  range: BlockRange
): Effect.Effect<ReadonlyMap<Bytes32, Inclusion>, ChainRpcError | LogRanges.TooManyAsks> =>
  Effect.gen(function* () {
    const logs = yield* LogRanges.read({
      range,
      bounds,
      bytesOf: LogRanges.bytesOf,
      beforeSplit: Effect.void,
      ask: ({ from, to }) =>
        chain.logs({
          address: [entryPoint],
          topics: [[Outcome.userOperationEvent, Outcome.userOperationRevertReason], userOpHashes],
          fromBlock: from,
          toBlock: to
        })
    }).pipe(Effect.catchTag("TooManyResults", () => new LogRanges.TooManyAsks({ span: 1n })))
    const inclusions = new Map<Bytes32, Inclusion>()
    for (const { blockHash, blockNumber, txHash } of new Map(logs.map((log) => [log.txHash, log])).values()) {
      const own = logs.filter((log) => log.txHash === txHash)
      for (const [hash, { actualGasCost: cost, revertData, success }] of Outcome.parse(entryPoint, own))
        inclusions.set(hash, { success, revertData, txHash, blockNumber, blockHash, cost })
    }
    return inclusions
  })

/** An op's outcome, and the number of the block that it is in. */
export interface Found extends OpOutcome {
  readonly blockNumber: bigint
}

/** Blocks from this one to the head, both counted. */
export const confirmationsOf = (blockNumber: bigint, head: bigint): number =>
  head < blockNumber ? 1 : Number(head - blockNumber) + 1

/**
 * The inclusions of these ops, in any transaction: an unbound op can be copied into anybody's bundle. Searches from
 * 1,024 blocks before `block` on; an op that is missing was not included since.
 */
export const find = (
  chain: ChainClient,
  entryPoint: Address,
  userOpHashes: ReadonlyArray<Bytes32>,
  block: bigint
): Effect.Effect<ReadonlyMap<Bytes32, Found>, ChainRpcError> =>
  Effect.gen(function* () {
    const outcomes = new Map<Bytes32, Found>()
    if (userOpHashes.length === 0) return outcomes
    const logs = yield* chain.logs({
      address: [entryPoint],
      topics: [[Outcome.userOperationEvent, Outcome.userOperationRevertReason], userOpHashes],
      fromBlock: block > lookBackBlocks ? block - lookBackBlocks : 0n,
      toBlock: "latest"
    })
    for (const { blockNumber, txHash } of new Map(logs.map((log) => [log.txHash, log])).values()) {
      const parsed = Outcome.parse(
        entryPoint,
        logs.filter((log) => log.txHash === txHash)
      )
      for (const [hash, { revertData, success }] of parsed)
        outcomes.set(hash, { success, revertData, txHash, blockNumber })
    }
    return outcomes
  })
