import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as InFlight from "../../../src/application/lanes/InFlight.js"
import type { AccessNodes } from "../../../src/application/lanes/monitor/AccessNodes.js"
import * as TransactionMonitor from "../../../src/application/lanes/TransactionMonitor.js"
import {
  type ChainClient,
  ChainRpcError,
  type KnownTransaction,
  type Receipt
} from "../../../src/application/ports/chain/ChainRpc.js"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import type { LaneAccess, TransactionRecord } from "../../../src/application/ports/journal/Transactions.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Make from "../journal/Make.js"
import * as MemoryRpc from "../memory/ChainRpc.js"

export const profile = NetworkProfile.make({
  chainId: Make.chainId,
  pollIntervalMillis: 1_000,
  bumpAfterMillis: 30_000
})

export const callers = Make.access({ rpc: Redacted.make("http://caller") })
export const service = Make.access({
  key: "serviceEoa",
  rpc: Redacted.make("http://former"),
  trust: "operator"
})

/** A signed transaction of the lane; its bytes identify the nonce. */
export const recordOf = (
  nonce: number,
  access: LaneAccess,
  over: Partial<TransactionRecord> = {}
): TransactionRecord => ({
  ...Make.lane,
  nonce: BigInt(nonce),
  access,
  state: "signed",
  versions: [
    {
      txHash: Make.word(0x100 + nonce),
      raw: rawOf(nonce),
      maxFeePerGas: 10n ** 10n,
      maxPriorityFeePerGas: 1n
    }
  ],
  signedAt: 0,
  ops: [],
  direct: null,
  mined: null,
  ...over
})

export const rawOf = (nonce: number): Hex.Hex => Hex.unsafe(`0x02${nonce.toString(16).padStart(4, "0")}`)

const pendingOf = (nonce: number): KnownTransaction => ({
  txHash: Make.word(0x100 + nonce),
  blockNumber: null,
  from: Make.lane.signer,
  to: null,
  nonce: BigInt(nonce),
  data: Hex.empty,
  value: 0n,
  gasLimit: 21_000n,
  maxFeePerGas: 10n ** 10n,
  maxPriorityFeePerGas: 1n
})

export const receiptOf = (txHash: Hex.Bytes32): Receipt => ({
  txHash,
  success: true,
  blockNumber: 1n,
  blockHash: Make.word(0xb10c),
  gasUsed: 21_000n,
  cumulativeGasUsed: 21_000n,
  effectiveGasPrice: 1n,
  from: Make.lane.signer,
  logs: []
})

/** A scripted node that records the submitted bytes. */
export interface Node {
  readonly chain: ChainClient
  readonly given: Array<Hex.Hex>
  /** Number of receipt queries. */
  looks: number
  is: "healthy" | "dead" | "hanging"
  /** Hashes of transactions whose receipts it returns. */
  readonly shows: Set<Hex.Bytes32>
  /** Bytes that it knows: it rejects them, and returns the transaction. */
  readonly has: Set<Hex.Hex>
  /** The reported account nonce; the pending nonce may differ. */
  nonce: bigint
  pending: bigint | null
  /** A transaction in one of its blocks that used the account's nonce. */
  foreign: (KnownTransaction & { readonly blockNumber: bigint }) | null
  height: bigint
}

export const node = (name: string): Effect.Effect<Node> =>
  Effect.map(MemoryRpc.make({ chainId: Make.chainId }), (memory) => {
    const client = memory.client(`http://${name}`)
    const say = <A>(answer: () => A): Effect.Effect<A, ChainRpcError> =>
      Effect.suspend(() => {
        if (state.is === "hanging") return Effect.never
        return state.is === "healthy"
          ? Effect.sync(answer)
          : Effect.fail(new ChainRpcError({ reason: "unreachable", origin: name, message: "down" }))
      })
    const state: Node = {
      given: [],
      looks: 0,
      is: "healthy",
      shows: new Set(),
      has: new Set(),
      nonce: 0n,
      pending: null,
      foreign: null,
      height: 1n,
      chain: {
        ...client,
        chainId: say(() => Make.chainId),
        block: () =>
          say(() => ({
            number: state.height,
            hash: Make.word(0xb10c),
            timestamp: 0,
            gasLimit: 30_000_000n,
            baseFeePerGas: 1n
          })),
        transactionCount: (_, tag) =>
          say(() => {
            const { foreign, nonce, pending } = state
            if (tag === "pending") return pending ?? nonce
            return foreign !== null && typeof tag === "bigint" && tag < foreign.blockNumber
              ? foreign.nonce
              : nonce
          }),
        transactionsIn: (block) => say(() => (state.foreign?.blockNumber === block ? [state.foreign] : [])),
        transaction: (txHash) =>
          say(() => {
            const nonce = Number(BigInt(txHash)) - 0x100
            return state.has.has(rawOf(nonce)) ? pendingOf(nonce) : null
          }),
        sendRawTransaction: (raw) => {
          state.given.push(raw)
          if (state.has.has(raw))
            return Effect.fail(
              new ChainRpcError({ reason: "rejected", origin: name, message: "transaction already imported" })
            )
          return say(() => undefined)
        },
        receipt: (txHash) => {
          state.looks += 1
          return say(() => (state.shows.has(txHash) ? receiptOf(txHash) : null))
        }
      }
    }
    return state
  })

/** A monitor that records mined transactions with their node. */
export const start = (options: {
  readonly operatorNode: AccessNodes["ofOperator"]
  readonly attend?: TransactionMonitor.Attend
  readonly journalIsAway?: () => boolean
}) =>
  Effect.gen(function* () {
    const inFlight = InFlight.make()
    const mined: Array<readonly [bigint, ChainClient]> = []
    const submitted: Array<ReadonlyArray<bigint>> = []
    const monitor = yield* TransactionMonitor.make({
      settlement: {
        submitted: (_, records) =>
          Effect.suspend(() => {
            if (options.journalIsAway?.() === true) return Effect.fail(new JournalError({ message: "away" }))
            submitted.push(records.map(({ nonce }) => nonce))
            return Effect.void
          }),
        mined: (chain, { nonce }) => Effect.sync(() => void mined.push([nonce, chain])),
        finalised: () => Effect.void,
        vanished: () => Effect.void,
        stranded: () => Effect.succeed(true)
      },
      inFlight,
      attend: options.attend ?? (() => Effect.void),
      accessNodes: { ofOperator: options.operatorNode, ofCaller: () => Effect.succeed(null) }
    })
    return { inFlight, mined, monitor, submitted }
  })
