import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import { ReceiptCache } from "../../chain/ReceiptCache.js"
import type { ChainClient, Receipt } from "../../ports/chain/ChainRpc.js"
import type { LaneAccess } from "../../ports/journal/Transactions.js"
import type { AccountId } from "../../ports/Tenants.js"
import * as Wait from "../../runtime/Wait.js"
import type { AccessNodes } from "./AccessNodes.js"
import type { LaneNode } from "./FollowedTransaction.js"

export interface ReceiptSearch {
  readonly seen: (source: LaneNode, receipt: Receipt) => void
  readonly undone: (account: AccountId, txHash: Bytes32) => void
  /** Registers the account that reads through its own node, so that it sees receipts that its other nodes showed. */
  readonly readBy: (chain: ChainClient, chainId: bigint, access: LaneAccess) => void
  readonly find: (chain: ChainClient, txHash: Bytes32) => Effect.Effect<Receipt>
}

/** Retries while no node returns the receipt of a mined transaction. */
const patience = Schedule.max([Schedule.spaced("500 millis"), Schedule.recurs(40)])

const answerWaitMillis = 2_000

interface Reader {
  readonly chainId: bigint
  readonly access: LaneAccess
}

export const make = (accessNodes: AccessNodes): ReceiptSearch => {
  const receipts = new ReceiptCache()
  const readers = new WeakMap<ChainClient, Reader>()

  const ask = (chain: ChainClient, txHash: Bytes32): Effect.Effect<Receipt | null> =>
    Wait.atMost(
      Effect.orElseSucceed(chain.receipt(txHash), () => null),
      answerWaitMillis,
      () => Effect.succeed(null)
    )

  const attempt = (chain: ChainClient, txHash: Bytes32): Effect.Effect<Receipt | null> =>
    Effect.gen(function* () {
      const reader = readers.get(chain)
      const known = receipts.get(reader?.access.accountId ?? null, txHash)
      if (known !== undefined) return known
      const receipt = yield* ask(chain, txHash)
      if (receipt !== null || reader === undefined) return receipt
      const operators = yield* accessNodes.ofOperator(reader.access, reader.chainId)
      return operators === null ? null : yield* ask(operators, txHash)
    })

  return {
    seen: ({ account }, receipt) => receipts.set(account, receipt),
    undone: (account, txHash) => receipts.delete(account, txHash),
    readBy: (chain, chainId, access) => {
      readers.set(chain, { chainId, access })
    },
    find: (chain, txHash) =>
      attempt(chain, txHash).pipe(
        Effect.filterOrFail(
          (receipt) => receipt !== null,
          () => "not there"
        ),
        Effect.retry(patience),
        Effect.catch(() => Effect.die(new Error("no node gives the receipt of a mined transaction")))
      )
  }
}
