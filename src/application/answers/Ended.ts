import type { Bytes32, Hex } from "../../domain/primitives/Hex.js"
import * as Elements from "../failures/Elements.js"
import type { OpRecord, RequestRecord } from "../ports/journal/Requests.js"

/** What became of the elements of a request of which nothing is left to be done, as the journal tells it. Pure. */

export interface Landed {
  /** Null: a transaction of the signer's own. */
  readonly userOpHash: Bytes32 | null
  readonly success: boolean
  readonly txHash: Bytes32
  readonly revertData: Hex | null
  /** What its call returned in the last simulation before it was sent; null: nothing that was kept. */
  readonly returned: Hex | null
}

export interface Ended {
  readonly landed: ReadonlyMap<number, Landed>
  /** Of elements that have not landed. */
  readonly failed: ReadonlyMap<number, Elements.ElementFailure>
  /** Elements that were found done. */
  readonly existing: ReadonlySet<number>
  /** The transactions that concern it, each once. */
  readonly txHashes: ReadonlyArray<Bytes32>
  /** What its endpoint has kept for itself. */
  readonly note: string | null
}

const landedOf = ({ returned, revertData, state, success, txHash, userOpHash }: OpRecord): Landed | null =>
  state === "settled" && txHash !== null
    ? { userOpHash, success: success === true, txHash, revertData, returned }
    : null

export const of = ({
  cancelled,
  elements,
  failed: told,
  note,
  ops,
  txHashes
}: Pick<RequestRecord, "cancelled" | "elements" | "failed" | "note" | "ops" | "txHashes">): Ended => {
  const landed = new Map<number, Landed>()
  for (const op of ops) {
    const outcome = landedOf(op)
    if (outcome !== null) landed.set(op.index, outcome)
  }
  const existing = Elements.existingOf(note)
  const failed = new Map(Elements.ofJournal(told).filter(([index]) => !landed.has(index)))
  for (let index = 0; cancelled !== null && index < elements; index += 1)
    if (!landed.has(index) && !failed.has(index) && !existing.has(index))
      failed.set(index, Elements.elementFailure(cancelled))
  return {
    landed,
    failed,
    existing,
    note,
    txHashes: [...new Set([...txHashes, ...[...landed.values()].map(({ txHash }) => txHash)])]
  }
}

/** Whether a transaction of it may wait for a block, though all of its ops have an end: those that landed elsewhere. */
export const mayBeUnmined = ({ landed, txHashes }: Ended): boolean => {
  const mined = new Set([...landed.values()].map(({ txHash }) => txHash))
  return txHashes.some((txHash) => !mined.has(txHash))
}

/** Whether every element has landed or failed, whatever of those that failed may land yet. */
export const isToldOf = (record: Parameters<typeof of>[0]): boolean => {
  const { failed, landed } = of(record)
  return failed.size + landed.size >= record.elements
}
