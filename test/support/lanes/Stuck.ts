import * as Effect from "effect/Effect"
import type * as NonceManager from "../../../src/application/lanes/NonceManager.js"
import type * as Settlement from "../../../src/application/lanes/Settlement.js"
import * as StuckTransactions from "../../../src/application/lanes/StuckTransactions.js"
import type { ChainClient } from "../../../src/application/ports/chain/ChainRpc.js"
import type { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import type { TransactionRecord } from "../../../src/application/ports/journal/Transactions.js"
import type { FeePrices } from "../../../src/domain/erc4337/gas/Fees.js"
import * as Make from "../journal/Make.js"
import * as Parties from "../Parties.js"
import * as Time from "../Time.js"
import * as Monitor from "./Monitor.js"

const profile = { ...Monitor.profile, pollIntervalMillis: 5_000 }

interface Options {
  /** Replies that differ from those of `Monitor.node`. */
  readonly chain?: (node: Monitor.Node) => Partial<ChainClient>
  /** The error that rejects storing a replacement. */
  readonly refusal?: JournalError
  /** The ops of a nonce used elsewhere have landed, in a block that is not deep enough. */
  readonly isShallow?: boolean
  /** The key never answers. */
  readonly isSilent?: boolean
}

/**
 * Starts the service EOA's lane at one node, with the transactions `held` in its journal. `meanwhile` runs during the
 * key's signing call.
 */
export const start = (
  held: ReadonlyArray<TransactionRecord>,
  meanwhile: (world: {
    readonly node: Monitor.Node
    readonly records: Map<bigint, TransactionRecord>
  }) => void = () => {},
  options: Options = {}
) =>
  Effect.gen(function* () {
    const node = yield* Monitor.node("operator")
    Object.assign(node, { chain: { ...node.chain, ...options.chain?.(node) } })
    const records = new Map(held.map((record) => [record.nonce, record]))
    const filled: Array<bigint> = []
    const stranded: Array<bigint> = []
    const adopted: Array<bigint> = []
    const uses: Array<Settlement.ExternalUse> = []
    const prices: Array<FeePrices> = []
    const counts = { reads: 0, signers: 0 }
    let replacements = 0
    const lanes: NonceManager.NonceManager = {
      exclusive: (_, effect) => effect,
      current: ({ nonce }) =>
        Effect.sync(() => {
          counts.reads += 1
          return records.get(nonce) ?? null
        }),
      fill: (_, { chainNonce }) =>
        Effect.sync(() => {
          filled.push(chainNonce)
          const record = Monitor.recordOf(Number(chainNonce), Monitor.service)
          records.set(chainNonce, record)
          return record
        }),
      replace: (record, _, higher) =>
        Effect.suspend(() => {
          if (options.refusal !== undefined) return Effect.fail(options.refusal)
          replacements += 1
          prices.push(higher)
          const [version] = record.versions
          if (version === undefined) return Effect.succeed(record)
          const { maxFeePerGas, maxPriorityFeePerGas } = higher
          const txHash = Make.word(0x1000 + replacements)
          const next = { ...version, txHash, maxFeePerGas, maxPriorityFeePerGas }
          const renewed = { ...record, versions: [...record.versions, next] }
          records.set(record.nonce, renewed)
          return Effect.succeed(renewed)
        })
    }
    const { monitor } = yield* Monitor.start({
      operatorNode: () => Effect.succeed(node.chain),
      attend: StuckTransactions.make({
        accessNodes: { ofOperator: () => Effect.succeed(node.chain), ofCaller: () => Effect.succeed(null) },
        transactionJournal: {
          adopt: ({ nonce }) => Effect.sync(() => void adopted.push(nonce)),
          transactionsBetween: (_, from, below) =>
            Effect.sync(() => [...records.values()].filter(({ nonce }) => nonce >= from && nonce < below))
        },
        lanes,
        settlement: {
          submitted: () => Effect.void,
          mined: () => Effect.void,
          finalised: () => Effect.void,
          vanished: () => Effect.void,
          stranded: (_, { nonce }, use) =>
            Effect.sync(() => {
              stranded.push(nonce)
              uses.push(use)
              return options.isShallow !== true
            })
        },
        signerOf: () =>
          Effect.suspend(() => {
            counts.signers += 1
            meanwhile({ node, records })
            return options.isSilent === true ? Effect.never : Effect.succeed(Parties.unasked)
          }),
        scope: yield* Effect.scope
      })
    })
    /** Watches the lane; a minute passes. */
    const watch = (
      record: TransactionRecord,
      of: { readonly chain?: ChainClient; readonly profile?: Partial<typeof profile> } = {}
    ) =>
      Effect.andThen(
        monitor.watch({ chain: of.chain ?? null, profile: { ...profile, ...of.profile }, record }),
        Time.adjust("1 minute")
      )
    /** Mines `count` blocks, one minute apart. */
    const blocks = (count = 1) =>
      Effect.repeat(
        Effect.suspend(() => {
          node.height += 1n
          return Time.adjust("1 minute")
        }),
        { times: count - 1 }
      )
    return {
      adopted,
      blocks,
      counts,
      filled,
      monitor,
      node,
      prices,
      replaced: () => replacements,
      records,
      stranded,
      uses,
      watch
    }
  })
