import * as Effect from "effect/Effect"
import type { Address } from "../../domain/evm/Address.js"
import type { Bytes32 } from "../../domain/evm/Hex.js"
import type { OpOutcome } from "../ports/Bundler.js"
import type { ChainClient, ChainRpcError, Receipt } from "../ports/ChainRpc.js"
import type { Journal, JournalError, OpSettlement, TransactionRecord } from "../ports/Journal.js"
import * as Landings from "./Landings.js"
import type { Releases } from "./Releases.js"

/** What became of the ops of a mined transaction; those that its receipt does not show are looked up wherever they landed. */
const outcomesOf = (
  chain: ChainClient,
  { ops }: TransactionRecord,
  receipt: Receipt
): Effect.Effect<ReadonlyArray<OpSettlement>, ChainRpcError> =>
  Effect.gen(function* () {
    const found: Array<OpSettlement> = []
    const note = (outcomes: ReadonlyMap<Bytes32, OpOutcome>) => {
      for (const [userOpHash, outcome] of outcomes) found.push({ userOpHash, ...outcome })
    }
    const entryPoints = new Set<Address>(ops.map(({ entryPoint }) => entryPoint))
    for (const entryPoint of entryPoints) {
      const hashes = ops.flatMap((op) => (op.entryPoint === entryPoint ? [op.userOpHash] : []))
      const shown = Landings.inReceipt(entryPoint, receipt, hashes)
      note(shown)
      const rest = hashes.filter((hash) => !shown.has(hash))
      note(yield* Landings.find(chain, entryPoint, rest, receipt.blockNumber))
    }
    return found
  })

export interface Settlement {
  /**
   * Records a mined transaction and the outcomes of its ops, and wakes whom it concerns. `final`: it is at settled depth;
   * ops that did not land are then to go again.
   */
  readonly mined: (
    chain: ChainClient,
    record: TransactionRecord,
    receipt: Receipt,
    final: boolean
  ) => Effect.Effect<void, ChainRpcError | JournalError>
  /** A recorded transaction has reached settled depth. */
  readonly finalised: (record: TransactionRecord) => Effect.Effect<void, JournalError>
  /** A recorded transaction has left the chain again. */
  readonly vanished: (record: TransactionRecord) => Effect.Effect<void, JournalError>
  /** Somebody else's transaction has the nonce, at settled depth. */
  readonly stranded: (record: TransactionRecord) => Effect.Effect<void, JournalError>
}

/** `reopened` is told of requests whose final answer a reorganisation has undone. */
export const make = (
  journal: Journal["Type"],
  releases: Releases,
  reopened: (requestIds: ReadonlyArray<string>) => Effect.Effect<void>
): Settlement => {
  const wake = (affected: ReadonlyArray<string>) =>
    Effect.zipRight(releases.notify(affected), releases.signal)

  return {
    mined: (chain, record, receipt, final) =>
      Effect.gen(function* () {
        const { chainId, nonce, signer } = record
        const { blockHash, blockNumber, success, txHash } = receipt
        const outcomes = yield* outcomesOf(chain, record, receipt)
        const affected = yield* journal.settle(
          { chainId, signer, nonce, txHash, success, blockNumber, blockHash },
          outcomes,
          final
        )
        yield* wake(affected)
      }),
    finalised: (record) => Effect.flatMap(journal.finalise(record, record.nonce), wake),
    vanished: (record) =>
      Effect.flatMap(journal.unsettle(record, record.nonce), (affected) =>
        Effect.zipRight(wake(affected), reopened(affected))
      ),
    stranded: (record) => Effect.flatMap(journal.strand(record, record.nonce), wake)
  }
}
